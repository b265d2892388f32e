// The cron expressions against a plain oracle: it reads the expression in its own way, and walks
// through time second by second.

#include "base/cron.hpp"

#include <holdfast/error.hpp>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace {

using namespace std::chrono;

/// What one field says, as text and as the numbers that it means.
struct choice {
  std::string text{};
  std::set<int> numbers{};
};

constexpr std::array<const char*, 7> day_names{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"};
constexpr std::array<const char*, 12> month_names{"JAN", "feb", "Mar", "APR", "MAY", "JUN",
                                                  "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"};

std::string named(int number, int names) {
  if (names == 7 && *rc::gen::arbitrary<bool>())
    return day_names.at(static_cast<std::size_t>(number % 7));
  if (names == 12 && *rc::gen::arbitrary<bool>())
    return month_names.at(static_cast<std::size_t>(number - 1));
  return std::to_string(number);
}

choice one_part(int low, int high, int names) {
  const int kind = *rc::gen::weightedElement<int>({{2, 0}, {4, 1}, {3, 2}, {2, 3}, {2, 4}, {1, 5}});
  const int first = *rc::gen::inRange(low, high + 1);
  const int last = *rc::gen::inRange(first, high + 1);
  const int step = *rc::gen::inRange(1, 20);
  choice made;
  const auto fill = [&](int from, int to, int by) {
    for (int i = from; i <= to; i += by) made.numbers.insert(i);
  };
  switch (kind) {
    case 0:
      made.text = "*", fill(low, high, 1);
      break;
    case 1:
      made.text = named(first, names), fill(first, first, 1);
      break;
    case 2:
      made.text = named(first, names) + "-" + named(last, names), fill(first, last, 1);
      break;
    case 3:
      made.text = "*/" + std::to_string(step), fill(low, high, step);
      break;
    case 4:
      made.text = named(first, names) + "/" + std::to_string(step), fill(first, high, step);
      break;
    default:
      made.text = named(first, names) + "-" + named(last, names) + "/" + std::to_string(step);
      fill(first, last, step);
  }
  return made;
}

choice field(int low, int high, int names = 0) {
  choice all = one_part(low, high, names);
  const int more = *rc::gen::weightedElement<int>({{6, 0}, {2, 1}, {1, 2}});
  for (int i = 0; i < more; ++i) {
    const auto part = one_part(low, high, names);
    all.text.append(",").append(part.text);
    all.numbers.insert(part.numbers.begin(), part.numbers.end());
  }
  return all;
}

struct expression {
  choice second = field(0, 59);
  choice minute = field(0, 59);
  choice hour = field(0, 23);
  choice day = field(1, 31);
  choice month = field(1, 12, 12);
  choice weekday = field(0, 6, 7);

  [[nodiscard]] std::string text() const {
    return second.text + " " + minute.text + " " + hour.text + " " + day.text + " " + month.text +
           " " + weekday.text;
  }
  [[nodiscard]] bool matches_day(sys_days when) const {
    const year_month_day date(when);
    return month.numbers.contains(static_cast<int>(static_cast<unsigned>(date.month()))) &&
           day.numbers.contains(static_cast<int>(static_cast<unsigned>(date.day()))) &&
           weekday.numbers.contains(static_cast<int>(weekday_of(when)));
  }
  /// Counted on from a known Thursday, not by the calendar of the code under test.
  [[nodiscard]] static unsigned weekday_of(sys_days when) {
    const auto since = when.time_since_epoch().count();  // 1970-01-01 was a Thursday
    return static_cast<unsigned>(((since + 4) % 7 + 7) % 7);
  }
  /// Days, then seconds of a day, one by one.
  [[nodiscard]] std::optional<sys_seconds> next(sys_seconds after) const {
    auto day_begin = floor<days>(after);
    for (int i = 0; i < 366 * 12; ++i, day_begin += days(1)) {
      if (!matches_day(day_begin)) continue;
      for (int s = 0; s < 86400; ++s) {
        const auto moment = sys_seconds(day_begin) + seconds(s);
        if (moment > after && hour.numbers.contains(s / 3600) &&
            minute.numbers.contains(s / 60 % 60) && second.numbers.contains(s % 60))
          return moment;
      }
    }
    return std::nullopt;
  }
};

RC_GTEST_PROP(CronProperty, AgreesWithTheOracle, ()) {
  const expression made;
  // To 2100
  const auto after = sys_seconds(seconds(*rc::gen::inRange<std::int64_t>(0, 4102444800)));
  const auto expected = made.next(after);
  RC_PRE(expected.has_value());
  RC_LOG() << made.text() << " after " << after.time_since_epoch().count();
  RC_ASSERT(holdfast::detail::cron::parse(made.text()).next(after) == expected);
}

RC_GTEST_PROP(CronProperty, TheNextOfTheNextIsLater, ()) {
  const expression made;
  auto at = sys_seconds(seconds(*rc::gen::inRange<std::int64_t>(0, 4102444800)));
  RC_PRE(made.next(at).has_value());
  const auto cron = holdfast::detail::cron::parse(made.text());
  for (int i = 0; i < 50; ++i) {
    const auto next = cron.next(at);
    RC_ASSERT(next.has_value());
    RC_ASSERT(*next > at);
    at = *next;
  }
}

/// Text from outside never does more than be refused.
RC_GTEST_PROP(CronProperty, AnyTextIsReadOrRefused, ()) {
  const auto text = *rc::gen::container<std::string>(
      rc::gen::elementOf(std::string("0123456789*?/,-L# @aMONJFRI\t")));
  try {
    (void)holdfast::detail::cron::parse(text).next(sys_seconds(seconds(0)));
  } catch (const holdfast::error& e) {
    RC_ASSERT(e.code() == holdfast::errc::invalid_argument);
  }
}

}  // namespace
