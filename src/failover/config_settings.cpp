#include "failover/config_settings.hpp"

#include "base/secret.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

namespace HOLDFAST_NAMESPACE::config {

namespace {

using std::chrono::microseconds;

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::vector<std::string> split(std::string_view list) {
  std::vector<std::string> all;
  while (!list.empty()) {
    const auto comma = std::min(list.find(','), list.size());
    if (const auto one = trimmed(list.substr(0, comma)); !one.empty()) all.emplace_back(one);
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return all;
}

/// RETHROW, rethrow and never-throw alike.
std::string spelled(std::string_view word) {
  std::string same(word);
  for (char& c : same) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c == '-') c = '_';
  }
  return same;
}

template <class Number>
std::optional<Number> whole_number(std::string_view text) {
  Number number{};
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// The value as a number, where the environment could only give a text.
std::optional<double> number_of(const file_value& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value.is)) return static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(&value.is)) return *real;
  const auto* text = std::get_if<std::string>(&value.is);
  return text != nullptr && value.substituted ? whole_number<double>(trimmed(*text)) : std::nullopt;
}

std::optional<std::size_t> count_of(const file_value& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value.is)) {
    if (*whole < 0) return std::nullopt;
    return static_cast<std::size_t>(*whole);
  }
  const auto* text = std::get_if<std::string>(&value.is);
  return text != nullptr && value.substituted ? whole_number<std::size_t>(trimmed(*text)) : std::nullopt;
}

std::optional<bool> flag_of(const file_value& value) {
  if (const auto* flag = std::get_if<bool>(&value.is)) return *flag;
  const auto* text = std::get_if<std::string>(&value.is);
  if (text == nullptr || !value.substituted) return std::nullopt;
  if (*text == "true") return true;
  if (*text == "false") return false;
  return std::nullopt;
}

std::string shown(const known_key& key, const file_value& value) {
  const auto* text = std::get_if<std::string>(&value.is);
  if (text == nullptr || value.substituted || key.is == kind::secret) return "this";
  return "'" + *text + "'";
}

}  // namespace

std::optional<microseconds> parse_duration(std::string_view text) noexcept {
  constexpr std::array<std::pair<std::string_view, std::int64_t>, 6> units{
      {{"us", 1}, {"ms", 1000}, {"s", 1'000'000}, {"m", 60'000'000}, {"h", 3'600'000'000}, {"d", 86'400'000'000}}};
  text = trimmed(text);
  if (text.empty()) return std::nullopt;
  std::int64_t total = 0;
  while (!text.empty()) {
    const auto digits = std::min(text.find_first_not_of("0123456789"), text.size());
    const auto number = whole_number<std::int64_t>(text.substr(0, digits));
    text.remove_prefix(digits);
    const auto letters = std::min(text.find_first_of("0123456789"), text.size());
    const auto* const unit = std::ranges::find(units, trimmed(text.substr(0, letters)), &decltype(units)::value_type::first);
    text.remove_prefix(letters);
    if (!number || unit == units.end()) return std::nullopt;
    constexpr auto most = std::numeric_limits<std::int64_t>::max();
    if (*number > most / unit->second || total > most - *number * unit->second) return std::nullopt;
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
  const auto number = whole_number<std::int32_t>(text.substr(0, digits));
  const auto unit = trimmed(text.substr(digits));
  if (!number || *number > 10'000) return std::nullopt;
  if (unit == "month" || unit == "months") return holdfast::expiry(std::chrono::months(*number));
  if (unit == "year" || unit == "years") return holdfast::expiry(std::chrono::years(*number));
  return std::nullopt;
}

settings::settings(const std::vector<file_value>& values, std::vector<problem>& problems) {
  for (const auto& each : values) take(each, problems);
}

void settings::take(const file_value& value, std::vector<problem>& problems) {
  const std::string name = dotted(value.path);
  const auto complain = [&](const std::string& what) { problems.push_back({.line = value.line, .text = name + ": " + what}); };
  const bool is_table = std::holds_alternative<empty_table>(value.is);
  if (const auto* foreign = find_foreign(value.path)) {
    complain(std::string(foreign->instead));
    return;
  }
  const auto* key = find_key(value.path);
  if (key == nullptr || is_table) {
    if (key != nullptr) complain("this is a key, not a table");
    else if (is_table && is_section(value.path)) remember_names(value.path);
    else if (is_section(value.path)) complain("this is a table, not a key");
    else complain("there is no such key; the nearest is " + nearest_key(value.path));
    return;
  }
  const std::string of = remember_names(value.path);
  if (key->is == kind::ignored) {
    warnings_.push_back("line " + std::to_string(value.line) + ": " + name + " has no effect: " + std::string(key->meaning));
    return;
  }
  if (const auto* word = std::get_if<std::string>(&value.is); word != nullptr && key->is == kind::choice) {
    for (const auto& each : foreign_choices()) {
      if (each.key != key->name || each.choice != spelled(*word)) continue;
      complain(std::string(each.choice) + " is not for here: " + std::string(each.instead));
      return;
    }
  }
  std::string wanted;
  auto made = convert(*key, value, wanted);
  if (!made) {
    complain(shown(*key, value) + " is not " + wanted);
    return;
  }
  made->line = value.line;
  const auto [old, is_new] = all_.emplace(of.empty() ? std::string(key->name) : std::string(key->name) + '\n' + of, std::move(*made));
  if (!is_new) complain("this is said in line " + std::to_string(old->second.line) + " already, with or without jdbc");
}

settings::~settings() {
  for (auto& [name, stored] : all_) {
    if (auto* text = std::get_if<std::string>(&stored.is)) wipe(*text);
  }
}

std::string settings::remember_names(const key_path& path) {
  for (const std::string_view section : {"failover.points", "failover.store.multitenant.tenants"}) {
    const auto depth = static_cast<std::size_t>(std::ranges::count(section, '.')) + 1;
    if (path.size() <= depth || dotted(key_path(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(depth))) != section) continue;
    names_[std::string(section)].insert(path[depth]);
    return path[depth];
  }
  return {};
}

std::optional<settings::setting> settings::convert(const known_key& key, const file_value& value, std::string& wanted) {
  const auto as = [](auto&& found) -> std::optional<setting> {
    if (!found) return std::nullopt;
    return setting{.is = *found};
  };
  const auto* text = std::get_if<std::string>(&value.is);
  switch (key.is) {
    case kind::text:
    case kind::secret:
      wanted = "a text in quotes";
      return text != nullptr ? as(std::optional(*text)) : std::nullopt;
    case kind::flag:
      wanted = "true or false";
      return as(flag_of(value));
    case kind::count: {
      wanted = "a whole number from " + std::to_string(key.least) + " on";
      const auto number = count_of(value);
      return number && *number >= key.least ? as(number) : std::nullopt;
    }
    case kind::rate: {
      wanted = "a number from 0 to 1";
      const auto number = number_of(value);
      return number && *number >= 0 && *number <= 1 ? as(number) : std::nullopt;
    }
    case kind::duration:
      wanted = R"(a duration such as "10s", "500ms" or "1h30m" (us, ms, s, m, h, d))";
      return text != nullptr ? as(parse_duration(*text)) : std::nullopt;
    case kind::expiry:
      wanted = R"(an expiry such as "24h", "3 months" or "policy:nightly")";
      return text != nullptr ? as(parse_expiry(*text)) : std::nullopt;
    case kind::names: {
      wanted = "a list of texts";
      if (const auto* list = std::get_if<std::vector<std::string>>(&value.is)) return as(std::optional(*list));
      return text != nullptr ? as(std::optional(split(*text))) : std::nullopt;
    }
    case kind::choice: {
      wanted = "one of " + std::string(key.choices);
      if (text == nullptr) return std::nullopt;
      const auto words = split(key.choices);
      const auto found = std::ranges::find(words, spelled(*text));
      if (found == words.end()) return std::nullopt;
      return setting{.is = chosen{static_cast<std::size_t>(found - words.begin())}};
    }
    case kind::partial: {
      wanted = "keep, drop, fail, or the number of slices that must be there";
      if (const auto least = count_of(value)) return setting{.is = holdfast::partial::at_least(*least)};
      if (text == nullptr) return std::nullopt;
      if (spelled(*text) == "keep") return setting{.is = holdfast::partial::keep};
      if (spelled(*text) == "drop") return setting{.is = holdfast::partial::drop};
      if (spelled(*text) == "fail") return setting{.is = holdfast::partial::fail};
      return std::nullopt;
    }
    case kind::ignored:
      break;
  }
  return std::nullopt;
}

const settings::setting* settings::find(std::string_view key, std::string_view of) const {
  const auto found = of.empty() ? all_.find(key) : all_.find(std::string(key).append(1, '\n').append(of));
  return found == all_.end() ? nullptr : &found->second;
}

std::size_t settings::line(std::string_view key, std::string_view of) const {
  const auto* found = find(key, of);
  return found == nullptr ? 0 : found->line;
}

const std::set<std::string, std::less<>>& settings::names_below(std::string_view section) const {
  static const std::set<std::string, std::less<>> none;
  const auto found = names_.find(section);
  return found == names_.end() ? none : found->second;
}

}  // namespace HOLDFAST_NAMESPACE::config
