#include "base/cron.hpp"

#include <holdfast/error.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace holdfast;
using namespace std::chrono;
using namespace std::chrono_literals;

/// 2026-01-02 was a Friday.
constexpr auto friday = sys_days(2026y / 1 / 2);

std::string text_of(sys_seconds when) {
  const auto day = floor<days>(when);
  const year_month_day date(day);
  const hh_mm_ss time(when - day);
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%04d-%02u-%02u %02d:%02d:%02d",
                static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                static_cast<unsigned>(date.day()), static_cast<int>(time.hours().count()),
                static_cast<int>(time.minutes().count()), static_cast<int>(time.seconds().count()));
  return buffer;
}

std::string next_of(std::string_view expression, sys_seconds after = friday + 10h + 30min + 15s) {
  const auto found = detail::cron::parse(expression).next(after);
  return found ? text_of(*found) : "never";
}

TEST(Cron, FindsTheNextMoment) {
  EXPECT_EQ(next_of("* * * * * *"), "2026-01-02 10:30:16");
  EXPECT_EQ(next_of("0 0 * * * *"), "2026-01-02 11:00:00");
  EXPECT_EQ(next_of("0 30 10 * * *"), "2026-01-03 10:30:00");
  EXPECT_EQ(next_of("15 30 10 * * *"), "2026-01-03 10:30:15") << "never the moment itself";
  EXPECT_EQ(next_of("16 30 10 * * *"), "2026-01-02 10:30:16");
  EXPECT_EQ(next_of("0 0 0 1 * *"), "2026-02-01 00:00:00");
  EXPECT_EQ(next_of("0 0 0 1 1 *"), "2027-01-01 00:00:00");
  EXPECT_EQ(next_of("59 59 23 31 12 *"), "2026-12-31 23:59:59");
}

TEST(Cron, ReadsListsRangesAndSteps) {
  EXPECT_EQ(next_of("0 */15 * * * *"), "2026-01-02 10:45:00");
  EXPECT_EQ(next_of("0 5/20 * * * *"), "2026-01-02 10:45:00") << "5, 25, 45";
  EXPECT_EQ(next_of("0 10-20/5 * * * *"), "2026-01-02 11:10:00");
  EXPECT_EQ(next_of("10,20,40 * * * * *"), "2026-01-02 10:30:20");
  EXPECT_EQ(next_of("0 0 8-10,22 * * *"), "2026-01-02 22:00:00");
  EXPECT_EQ(next_of("0 0 0 */10 * *"), "2026-01-11 00:00:00");
  EXPECT_EQ(next_of("0 0 0 1/999 * *"), "2026-02-01 00:00:00");
  EXPECT_EQ(next_of("  0\t0  * * * *  "), "2026-01-02 11:00:00");
}

TEST(Cron, ReadsNamesInAnyCase) {
  EXPECT_EQ(next_of("0 0 0 ? * MON"), "2026-01-05 00:00:00");
  EXPECT_EQ(next_of("0 0 0 ? * mon-wed"), "2026-01-05 00:00:00");
  EXPECT_EQ(next_of("0 0 0 1 MAR,jun ?"), "2026-03-01 00:00:00");
  EXPECT_EQ(next_of("0 0 0 ? * FRI-SUN"), "2026-01-03 00:00:00");
  EXPECT_EQ(next_of("0 0 0 ? * SUN-TUE"), "2026-01-04 00:00:00");
  EXPECT_EQ(next_of("0 0 0 ? * 6/2"), "2026-01-03 00:00:00");
}

TEST(Cron, SundayIsZeroAndSeven) {
  for (const char* sunday : {"0", "7", "SUN", "7-7", "0,7"})
    EXPECT_EQ(next_of("0 0 0 * * " + std::string(sunday)), "2026-01-04 00:00:00");
  EXPECT_EQ(next_of("0 0 0 * * 5-7"), "2026-01-03 00:00:00");
  EXPECT_EQ(next_of("0 0 0 * * 7-1"), "2026-01-04 00:00:00");
  EXPECT_EQ(next_of("0 0 0 * * 7/4"), "2026-01-04 00:00:00") << "Sunday and Thursday";
}

TEST(Cron, BothDaysMustMatch) { EXPECT_EQ(next_of("0 0 0 13 * FRI"), "2026-02-13 00:00:00"); }

TEST(Cron, KnowsTheLastDays) {
  EXPECT_EQ(next_of("0 0 0 L * *"), "2026-01-31 00:00:00");
  EXPECT_EQ(next_of("0 0 0 L FEB ?"), "2026-02-28 00:00:00");
  EXPECT_EQ(next_of("0 0 0 L 2 ?", sys_days(2028y / 1 / 1)), "2028-02-29 00:00:00");
  EXPECT_EQ(next_of("0 0 0 L-3 * ?"), "2026-01-28 00:00:00");
  EXPECT_EQ(next_of("0 0 0 1,L * ?"), "2026-01-31 00:00:00");
  EXPECT_EQ(next_of("0 0 0 ? * FRIL"), "2026-01-30 00:00:00");
  EXPECT_EQ(next_of("0 0 0 ? * 7L"), "2026-01-25 00:00:00");
}

TEST(Cron, KnowsMacros) {
  EXPECT_EQ(next_of("@hourly"), "2026-01-02 11:00:00");
  EXPECT_EQ(next_of("@daily"), next_of("@midnight"));
  EXPECT_EQ(next_of("@daily"), "2026-01-03 00:00:00");
  EXPECT_EQ(next_of("@weekly"), "2026-01-04 00:00:00");
  EXPECT_EQ(next_of("@monthly"), "2026-02-01 00:00:00");
  EXPECT_EQ(next_of("@yearly"), next_of("@annually"));
  EXPECT_EQ(next_of("@yearly"), "2027-01-01 00:00:00");
}

TEST(Cron, FindsRareDates) {
  EXPECT_EQ(next_of("0 0 0 29 2 *"), "2028-02-29 00:00:00");
  EXPECT_EQ(next_of("0 0 0 29 2 MON"), "2044-02-29 00:00:00");
  EXPECT_EQ(next_of("0 0 0 29 2 *", sys_days(2096y / 3 / 1)), "2104-02-29 00:00:00")
      << "2100 is no leap year";
}

TEST(Cron, SaysWhatIsWrongAndWhere) {
  const auto problem = [](std::string_view expression) -> std::string {
    try {
      (void)detail::cron::parse(expression);
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::invalid_argument);
      return e.what();
    }
    return "accepted";
  };
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "has 0 fields"},
      {"* * * * *", "has 5 fields"},
      {"* * * * * * *", "has 7 fields"},
      {"60 * * * * *", "'second' cannot be '60': 60 is not between 0 and 59"},
      {"* 60 * * * *", "'minute'"},
      {"* * 24 * * *", "'hour'"},
      {"* * * 0 * *", "'day of month'"},
      {"* * * 32 * *", "'day of month'"},
      {"* * * * 13 *", "'month'"},
      {"* * * * JANUARY *", "'month' cannot be 'JANUARY'"},
      {"* * * * * 8", "'day of week'"},
      {"* * * * * FUN", "is not a number or a name"},
      {"-1 * * * * *", "'second'"},
      {"1- * * * * *", "'second'"},
      {"5-1 * * * * *", "ends before it begins"},
      {"* * * * * SAT-MON", "ends before it begins"},
      {"*/0 * * * * *", "the step after '/'"},
      {"*/ * * * * *", "the step after '/'"},
      {"1//2 * * * * *", "the step after '/'"},
      {"1,,2 * * * * *", "'second'"},
      {"? * * * * *", "'?' is for the fields of days"},
      {"+1 * * * * *", "is not a number"},
      {"99999999999999999999 * * * * *", "is not a number"},
      {"* * * L-31 * *", "'day of month' cannot be 'L-31'"},
      {"* * * LW * *", "'day of month' cannot be 'LW'"},
      {"* * * * * MON#2", "'day of week'"},
      {"* * * 15W * *", "'day of month'"},
      {"@never", "is not a macro"},
      {"0 0 0 30 2 *", "never run"},
      {"0 0 0 31 2,4,6,9,11 *", "never run"},
      {"0 0 0 L-29 2 *", "never run"},
      {std::string(300, '*'), "longer than 256"}};
  for (const auto& [expression, expected] : cases) {
    const auto what = problem(expression);
    EXPECT_NE(what.find(expected), std::string::npos) << "'" << expression << "': " << what;
  }
}

}  // namespace
