#include "serve/config/effective.hpp"

#include "failover/config/keys.hpp"
#include "serve/config/keys.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve::config {

namespace {

namespace engine = failover::config;

constexpr std::string_view points_section = "failover.points.";
constexpr std::string_view store_section = "failover.store.";

/// A key of either table, in the terms of both.
struct any_key {
  std::string_view name;
  std::string_view type;
  bool quoted = false;  ///< its values are texts
  bool is_list = false;
  std::string_view default_value;
  std::string_view description;
  std::string_view choices;
};

any_key described(const known_key& key) {
  any_key result{.name = key.name,
                 .type = "a text",
                 .quoted = true,
                 .default_value = key.default_value,
                 .description = key.description,
                 .choices = key.choices};
  switch (key.kind) {
    case value_kind::text:
    case value_kind::secret:
    case value_kind::url:
      break;
    case value_kind::flag:
      result.type = "true or false";
      result.quoted = false;
      break;
    case value_kind::count:
      result.type = "an integer";
      result.quoted = false;
      break;
    case value_kind::duration:
    case value_kind::long_duration:
      result.type = "a duration";
      break;
    case value_kind::choice:
      result.type = "one of";
      break;
    case value_kind::names:
      result.type = "a list of texts";
      result.is_list = true;
      break;
  }
  return result;
}

any_key described(const engine::known_key& key) {
  using kind = engine::value_kind;
  any_key result{.name = key.name,
                 .type = "a text",
                 .quoted = true,
                 .default_value = key.default_value,
                 .description = key.description,
                 .choices = key.choices};
  switch (key.kind) {
    case kind::text:
    case kind::secret:
    case kind::ignored:
      break;
    case kind::flag:
      result.type = "true or false";
      result.quoted = false;
      break;
    case kind::count:
      result.type = "an integer";
      result.quoted = false;
      break;
    case kind::rate:
      result.type = "a number from 0 to 1";
      result.quoted = false;
      break;
    case kind::duration:
      result.type = "a duration";
      break;
    case kind::expiry:
      result.type = "a duration, months, years, or policy:name";
      break;
    case kind::choice:
      result.type = "one of";
      break;
    case kind::partial:
      result.type = "keep, drop, fail, or a number of parts";
      break;
    case kind::names:
      result.type = "a list of texts";
      result.is_list = true;
      break;
  }
  return result;
}

/// As TOML. The texts of the tables need no escapes.
std::string toml_default(const any_key& key) {
  const auto quoted = [](std::string_view text) { return "\"" + std::string(text) + "\""; };
  if (key.default_value.empty()) return {};
  if (key.is_list) return "[" + quoted(key.default_value) + "]";
  return key.quoted ? quoted(key.default_value) : std::string(key.default_value);
}

std::string with_name(std::string_view key, std::string_view name) {
  std::string full(key);
  if (const auto star = full.find('*'); star != std::string::npos) full.replace(star, 1, name);
  return full;
}

/// The names of the points that values are listed for, as in their keys.
std::set<std::string> listed_points(const std::vector<effective_value>& values) {
  std::set<std::string> names;
  for (const auto& value : values) {
    if (!value.key.starts_with(points_section)) continue;
    std::string_view rest(value.key);
    rest.remove_prefix(points_section.size());
    // A name with dots is in quotes.
    const auto end = rest.starts_with('"') ? rest.find('"', 1) + 1 : rest.find('.');
    names.emplace(rest.substr(0, end));
  }
  return names;
}

}  // namespace

bool is_engine_file(std::string_view text) {
  bool has_failover = false;
  bool has_other = false;
  std::vector<problem> problems;
  const auto nothing = [](const std::string&) -> std::optional<std::string> { return ""; };
  (void)engine::read_toml(text, nothing, problems, [&](std::string_view name) {
    (engine::is_failover_section(name) ? has_failover : has_other) = true;
    return false;
  });
  return has_failover && !has_other;
}

std::vector<effective_value> point_values(const std::vector<file_value>& values) {
  std::vector<effective_value> result;
  for (const auto& value : values) {
    const auto* key = engine::find_key(value.path);
    if (key == nullptr) continue;
    std::string shown = "***";
    if (const auto* text = std::get_if<std::string>(&value.value);
        text != nullptr && !value.substituted && key->kind != engine::value_kind::secret)
      shown = *text;
    else if (const auto* flag = std::get_if<bool>(&value.value)) shown = *flag ? "true" : "false";
    else if (const auto* whole = std::get_if<std::int64_t>(&value.value))
      shown = std::to_string(*whole);
    result.push_back({.key = engine::dotted(value.path),
                      .value = std::move(shown),
                      .line = value.line,
                      .from_environment = value.substituted});
  }
  return result;
}

std::vector<effective_value> read_engine_file(const std::string& file, std::string_view text) {
  (void)engine::make_plan(file, text, {});
  std::vector<problem> problems;
  return point_values(engine::read_toml(text, engine::process_environment(), problems));
}

void add_point_defaults(std::vector<effective_value>& values, bool has_store) {
  std::set<std::string, std::less<>> listed;
  for (const auto& value : values) listed.insert(value.key);
  const auto names = listed_points(values);
  const auto add = [&](const engine::known_key& key, std::string_view name) {
    auto full = with_name(key.name, name);
    if (!key.default_value.empty() && !listed.contains(full))
      values.push_back({.key = std::move(full), .value = std::string(key.default_value)});
  };
  for (const auto& key : engine::known_keys()) {
    if (key.kind == engine::value_kind::ignored) continue;
    if (key.name.starts_with(store_section) && !has_store) continue;
    if (key.name.find('*') == std::string_view::npos) {
      add(key, {});
    } else if (key.name.starts_with(points_section)) {
      for (const auto& name : names) add(key, name);
    }
  }
}

std::vector<reference_key> reference() {
  std::vector<reference_key> keys;
  std::vector<std::string> sections;
  const auto add = [&](const any_key& key) {
    const auto full = with_name(key.name, "NAME");
    const auto dot = full.rfind('.');
    keys.push_back({.section = full.substr(0, dot),
                    .name = full.substr(dot + 1),
                    .type = key.type,
                    .default_value = toml_default(key),
                    .description = key.description,
                    .choices = key.choices});
    if (std::ranges::find(sections, keys.back().section) == sections.end())
      sections.push_back(keys.back().section);
  };
  for (const auto& key : known_keys()) add(described(key));
  for (const auto& key : engine::known_keys()) {
    if (key.kind != engine::value_kind::ignored) add(described(key));
  }
  // TOML has each section once.
  std::vector<reference_key> ordered;
  ordered.reserve(keys.size());
  for (const auto& section : sections) {
    for (const auto& key : keys) {
      if (key.section == section) ordered.push_back(key);
    }
  }
  return ordered;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve::config
