#include "base/cron.hpp"

#include <holdfast/error.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail {
namespace {

constexpr std::size_t max_length = 256;  // characters

constexpr std::array<std::string_view, 12> month_names{"JAN", "FEB", "MAR", "APR", "MAY", "JUN",
                                                       "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"};
constexpr std::array<std::string_view, 7> day_names{"SUN", "MON", "TUE", "WED",
                                                    "THU", "FRI", "SAT"};

struct macro {
  std::string_view name;
  std::string_view expression;
};
constexpr std::array<macro, 7> macros{
    macro{"@yearly", "0 0 0 1 1 *"},  macro{"@annually", "0 0 0 1 1 *"},
    macro{"@monthly", "0 0 0 1 * *"}, macro{"@weekly", "0 0 0 * * 0"},
    macro{"@daily", "0 0 0 * * *"},   macro{"@midnight", "0 0 0 * * *"},
    macro{"@hourly", "0 0 * * * *"}};

/// The rules of one field.
struct field {
  std::string_view name;
  int low;
  int high;
  std::span<const std::string_view> names{};
  int first_name = 0;  // the number that names[0] stands for
  bool question_mark = false;
};
constexpr std::array<field, 6> fields{
    field{.name = "second", .low = 0, .high = 59},
    field{.name = "minute", .low = 0, .high = 59},
    field{.name = "hour", .low = 0, .high = 23},
    field{.name = "day of month", .low = 1, .high = 31, .question_mark = true},
    field{.name = "month", .low = 1, .high = 12, .names = month_names, .first_name = 1},
    field{.name = "day of week", .low = 0, .high = 7, .names = day_names, .question_mark = true}};

bool is_blank(char c) { return c == ' ' || c == '\t'; }

std::string upper(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return result;
}

[[noreturn]] void refuse(const std::string& problem) {
  throw error(errc::invalid_argument, "cron expression: " + problem);
}

[[noreturn]] void refuse(const field& rules, std::string_view part, const std::string& problem) {
  refuse("the field '" + std::string(rules.name) + "' cannot be '" + std::string(part) +
         "': " + problem);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const auto end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::vector<std::string_view> split_at_blanks(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t i = 0; i < text.size();) {
    if (is_blank(text[i])) {
      ++i;
      continue;
    }
    const auto begin = i;
    while (i < text.size() && !is_blank(text[i])) ++i;
    words.push_back(text.substr(begin, i - begin));
  }
  return words;
}

/// Parses a number that consists of digits only.
std::optional<int> parse_digits(std::string_view text) {
  int value = 0;
  const char* begin = text.data();
  const char* end = begin + text.size();
  if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
  const auto [stopped, problem] = std::from_chars(begin, end, value);
  if (problem != std::errc() || stopped != end) return std::nullopt;
  return value;
}

int parse_number(const field& rules, std::string_view part, std::string_view text) {
  const auto name = std::find(rules.names.begin(), rules.names.end(), text);
  if (name != rules.names.end())
    return static_cast<int>(name - rules.names.begin()) + rules.first_name;
  const auto value = parse_digits(text);
  if (!value)
    refuse(
        rules, part,
        "'" + std::string(text) + "' is not a number" + (rules.names.empty() ? "" : " or a name"));
  if (*value < rules.low || *value > rules.high)
    refuse(rules, part,
           std::to_string(*value) + " is not between " + std::to_string(rules.low) + " and " +
               std::to_string(rules.high));
  return *value;
}

/// Adds the values of `*`, `a` or `a-b`, each with an optional `/n`.
template <std::size_t size>
void add_range(const field& rules, std::string_view part, std::bitset<size>& values) {
  const auto slash = part.find('/');
  const auto range = part.substr(0, slash);
  const auto dash = range.find('-');
  int first = rules.low;
  int last = rules.high == 7 ? 6 : rules.high;  // Sunday counts once
  if (range == "?" && !rules.question_mark)
    refuse(rules, part, "'?' is for the fields of days; write '*'");
  if (range != "*" && range != "?") {
    first = parse_number(rules, part, range.substr(0, dash));
    if (dash != std::string_view::npos) {
      last = parse_number(rules, part, range.substr(dash + 1));
      if (rules.high == 7 && first == 7 && last != 7) first = 0;  // 7-2
      if (rules.high == 7 && last == 0 && first != 0) last = 7;   // FRI-SUN
      if (first > last) refuse(rules, part, "the range ends before it begins");
    } else {
      if (rules.high == 7) first %= 7;
      if (slash == std::string_view::npos) last = first;
    }
  }
  int step = 1;
  if (slash != std::string_view::npos) {
    const auto number = parse_digits(part.substr(slash + 1));
    if (!number || *number < 1) refuse(rules, part, "the step after '/' must be at least 1");
    step = std::min(*number, 100);
  }
  for (int i = first; i <= last; i += step)
    values.set(static_cast<std::size_t>(rules.high == 7 ? i % 7 : i));
}

template <std::size_t size>
void add_list(const field& rules, std::string_view text, std::bitset<size>& values) {
  for (const auto part : split(text, ',')) add_range(rules, part, values);
}

void add_days(const field& rules, std::string_view text, std::bitset<32>& days,
              std::bitset<31>& from_last) {
  for (const auto part : split(text, ',')) {
    if (!part.starts_with('L')) {
      add_range(rules, part, days);
    } else if (part == "L") {
      from_last.set(0);
    } else {
      const auto before = part.starts_with("L-") ? parse_digits(part.substr(2)) : std::nullopt;
      if (!before || *before > 30)
        refuse(rules, part, "write 'L' for the last day, 'L-1' to 'L-30' for days before it");
      from_last.set(static_cast<std::size_t>(*before));
    }
  }
}

void add_weekdays(const field& rules, std::string_view text, std::bitset<7>& days,
                  std::bitset<7>& last) {
  for (const auto part : split(text, ',')) {
    if (part.ends_with('L') && part.size() > 1)
      last.set(
          static_cast<std::size_t>(parse_number(rules, part, part.substr(0, part.size() - 1)) % 7));
    else add_range(rules, part, days);
  }
}

/// The first index from `index` on whose bit is set, or the size.
template <std::size_t size>
std::size_t first_set(const std::bitset<size>& bits, std::size_t index) {
  while (index < size && !bits.test(index)) ++index;
  return index;
}

}  // namespace

cron cron::parse(std::string_view expression) {
  if (expression.size() > max_length)
    refuse("it is longer than " + std::to_string(max_length) + " characters");
  auto parts = split_at_blanks(expression);
  if (parts.size() == 1 && parts.front().starts_with('@')) {
    const auto match = std::find_if(macros.begin(), macros.end(),
                                    [&](const macro& m) { return m.name == parts.front(); });
    if (match == macros.end())
      refuse("'" + std::string(parts.front()) +
             "' is not a macro; use one of @yearly @annually @monthly @weekly @daily @midnight "
             "@hourly");
    parts = split_at_blanks(match->expression);
  }
  if (parts.size() != fields.size())
    refuse("it has " + std::to_string(parts.size()) +
           " fields, not 6: second minute hour day-of-month month day-of-week; hourly is '0 0 * * "
           "* *'");
  std::array<std::string, fields.size()> texts;
  std::transform(parts.begin(), parts.end(), texts.begin(), upper);

  cron result;
  result.text_ = expression;
  add_list(fields[0], texts[0], result.seconds_);
  add_list(fields[1], texts[1], result.minutes_);
  add_list(fields[2], texts[2], result.hours_);
  add_days(fields[3], texts[3], result.days_, result.from_last_);
  add_list(fields[4], texts[4], result.months_);
  add_weekdays(fields[5], texts[5], result.weekdays_, result.last_weekdays_);
  if (!result.next(std::chrono::sys_days(std::chrono::year(2000) / 1 / 1)))
    refuse("no date in any year matches, so it would never run");
  return result;
}

bool cron::matches(std::chrono::sys_days day, const std::chrono::year_month_day& date) const {
  const auto last_of_month =
      std::chrono::year_month_day_last(date.year(), date.month() / std::chrono::last).day();
  const auto before_last = static_cast<unsigned>(last_of_month) - static_cast<unsigned>(date.day());
  if (!days_.test(static_cast<unsigned>(date.day())) && !from_last_.test(before_last)) return false;
  const auto weekday = std::chrono::weekday(day).c_encoding();
  return weekdays_.test(weekday) || (last_weekdays_.test(weekday) && before_last < 7);
}

/// The first matching time of day at or after `start`.
std::optional<std::chrono::seconds> cron::next_time(std::chrono::seconds start) const {
  const auto total = static_cast<std::size_t>(start.count());
  auto hour = total / 3600;
  auto minute = total / 60 % 60;
  auto second = total % 60;
  for (; (hour = first_set(hours_, hour)) < 24; ++hour, minute = 0, second = 0) {
    if (hour != total / 3600) minute = second = 0;
    const auto first_minute = minute;
    for (; (minute = first_set(minutes_, minute)) < 60; ++minute, second = 0) {
      if (minute != first_minute) second = 0;
      second = first_set(seconds_, second);
      if (second < 60) return std::chrono::seconds(hour * 3600 + minute * 60 + second);
    }
  }
  return std::nullopt;
}

std::optional<std::chrono::sys_seconds> cron::next(std::chrono::sys_seconds after) const {
  using std::chrono::days;
  using std::chrono::floor;
  const auto start = after + std::chrono::seconds(1);
  const auto first = floor<days>(start);
  // 29 February falls on each weekday at least once in 40 years, even around 2100.
  const auto end = first + days(40 * 366);
  for (auto day = first; day < end;) {
    const std::chrono::year_month_day date(day);
    if (!months_.test(static_cast<unsigned>(date.month()))) {
      day = std::chrono::sys_days(
                std::chrono::year_month_day_last(date.year(), date.month() / std::chrono::last)) +
            days(1);
      continue;
    }
    if (matches(day, date)) {
      if (const auto time = next_time(day == first ? start - std::chrono::sys_seconds(first)
                                                   : std::chrono::seconds(0)))
        return day + *time;
    }
    day += days(1);
  }
  return std::nullopt;
}

}  // namespace HOLDFAST_NAMESPACE::detail
