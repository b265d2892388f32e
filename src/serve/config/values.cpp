#include "serve/config/values.hpp"

#include "base/secret.hpp"
#include "base/url.hpp"
#include "failover/config/settings.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve::config {

namespace {

using std::chrono::milliseconds;

/// A key with its name, as the settings are sorted.
std::string setting_id(std::string_view key, std::string_view name) {
  std::string id(key);
  if (!name.empty()) id.append(1, '\n').append(name);
  return id;
}

/// A name of a store appears in URLs and scopes.
bool is_service_name(std::string_view name) {
  return !name.empty() && name.size() <= 50 && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  });
}

const std::string* text_of(const file_value& value) {
  return std::get_if<std::string>(&value.value);
}

std::optional<bool> flag_of_value(const file_value& value) {
  if (const auto* flag = std::get_if<bool>(&value.value)) return *flag;
  const auto* text = text_of(value);
  if (text == nullptr || !value.substituted || (*text != "true" && *text != "false"))
    return std::nullopt;
  return *text == "true";
}

std::optional<std::size_t> count_of_value(const file_value& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value.value)) {
    if (*whole < 0) return std::nullopt;
    return static_cast<std::size_t>(*whole);
  }
  const auto* text = text_of(value);
  std::size_t number = 0;
  if (text == nullptr || !value.substituted) return std::nullopt;
  const auto parsed = std::from_chars(text->data(), text->data() + text->size(), number);
  if (parsed.ec != std::errc{} || parsed.ptr != text->data() + text->size()) return std::nullopt;
  return number;
}

std::optional<std::size_t> index_of_choice(std::string_view choices, std::string_view word) {
  for (std::size_t index = 0; !choices.empty(); ++index) {
    const auto comma = std::min(choices.find(", "), choices.size());
    if (choices.substr(0, comma) == word) return index;
    choices.remove_prefix(std::min(comma + 2, choices.size()));
  }
  return std::nullopt;
}

/// `stores` for stores.main.url: the section in which the path has a name. Empty: none.
std::string_view section_of_names(const key_path& path) {
  if (path.size() > 2 && path[0] == "gateway" && path[1] == "routes") return "gateway.routes";
  if (path.size() > 2 && path[0] == "serve" && path[1] == "clients") return "serve.clients";
  if (path.size() > 1 && path[0] == "stores") return "stores";
  if (path.size() > 1 && path[0] == "outboxes") return "outboxes";
  return {};
}

std::string joined(const std::vector<std::string>& texts) {
  std::string result;
  for (const auto& text : texts) result.append(result.empty() ? "" : ", ").append(text);
  return result;
}

}  // namespace

config_values::config_values(const std::vector<file_value>& file, std::vector<problem>& problems) {
  for (const auto& value : file) add(value, problems);
}

config_values::~config_values() {
  for (auto& [key, stored] : settings_) {
    if (auto* text = std::get_if<std::string>(&stored.value)) wipe(*text);
  }
}

void config_values::add(const file_value& value, std::vector<problem>& problems) {
  const std::string path = failover::config::dotted(value.path);
  const auto refuse = [&](const std::string& text) {
    problems.push_back({.line = value.line, .text = path + ": " + text});
  };
  const bool is_table = std::holds_alternative<failover::config::empty_table>(value.value);
  const auto* key = find_key(value.path);
  if (key == nullptr || is_table) {
    if (key != nullptr) refuse("this is a key, not a table");
    else if (is_table && is_section(value.path)) remember_name(value.path, value.line);
    else if (is_section(value.path)) refuse("this is a table, not a key");
    else refuse("there is no such key; the nearest is " + nearest_key(value.path));
    return;
  }
  const auto position = name_position(*key);
  const auto name = position ? value.path[*position] : std::string{};
  if (position && !is_service_name(name)) {
    refuse("a name has at most 50 letters, digits, '-' and '_'");
    return;
  }
  remember_name(value.path, value.line);
  std::string expected;
  auto converted = convert(*key, value, expected);
  if (!converted) {
    const auto* text = text_of(value);
    const bool hidden = text == nullptr || value.substituted || key->kind == value_kind::secret ||
                        key->kind == value_kind::url;
    refuse((hidden ? std::string("this") : "'" + *text + "'") + " is not " + expected);
    return;
  }
  converted->line = value.line;
  converted->from_environment = value.substituted;
  settings_.insert_or_assign(setting_id(key->name, name), *std::move(converted));
}

void config_values::remember_name(const key_path& path, std::size_t line) {
  const auto section = section_of_names(path);
  if (section.empty()) return;
  auto& names = names_[std::string(section)];
  const auto& name = path[section.find('.') == std::string_view::npos ? 1 : 2];
  if (std::ranges::find(names, name, &std::pair<std::string, std::size_t>::first) == names.end())
    names.emplace_back(name, line);
}

std::optional<config_values::setting> config_values::convert(const known_key& key,
                                                             const file_value& value,
                                                             std::string& expected) {
  const auto* text = text_of(value);
  switch (key.kind) {
    case value_kind::text:
    case value_kind::url:
    case value_kind::secret:
      expected = "a text in quotes";
      if (text == nullptr) return std::nullopt;
      if (key.kind == value_kind::url)
        return setting{.value = *text, .shown = without_password(*text)};
      // A text from the environment may be a secret that the key does not expect.
      return setting{.value = *text,
                     .shown = key.kind == value_kind::secret || value.substituted ? "***" : *text};
    case value_kind::flag: {
      expected = "true or false";
      const auto flag = flag_of_value(value);
      if (!flag) return std::nullopt;
      return setting{.value = *flag, .shown = *flag ? "true" : "false"};
    }
    case value_kind::count: {
      expected =
          "an integer from " + std::to_string(key.minimum) + " to " + std::to_string(key.maximum);
      const auto number = count_of_value(value);
      if (!number || *number < key.minimum || *number > key.maximum) return std::nullopt;
      return setting{.value = *number, .shown = std::to_string(*number)};
    }
    case value_kind::duration:
    case value_kind::long_duration: {
      const bool is_long = key.kind == value_kind::long_duration;
      expected = is_long ? "a duration of at most 366d, such as 12h, 7d"
                         : "a duration of at most 24h, such as 500ms, 30s, 5m";
      const auto time = text != nullptr ? failover::config::parse_duration(*text) : std::nullopt;
      if (!time || *time > std::chrono::hours(is_long ? 366 * 24 : 24)) return std::nullopt;
      return setting{.value = std::chrono::ceil<milliseconds>(*time), .shown = *text};
    }
    case value_kind::choice: {
      expected = "one of: " + std::string(key.choices);
      const auto index = text != nullptr ? index_of_choice(key.choices, *text) : std::nullopt;
      if (!index) return std::nullopt;
      return setting{.value = chosen{*index}, .shown = *text};
    }
    case value_kind::names: {
      expected = "a list of texts";
      const auto* list = std::get_if<std::vector<std::string>>(&value.value);
      if (text == nullptr && list == nullptr) return std::nullopt;
      auto texts = list != nullptr ? *list : std::vector<std::string>{*text};
      auto shown = joined(texts);
      return setting{.value = std::move(texts), .shown = std::move(shown)};
    }
  }
  return std::nullopt;
}

const config_values::setting* config_values::find(std::string_view key,
                                                  std::string_view name) const {
  const auto it = settings_.find(setting_id(key, name));
  return it == settings_.end() ? nullptr : &it->second;
}

void config_values::read(std::string& option, std::string_view key, std::string_view name) const {
  if (const auto* stored = find(key, name)) option = std::get<std::string>(stored->value);
}

void config_values::read(std::vector<std::string>& option, std::string_view key,
                         std::string_view name) const {
  if (const auto* stored = find(key, name))
    option = std::get<std::vector<std::string>>(stored->value);
}

void config_values::read(bool& option, std::string_view key, std::string_view name) const {
  if (const auto* stored = find(key, name)) option = std::get<bool>(stored->value);
}

void config_values::read(std::size_t& option, std::string_view key, std::string_view name) const {
  if (const auto* stored = find(key, name)) option = std::get<std::size_t>(stored->value);
}

void config_values::read(milliseconds& option, std::string_view key, std::string_view name) const {
  if (const auto* stored = find(key, name)) option = std::get<milliseconds>(stored->value);
}

std::optional<std::size_t> config_values::choice(std::string_view key,
                                                 std::string_view name) const {
  const auto* stored = find(key, name);
  if (stored == nullptr) return std::nullopt;
  return std::get<chosen>(stored->value).index;
}

std::size_t config_values::line(std::string_view key, std::string_view name) const {
  const auto* stored = find(key, name);
  return stored == nullptr ? 0 : stored->line;
}

bool config_values::from_environment(std::string_view key, std::string_view name) const {
  const auto* stored = find(key, name);
  return stored != nullptr && stored->from_environment;
}

const std::vector<std::pair<std::string, std::size_t>>& config_values::names_below(
    std::string_view section) const {
  static const std::vector<std::pair<std::string, std::size_t>> none;
  const auto it = names_.find(section);
  return it == names_.end() ? none : it->second;
}

std::string config_values::shown(const known_key& key, std::string_view name) const {
  const auto* stored = find(key.name, name);
  return stored == nullptr ? std::string(key.default_value) : stored->shown;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve::config
