#include "failover/config/settings.hpp"

#include "base/secret.hpp"
#include "base/trim.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

namespace HOLDFAST_NAMESPACE::detail::failover::config {

namespace {

using std::chrono::microseconds;

/// The trimmed words of a list separated by commas.
std::vector<std::string> split(std::string_view list) {
  std::vector<std::string> words;
  while (!list.empty()) {
    const auto comma = std::min(list.find(','), list.size());
    if (const auto word = trimmed(list.substr(0, comma)); !word.empty()) words.emplace_back(word);
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return words;
}

/// In lower case, with underscores: `NEVER-THROW` becomes `never_throw`.
std::string normalized(std::string_view word) {
  std::string result(word);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c == '-') c = '_';
  }
  return result;
}

template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// The text of a value from the environment, or null. Such a text may also be a number or flag.
const std::string* substituted_text(const file_value& value) {
  return value.substituted ? std::get_if<std::string>(&value.value) : nullptr;
}

std::optional<double> number_of(const file_value& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value.value))
    return static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(&value.value)) return *real;
  const auto* text = substituted_text(value);
  return text != nullptr ? parse_number<double>(trimmed(*text)) : std::nullopt;
}

std::optional<std::size_t> count_of(const file_value& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value.value)) {
    if (*whole < 0) return std::nullopt;
    return static_cast<std::size_t>(*whole);
  }
  const auto* text = substituted_text(value);
  return text != nullptr ? parse_number<std::size_t>(trimmed(*text)) : std::nullopt;
}

std::optional<bool> flag_of(const file_value& value) {
  if (const auto* flag = std::get_if<bool>(&value.value)) return *flag;
  const auto* text = substituted_text(value);
  if (text == nullptr) return std::nullopt;
  if (*text == "true") return true;
  if (*text == "false") return false;
  return std::nullopt;
}

/// The value for a message, or "this" if it could be secret.
std::string quoted(const known_key& key, const file_value& value) {
  const auto* text = std::get_if<std::string>(&value.value);
  if (text == nullptr || value.substituted || key.kind == value_kind::secret) return "this";
  return "'" + *text + "'";
}

}  // namespace

std::optional<microseconds> parse_duration(std::string_view text) noexcept {
  constexpr std::array<std::pair<std::string_view, std::int64_t>, 6> units{{{"us", 1},
                                                                            {"ms", 1000},
                                                                            {"s", 1'000'000},
                                                                            {"m", 60'000'000},
                                                                            {"h", 3'600'000'000},
                                                                            {"d", 86'400'000'000}}};
  text = trimmed(text);
  if (text.empty()) return std::nullopt;
  std::int64_t total = 0;
  while (!text.empty()) {
    const auto digits = std::min(text.find_first_not_of("0123456789"), text.size());
    const auto number = parse_number<std::int64_t>(text.substr(0, digits));
    text.remove_prefix(digits);
    const auto letters = std::min(text.find_first_of("0123456789"), text.size());
    const auto* const unit = std::ranges::find(units, trimmed(text.substr(0, letters)),
                                               &decltype(units)::value_type::first);
    text.remove_prefix(letters);
    if (!number || unit == units.end()) return std::nullopt;
    constexpr auto longest = std::numeric_limits<std::int64_t>::max();
    if (*number > longest / unit->second || total > longest - *number * unit->second)
      return std::nullopt;
    total += *number * unit->second;
  }
  return microseconds(total);
}

std::optional<holdfast::expiry> parse_expiry(std::string_view text) {
  text = trimmed(text);
  constexpr std::string_view policy = "policy:";
  if (text.starts_with(policy)) {
    const auto name = trimmed(text.substr(policy.size()));
    if (name.empty()) return std::nullopt;
    return holdfast::expiry::named(std::string(name));
  }
  if (const auto time = parse_duration(text)) return holdfast::expiry(*time);
  const auto digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto number = parse_number<std::int32_t>(text.substr(0, digits));
  const auto unit = trimmed(text.substr(digits));
  if (!number || *number > 10'000) return std::nullopt;
  if (unit == "month" || unit == "months") return holdfast::expiry(std::chrono::months(*number));
  if (unit == "year" || unit == "years") return holdfast::expiry(std::chrono::years(*number));
  return std::nullopt;
}

settings::settings(const std::vector<file_value>& values, std::vector<problem>& problems) {
  for (const auto& value : values) add(value, problems);
}

void settings::add(const file_value& value, std::vector<problem>& problems) {
  const std::string path = dotted(value.path);
  const auto refuse = [&](const std::string& text) {
    problems.push_back({.line = value.line, .text = path + ": " + text});
  };
  if (const auto* foreign = find_foreign(value.path)) return refuse(std::string(foreign->hint));
  const bool is_table = std::holds_alternative<empty_table>(value.value);
  const auto* key = find_key(value.path);
  if (key == nullptr || is_table) {
    if (key != nullptr) refuse("this is a key, not a table");
    else if (is_table && is_section(value.path)) remember_name(value.path);
    else if (is_section(value.path)) refuse("this is a table, not a key");
    else refuse("there is no such key; the nearest is " + nearest_key(value.path));
    return;
  }
  const std::string name = remember_name(value.path);
  if (key->kind == value_kind::ignored) {
    warnings_.push_back("line " + std::to_string(value.line) + ": " + path +
                        " has no effect: " + std::string(key->description));
    return;
  }
  if (const auto* word = std::get_if<std::string>(&value.value);
      word != nullptr && key->kind == value_kind::choice) {
    for (const auto& foreign : foreign_choices()) {
      if (foreign.key == key->name && foreign.choice == normalized(*word))
        return refuse(std::string(foreign.choice) +
                      " is not supported: " + std::string(foreign.hint));
    }
  }
  std::string expected;
  auto converted = convert(*key, value, expected);
  if (!converted) return refuse(quoted(*key, value) + " is not " + expected);
  converted->line = value.line;
  const auto [existing, is_new] = settings_.emplace(
      name.empty() ? std::string(key->name) : std::string(key->name) + '\n' + name,
      std::move(*converted));
  if (!is_new)
    refuse("line " + std::to_string(existing->second.line) +
           " sets this already, with or without jdbc");
}

settings::~settings() {
  for (auto& [key, stored] : settings_) {
    if (auto* text = std::get_if<std::string>(&stored.value)) wipe(*text);
  }
}

std::string settings::remember_name(const key_path& path) {
  for (const std::string_view section : {"failover.points", "failover.store.multitenant.tenants"}) {
    const auto depth = static_cast<std::size_t>(std::ranges::count(section, '.')) + 1;
    if (path.size() <= depth ||
        dotted(key_path(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(depth))) !=
            section)
      continue;
    names_[std::string(section)].insert(path[depth]);
    return path[depth];
  }
  return {};
}

std::optional<settings::setting> settings::convert(const known_key& key, const file_value& value,
                                                   std::string& expected) {
  const auto wrapped = [](auto&& result) -> std::optional<setting> {
    if (!result) return std::nullopt;
    return setting{.value = *result};
  };
  const auto* text = std::get_if<std::string>(&value.value);
  switch (key.kind) {
    case value_kind::text:
    case value_kind::secret:
      expected = "a text in quotes";
      return text != nullptr ? wrapped(std::optional(*text)) : std::nullopt;
    case value_kind::flag:
      expected = "true or false";
      return wrapped(flag_of(value));
    case value_kind::count: {
      expected = "a whole number of at least " + std::to_string(key.minimum);
      const auto number = count_of(value);
      return number && *number >= key.minimum ? wrapped(number) : std::nullopt;
    }
    case value_kind::rate: {
      expected = "a number from 0 to 1";
      const auto number = number_of(value);
      return number && *number >= 0 && *number <= 1 ? wrapped(number) : std::nullopt;
    }
    case value_kind::duration:
      expected = R"(a duration such as "10s", "500ms" or "1h30m" (us, ms, s, m, h, d))";
      return text != nullptr ? wrapped(parse_duration(*text)) : std::nullopt;
    case value_kind::expiry:
      expected = R"(an expiry such as "24h", "3 months" or "policy:nightly")";
      return text != nullptr ? wrapped(parse_expiry(*text)) : std::nullopt;
    case value_kind::names: {
      expected = "a list of texts";
      if (const auto* list = std::get_if<std::vector<std::string>>(&value.value))
        return wrapped(std::optional(*list));
      return text != nullptr ? wrapped(std::optional(split(*text))) : std::nullopt;
    }
    case value_kind::choice: {
      expected = "one of " + std::string(key.choices);
      if (text == nullptr) return std::nullopt;
      const auto words = split(key.choices);
      const auto match = std::ranges::find(words, normalized(*text));
      if (match == words.end()) return std::nullopt;
      return setting{.value = chosen{static_cast<std::size_t>(match - words.begin())}};
    }
    case value_kind::partial: {
      expected = "keep, drop, fail, or the number of slices that must be there";
      if (const auto minimum = count_of(value))
        return setting{.value = holdfast::partial::at_least(*minimum)};
      if (text == nullptr) return std::nullopt;
      if (normalized(*text) == "keep") return setting{.value = holdfast::partial::keep};
      if (normalized(*text) == "drop") return setting{.value = holdfast::partial::drop};
      if (normalized(*text) == "fail") return setting{.value = holdfast::partial::fail};
      return std::nullopt;
    }
    case value_kind::ignored:
      break;
  }
  return std::nullopt;
}

const settings::setting* settings::find(std::string_view key, std::string_view name) const {
  const auto match = name.empty() ? settings_.find(key)
                                  : settings_.find(std::string(key).append(1, '\n').append(name));
  return match == settings_.end() ? nullptr : &match->second;
}

std::size_t settings::line(std::string_view key, std::string_view name) const {
  const auto* stored = find(key, name);
  return stored == nullptr ? 0 : stored->line;
}

const std::set<std::string, std::less<>>& settings::names_below(std::string_view section) const {
  static const std::set<std::string, std::less<>> none;
  const auto names = names_.find(section);
  return names == names_.end() ? none : names->second;
}

}  // namespace HOLDFAST_NAMESPACE::detail::failover::config
