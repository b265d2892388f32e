#include "outbox/recurring/calendar.hpp"

#include <holdfast/error.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using detail::time_zone;
using detail::outbox::calendar;
using std::chrono::sys_seconds;

/// `2026-03-29 01:00` as UTC.
sys_seconds at(const std::string& text) {
  std::tm parts{};
  std::istringstream in(text);
  char c = 0;
  in >> parts.tm_year >> c >> parts.tm_mon >> c >> parts.tm_mday >> parts.tm_hour >> c >>
      parts.tm_min;
  return std::chrono::sys_days(std::chrono::year(parts.tm_year) / parts.tm_mon / parts.tm_mday) +
         std::chrono::hours(parts.tm_hour) + std::chrono::minutes(parts.tm_min);
}

std::vector<sys_seconds> due(const std::string& expression, const std::string& zone,
                             const std::string& after, const std::string& until) {
  return calendar(expression, time_zone::load(zone)).earliest(at(after), at(until), 10'000);
}

std::vector<sys_seconds> times(std::initializer_list<std::string> texts) {
  std::vector<sys_seconds> result;
  for (const auto& text : texts) result.push_back(at(text));
  return result;
}

TEST(Calendar, FollowsTheZone) {
  EXPECT_EQ(due("0 3 * * *", "Europe/Paris", "2026-01-01 00:00", "2026-01-03 00:00"),
            times({"2026-01-01 02:00", "2026-01-02 02:00"}));
  EXPECT_EQ(due("0 3 * * *", "Europe/Paris", "2026-07-01 00:00", "2026-07-02 00:00"),
            times({"2026-07-01 01:00"}));
  EXPECT_EQ(due("0 0 3 * * *", "", "2026-07-01 00:00", "2026-07-02 00:00"),
            times({"2026-07-01 03:00"}));
}

TEST(Calendar, ATimeThatIsLeftOutIsDueAtTheChange) {
  // 29 March 2026, 01:00 UTC: 02:00 becomes 03:00.
  EXPECT_EQ(due("30 2 * * *", "Europe/Paris", "2026-03-28 00:00", "2026-03-31 00:00"),
            times({"2026-03-28 01:30", "2026-03-29 01:00", "2026-03-30 00:30"}));
  EXPECT_EQ(due("*/20 2,3 * * *", "Europe/Paris", "2026-03-29 00:00", "2026-03-29 23:00"),
            times({"2026-03-29 01:00", "2026-03-29 01:20", "2026-03-29 01:40"}))
      << "several times that are left out are one due time, with the first one after them";
}

TEST(Calendar, ATimeThatIsRepeatedIsDueOnce) {
  // 25 October 2026, 01:00 UTC: 03:00 becomes 02:00.
  EXPECT_EQ(due("30 2 * * *", "Europe/Paris", "2026-10-24 00:00", "2026-10-27 00:00"),
            times({"2026-10-24 00:30", "2026-10-25 00:30", "2026-10-26 01:30"}));
  // From a moment in the second pass.
  EXPECT_EQ(due("30 2 * * *", "Europe/Paris", "2026-10-25 01:15", "2026-10-26 12:00"),
            times({"2026-10-26 01:30"}));
}

TEST(Calendar, EveryHourFollowsElapsedTime) {
  EXPECT_EQ(due("30 * * * *", "Europe/Paris", "2026-10-25 00:00", "2026-10-25 03:00"),
            times({"2026-10-25 00:30", "2026-10-25 01:30", "2026-10-25 02:30"}));
  EXPECT_EQ(due("30 * * * *", "Europe/Paris", "2026-03-29 00:00", "2026-03-29 03:00"),
            times({"2026-03-29 00:30", "2026-03-29 01:30", "2026-03-29 02:30"}));
  EXPECT_EQ(
      due("*/30 * * * *", "Australia/Lord_Howe", "2026-04-04 14:00", "2026-04-04 16:00").size(), 4U)
      << "a change of half an hour";
}

TEST(Calendar, LeapDaysAndMonths) {
  EXPECT_EQ(due("0 12 29 2 *", "", "2026-01-01 00:00", "2033-01-01 00:00"),
            times({"2028-02-29 12:00", "2032-02-29 12:00"}));
  EXPECT_EQ(due("0 0 31 * *", "", "2026-01-01 00:00", "2026-07-01 00:00"),
            times({"2026-01-31 00:00", "2026-03-31 00:00", "2026-05-31 00:00"}));
  EXPECT_EQ(due("0 0 L * *", "", "2026-01-01 00:00", "2026-04-01 00:00"),
            times({"2026-01-31 00:00", "2026-02-28 00:00", "2026-03-31 00:00"}));
  EXPECT_EQ(due("0 12 30 12 *", "Pacific/Apia", "2011-01-01 00:00", "2013-01-01 00:00"),
            times({"2011-12-30 10:00", "2012-12-29 22:00"}))
      << "Samoa left out 30 December 2011";
}

TEST(Calendar, RefusesWhatIsNoExpression) {
  for (const char* expression :
       {"", "* * *", "61 * * * *", "0 0 30 2 *", "@never", "* * * * * * *"})
    EXPECT_THROW(calendar(expression, time_zone()), error) << expression;
  EXPECT_EQ(due("@daily", "", "2026-01-01 00:00", "2026-01-02 00:00"), times({"2026-01-02 00:00"}));
}

/// Compares with a search over all minutes around the changes of a zone.
TEST(Calendar, AgreesWithASearch) {
  std::mt19937 random(11);
  const auto pick = [&](int most) {
    return static_cast<int>(random() % static_cast<unsigned>(most));
  };
  for (const char* name : {"Europe/Paris", "America/New_York", "Australia/Lord_Howe",
                           "Africa/Casablanca", "Pacific/Apia", "America/St_Johns", "Asia/Gaza"}) {
    const auto zone = time_zone::load(name);
    for (int round = 0; round < 60; ++round) {
      const auto change =
          zone.next_transition(at("2005-01-01 00:00") + std::chrono::hours(pick(24 * 365 * 30)));
      if (!change) continue;
      const auto begin = std::chrono::floor<std::chrono::minutes>(change->begin) - 30h;
      const auto end = begin + 60h;
      const bool every_hour = pick(2) == 0;
      const std::string expression =
          std::string("*/") + std::to_string(5 + pick(30)) +
          (every_hour ? " *" : " " + std::to_string(pick(4)) + "-" + std::to_string(4 + pick(3))) +
          " * * *";
      const auto fields = detail::cron::parse("0 " + expression);
      const auto matches = [&](sys_seconds local) { return fields.next(local - 1s) == local; };
      std::set<sys_seconds> expected;
      if (every_hour) {
        for (sys_seconds time = begin + 1min; time <= end; time += 1min)
          if (matches(time + zone.offset_at(time))) expected.insert(time);
      } else {
        // The first moment at which it is this local time or later.
        sys_seconds latest_local = sys_seconds(begin - 48h) + zone.offset_at(begin - 48h);
        for (sys_seconds time = begin - 48h; time <= end; time += 1min) {
          const auto local = time + zone.offset_at(time);
          for (; latest_local < local; latest_local += 1min)
            if (matches(latest_local + 1min) && time > begin) expected.insert(time);
        }
      }
      const calendar times(expression, zone);
      const auto found = times.earliest(begin, end, 10'000);
      ASSERT_EQ(std::set<sys_seconds>(found.begin(), found.end()), expected)
          << name << ' ' << expression << ' ' << change->begin.time_since_epoch().count();
      for (const std::size_t most : {1U, 3U, 50U}) {
        auto tail = found;
        if (tail.size() > most)
          tail.erase(tail.begin(), tail.end() - static_cast<std::ptrdiff_t>(most));
        ASSERT_EQ(times.latest(begin, end, most), tail);
      }
    }
  }
}

TEST(Calendar, FindsTheLatestOfManyYearsAtOnce) {
  const calendar every_second("* * * * * *", time_zone());
  const auto latest = every_second.latest(at("1990-01-01 00:00"), at("2026-01-01 00:00"), 3);
  EXPECT_EQ(latest,
            (std::vector<sys_seconds>{at("2026-01-01 00:00") - 2s, at("2026-01-01 00:00") - 1s,
                                      at("2026-01-01 00:00")}));
  // All in one January of each year.
  const calendar in_january("* * * 1 1 *", time_zone());
  const auto old = in_january.latest(at("1990-01-01 00:00"), at("2026-12-01 00:00"), 2);
  EXPECT_EQ(old.back(), at("2026-01-02 00:00") - 1s);
}

}  // namespace
}  // namespace holdfast::test
