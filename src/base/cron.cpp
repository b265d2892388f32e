#include "base/cron.hpp"

#include <holdfast/error.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <vector>

namespace HOLDFAST_NAMESPACE {
namespace {

constexpr std::size_t longest = 256;  // characters; a useful expression has a tenth of it

constexpr std::array<std::string_view, 12> month_names{"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"};
constexpr std::array<std::string_view, 7> day_names{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"};

struct macro {
  std::string_view name;
  std::string_view meaning;
};
constexpr std::array<macro, 7> macros{macro{"@yearly", "0 0 0 1 1 *"}, macro{"@annually", "0 0 0 1 1 *"}, macro{"@monthly", "0 0 0 1 * *"},
                                      macro{"@weekly", "0 0 0 * * 0"}, macro{"@daily", "0 0 0 * * *"},    macro{"@midnight", "0 0 0 * * *"},
                                      macro{"@hourly", "0 0 * * * *"}};

/// One of the six.
struct field {
  std::string_view name;
  int low;
  int high;
  std::span<const std::string_view> names{};
  int first_name = 0;  // the number of names[0]
  bool question_mark = false;
};
constexpr std::array<field, 6> fields{field{.name = "second", .low = 0, .high = 59},
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

[[noreturn]] void refuse(const std::string& why) { throw error(errc::invalid_argument, "cron expression: " + why); }

[[noreturn]] void refuse(const field& of, std::string_view part, const std::string& why) {
  refuse("the field '" + std::string(of.name) + "' cannot be '" + std::string(part) + "': " + why);
}

std::vector<std::string_view> split(std::string_view text, char by) {
  std::vector<std::string_view> parts;
  for (;;) {
    const auto end = text.find(by);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> found;
  for (std::size_t i = 0; i < text.size();) {
    if (is_blank(text[i])) {
      ++i;
      continue;
    }
    const auto begin = i;
    while (i < text.size() && !is_blank(text[i])) ++i;
    found.push_back(text.substr(begin, i - begin));
  }
  return found;
}

/// A number in digits only: no sign, nothing behind it.
std::optional<int> number_of(std::string_view text) {
  int value = 0;
  const char* begin = text.data();
  const char* end = begin + text.size();
  if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
  const auto [stopped, problem] = std::from_chars(begin, end, value);
  if (problem != std::errc() || stopped != end) return std::nullopt;
  return value;
}

int number(const field& of, std::string_view part, std::string_view text) {
  const auto name = std::find(of.names.begin(), of.names.end(), text);
  if (name != of.names.end()) return static_cast<int>(name - of.names.begin()) + of.first_name;
  const auto value = number_of(text);
  if (!value) refuse(of, part, "'" + std::string(text) + "' is no number" + (of.names.empty() ? "" : " and no name"));
  if (*value < of.low || *value > of.high)
    refuse(of, part, std::to_string(*value) + " is not between " + std::to_string(of.low) + " and " + std::to_string(of.high));
  return *value;
}

/// `*`, `a`, `a-b`, each with `/n` or without.
template <std::size_t size>
void add_range(const field& of, std::string_view part, std::bitset<size>& to) {
  const auto slash = part.find('/');
  const auto range = part.substr(0, slash);
  const auto dash = range.find('-');
  int first = of.low;
  int last = of.high == 7 ? 6 : of.high;  // a week has seven days, whatever the last is called
  if (range == "?" && !of.question_mark) refuse(of, part, "'?' is for the fields of days; write '*'");
  if (range != "*" && range != "?") {
    first = number(of, part, range.substr(0, dash));
    if (dash != std::string_view::npos) {
      last = number(of, part, range.substr(dash + 1));
      if (of.high == 7 && first == 7 && last != 7) first = 0;  // 7-2
      if (of.high == 7 && last == 0 && first != 0) last = 7;   // FRI-SUN
      if (first > last) refuse(of, part, "the range ends before it begins");
    } else {
      if (of.high == 7) first %= 7;
      if (slash == std::string_view::npos) last = first;
    }
  }
  int step = 1;
  if (slash != std::string_view::npos) {
    const auto given = number_of(part.substr(slash + 1));
    if (!given || *given < 1) refuse(of, part, "the step after '/' must be a number from 1 on");
    step = std::min(*given, 100);
  }
  for (int i = first; i <= last; i += step) to.set(static_cast<std::size_t>(of.high == 7 ? i % 7 : i));
}

template <std::size_t size>
void add_list(const field& of, std::string_view text, std::bitset<size>& to) {
  for (const auto part : split(text, ',')) add_range(of, part, to);
}

void add_days(const field& of, std::string_view text, std::bitset<32>& days, std::bitset<31>& from_last) {
  for (const auto part : split(text, ',')) {
    if (!part.starts_with('L')) {
      add_range(of, part, days);
    } else if (part == "L") {
      from_last.set(0);
    } else {
      const auto before = part.starts_with("L-") ? number_of(part.substr(2)) : std::nullopt;
      if (!before || *before > 30) refuse(of, part, "write 'L' for the last day, 'L-1' to 'L-30' for days before it");
      from_last.set(static_cast<std::size_t>(*before));
    }
  }
}

void add_weekdays(const field& of, std::string_view text, std::bitset<7>& days, std::bitset<7>& last) {
  for (const auto part : split(text, ',')) {
    if (part.ends_with('L') && part.size() > 1) last.set(static_cast<std::size_t>(number(of, part, part.substr(0, part.size() - 1)) % 7));
    else add_range(of, part, days);
  }
}

/// The first that is set from there on, or the size.
template <std::size_t size>
std::size_t first_set(const std::bitset<size>& in, std::size_t from) {
  while (from < size && !in.test(from)) ++from;
  return from;
}

}  // namespace

cron cron::parse(std::string_view expression) {
  if (expression.size() > longest) refuse("it is longer than " + std::to_string(longest) + " characters");
  auto parts = words(expression);
  if (parts.size() == 1 && parts.front().starts_with('@')) {
    const auto known = std::find_if(macros.begin(), macros.end(), [&](const macro& one) { return one.name == parts.front(); });
    if (known == macros.end())
      refuse("'" + std::string(parts.front()) + "' is no macro; there are @yearly @annually @monthly @weekly @daily @midnight @hourly");
    parts = words(known->meaning);
  }
  if (parts.size() != fields.size())
    refuse("it has " + std::to_string(parts.size()) +
           " fields, not 6: second minute hour day-of-month month day-of-week; hourly is '0 0 * * * *'");
  std::array<std::string, fields.size()> part;
  std::transform(parts.begin(), parts.end(), part.begin(), upper);

  cron made;
  made.text_ = expression;
  add_list(fields[0], part[0], made.seconds_);
  add_list(fields[1], part[1], made.minutes_);
  add_list(fields[2], part[2], made.hours_);
  add_days(fields[3], part[3], made.days_, made.from_last_);
  add_list(fields[4], part[4], made.months_);
  add_weekdays(fields[5], part[5], made.weekdays_, made.last_weekdays_);
  if (!made.next(std::chrono::sys_days(std::chrono::year(2000) / 1 / 1)))
    refuse("there is no such date in any year, so it would never run");
  return made;
}

bool cron::matches(std::chrono::sys_days day, const std::chrono::year_month_day& date) const {
  const auto last_of_month = std::chrono::year_month_day_last(date.year(), date.month() / std::chrono::last).day();
  const auto before_last = static_cast<unsigned>(last_of_month) - static_cast<unsigned>(date.day());
  if (!days_.test(static_cast<unsigned>(date.day())) && !from_last_.test(before_last)) return false;
  const auto weekday = std::chrono::weekday(day).c_encoding();
  return weekdays_.test(weekday) || (last_weekdays_.test(weekday) && before_last < 7);
}

/// The first matching time of day from that one on.
std::optional<std::chrono::seconds> cron::next_time(std::chrono::seconds from) const {
  const auto total = static_cast<std::size_t>(from.count());
  auto hour = total / 3600;
  auto minute = total / 60 % 60;
  auto second = total % 60;
  for (; (hour = first_set(hours_, hour)) < 24; ++hour, minute = 0, second = 0) {
    if (hour != total / 3600) minute = second = 0;
    const auto asked = minute;
    for (; (minute = first_set(minutes_, minute)) < 60; ++minute, second = 0) {
      if (minute != asked) second = 0;
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
  // 29 February on a given weekday comes again within 40 years, also around 2100.
  const auto end = first + days(40 * 366);
  for (auto day = first; day < end;) {
    const std::chrono::year_month_day date(day);
    if (!months_.test(static_cast<unsigned>(date.month()))) {
      day = std::chrono::sys_days(std::chrono::year_month_day_last(date.year(), date.month() / std::chrono::last)) + days(1);
      continue;
    }
    if (matches(day, date)) {
      if (const auto time = next_time(day == first ? start - std::chrono::sys_seconds(first) : std::chrono::seconds(0))) return day + *time;
    }
    day += days(1);
  }
  return std::nullopt;
}

}  // namespace HOLDFAST_NAMESPACE
