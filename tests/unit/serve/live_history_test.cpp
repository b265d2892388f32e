// Numbers over time by a clock of the test: steps, limits, a restart.

#include <holdfast/error.hpp>

#include "serve/live/history.hpp"
#include "support/failure_of.hpp"
#include "support/temporary_directory.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace {

using namespace holdfast;
using namespace holdfast::detail::serve;
using namespace std::chrono_literals;
using test::failure_of;

constexpr timestamp begin = std::chrono::sys_days(std::chrono::year(2026) / 11 / 15) + 12h;

std::unique_ptr<state_database> history_database(const test::temporary_directory& directory) {
  return std::make_unique<state_database>(
      state_database_options{.url = "sqlite://" + (directory.path() / "state.db").string(),
                             .clock = system_clock(),
                             .log = std::make_shared<const logger>(log_sink{})});
}

/// Adds the number of minutes since the begin, every 10 seconds.
void fill(history& tested, timestamp begin_time, timestamp end_time,
          const std::string& subject = "a") {
  for (auto now = begin_time; now < end_time; now += 10s) {
    const auto minute = std::chrono::floor<std::chrono::minutes>(now - begin).count();
    tested.add(now, {{{"point.rate", subject}, static_cast<double>(minute)}});
  }
}

TEST(History, TenSecondsInMemory) {
  history tested;
  fill(tested, begin, begin + 10min);
  const auto answer = tested.read(
      {.series = {"point.rate"}, .begin_time = begin, .end_time = begin + 10min, .step = 10s});
  ASSERT_EQ(answer.all.size(), 1U);
  ASSERT_EQ(answer.moment.size(), 61U);
  EXPECT_EQ(answer.moment[6], begin + 1min);
  const auto& values = answer.all[0].values;
  EXPECT_EQ(values[0], 0);
  EXPECT_EQ(values[5], 0);
  EXPECT_EQ(values[6], 1);
  EXPECT_EQ(values[59], 9);
  EXPECT_TRUE(std::isnan(values[60])) << "not measured yet";
  const auto coarse = tested.read(
      {.series = {"point.rate"}, .begin_time = begin, .end_time = begin + 10min, .step = 2min});
  ASSERT_EQ(coarse.moment.size(), 6U);
  EXPECT_DOUBLE_EQ(coarse.all[0].values[1], 2.5) << "the mean of minutes 2 and 3";
}

TEST(History, TheLastStepContainsTheEnd) {
  history tested;
  fill(tested, begin, begin + 2min);
  const auto answer = tested.read({.series = {"point.rate"},
                                   .begin_time = begin + 5s,
                                   .end_time = begin + 1min + 1s,
                                   .step = 10s});
  ASSERT_EQ(answer.moment.size(), 7U);
  EXPECT_EQ(answer.moment.front(), begin);
  EXPECT_EQ(answer.moment.back(), begin + 1min);
  EXPECT_EQ(answer.all.at(0).values.back(), 1);
}

TEST(History, SelectsSeriesByNameAndSubject) {
  history tested;
  tested.add(begin, {{{"point.rate", "a"}, 1},
                     {{"point.rate", "b"}, 2},
                     {{"point.rated", "a"}, 3},
                     {{"store.unsaved", "a"}, 4}});
  const auto names = [&](std::vector<std::string> series) {
    std::string text;
    const auto answer = tested.read(
        {.series = std::move(series), .begin_time = begin, .end_time = begin, .step = 10s});
    for (const auto& each : answer.all) text += each.id.name + ":" + each.id.subject + " ";
    return text;
  };
  EXPECT_EQ(names({"point.rate"}), "point.rate:a point.rate:b ");
  EXPECT_EQ(names({"point.rate:b", "store.unsaved"}), "point.rate:b store.unsaved:a ");
  EXPECT_EQ(names({"point"}), "");
  EXPECT_EQ(names({"point.rate:"}), "");
}

TEST(History, OldNumbersLeaveTheMemory) {
  history tested;
  fill(tested, begin, begin + 7h);
  const auto answer = tested.read(
      {.series = {"point.rate"}, .begin_time = begin, .end_time = begin + 7h, .step = 1min});
  const auto& values = answer.all.at(0).values;
  EXPECT_TRUE(std::isnan(values[30]));
  EXPECT_EQ(values[61], 61);
  EXPECT_EQ(values[419], 419);
}

TEST(History, GapsHaveNoNumbers) {
  history tested;
  fill(tested, begin, begin + 1min);
  fill(tested, begin + 5min, begin + 6min);
  tested.add(begin + 2min, {{{"point.rate", "a"}, 99}});  // the clock went back
  const auto answer = tested.read(
      {.series = {"point.rate"}, .begin_time = begin, .end_time = begin + 5min, .step = 1min});
  const auto& values = answer.all.at(0).values;
  EXPECT_EQ(values[0], 0);
  for (std::size_t i = 1; i < 5; ++i) EXPECT_TRUE(std::isnan(values[i])) << i;
  EXPECT_EQ(values[5], 5);
}

TEST(History, MinutesSurviveARestart) {
  const test::temporary_directory directory("history");
  {
    const auto database = history_database(directory);
    history before(database.get());
    fill(before, begin, begin + 90min + 30s);
    before.flush();
    EXPECT_EQ(before.failures(), 0U);
  }
  const auto database = history_database(directory);
  history after(database.get());
  fill(after, begin + 100min, begin + 130min);
  const auto answer = after.read(
      {.series = {"point.rate"}, .begin_time = begin, .end_time = begin + 130min, .step = 1min});
  const auto& values = answer.all.at(0).values;
  for (const std::size_t minute : {0U, 1U, 59U, 60U, 89U, 90U, 100U, 129U})
    EXPECT_EQ(values[minute], static_cast<double>(minute)) << minute;
  for (const std::size_t minute : {92U, 99U, 130U}) EXPECT_TRUE(std::isnan(values[minute]));
  // The hour in which it was restarted keeps its first minutes when it is written again.
  after.flush();
  history later(database.get());
  const auto again = later.read(
      {.series = {"point.rate"}, .begin_time = begin, .end_time = begin + 130min, .step = 1min});
  EXPECT_EQ(again.all.at(0).values[61], 61);
  EXPECT_EQ(again.all.at(0).values[129], 129);
}

// The first hour of the step has left the memory, the second one has not.
TEST(History, AStepMayBeginInTheDatabaseAndEndInMemory) {
  const test::temporary_directory directory("history");
  const auto database = history_database(directory);
  history tested(database.get());
  fill(tested, begin, begin + 2h);
  fill(tested, begin + 7h - 10s, begin + 7h);
  const auto answer =
      tested.read({.series = {"point.rate"}, .begin_time = begin, .end_time = begin, .step = 2h});
  EXPECT_DOUBLE_EQ(answer.all.at(0).values.at(0), 59.5) << "the mean of the minutes 0 to 119";
}

TEST(History, SelectsStoredSeriesByNameAndSubject) {
  const test::temporary_directory directory("history");
  const auto database = history_database(directory);
  {
    history before(database.get());
    before.add(begin, {{{"point.rate", "a"}, 1},
                       {{"point.rate", "b"}, 2},
                       {{"point.rated", "a"}, 3},
                       {{"store.unsaved", "a"}, 4}});
    before.flush();
  }
  const history after(database.get());
  std::string names;
  const auto answer = after.read({.series = {"point.rate:b", "store.unsaved"},
                                  .begin_time = begin,
                                  .end_time = begin,
                                  .step = 10s});
  for (const auto& each : answer.all) names += each.id.name + ":" + each.id.subject + " ";
  EXPECT_EQ(names, "point.rate:b store.unsaved:a ");
}

TEST(History, OldHoursAreRemoved) {
  const test::temporary_directory directory("history");
  const auto database = history_database(directory);
  history tested(database.get());
  fill(tested, begin, begin + 2min);
  fill(tested, begin + std::chrono::days(31), begin + std::chrono::days(31) + 2min);
  auto session = database->read("test");
  const auto rows =
      session.query("SELECT COUNT(*) FROM HOLDFAST_SERVE_HISTORY", {}, {sql::type::integer});
  EXPECT_EQ(integer_of(rows, 0, 0), 1);
}

TEST(History, RequestsAreBounded) {
  history tested;
  fill(tested, begin, begin + 1min);
  const auto refused = [&](const history_request& request) {
    return failure_of([&] { (void)tested.read(request); }).path();
  };
  EXPECT_EQ(refused({.series = {}, .begin_time = begin, .end_time = begin, .step = 10s}), "series");
  EXPECT_EQ(refused({.series = {"a"}, .begin_time = begin, .end_time = begin - 1s, .step = 10s}),
            "to");
  EXPECT_EQ(refused({.series = {"a"}, .begin_time = begin, .end_time = begin, .step = 9s}), "step");
  EXPECT_EQ(refused({.series = {"a"},
                     .begin_time = begin,
                     .end_time = begin + std::chrono::days(31),
                     .step = 1h}),
            "from");
  EXPECT_EQ(
      refused(
          {.series = {"point.rate"}, .begin_time = begin, .end_time = begin + 56h, .step = 10s}),
      "step");
  EXPECT_EQ(
      refused({.series = {"unknown"}, .begin_time = begin, .end_time = begin + 56h, .step = 10s}),
      "step")
      << "an answer without a series has its moments";
  EXPECT_EQ(refused({.series = {"a"},
                     .begin_time = timestamp::min(),
                     .end_time = timestamp::max(),
                     .step = 10s}),
            "from");
}

TEST(History, SeriesAreBounded) {
  history tested;
  std::vector<series_value> values;
  for (std::size_t i = 0; i < history::max_series + 100; ++i)
    values.push_back({{"point.rate", std::to_string(i)}, 1});
  tested.add(begin, values);
  EXPECT_EQ(
      tested.read({.series = {"point.rate"}, .begin_time = begin, .end_time = begin, .step = 10s})
          .all.size(),
      history::max_series);
}

TEST(History, ASeriesMayBeginWithItsFirstNumber) {
  history tested;
  const auto count = [&](std::string name) {
    return tested
        .read(
            {.series = {std::move(name)}, .begin_time = begin, .end_time = begin + 1h, .step = 10s})
        .all.size();
  };
  tested.add(begin, {{{"point.staleRatio", "a"}, 0, false}, {{"point.rate", "a"}, 0}});
  EXPECT_EQ(count("point.staleRatio"), 0U) << "most points never fail";
  EXPECT_EQ(count("point.rate"), 1U);
  tested.add(begin + 10s, {{{"point.staleRatio", "a"}, 0.5, false}});
  tested.add(begin + 20s, {{{"point.staleRatio", "a"}, 0, false}});
  const auto answer = tested.read({.series = {"point.staleRatio:a"},
                                   .begin_time = begin,
                                   .end_time = begin + 20s,
                                   .step = 10s});
  ASSERT_EQ(answer.all.size(), 1U);
  EXPECT_EQ(answer.all[0].values.at(1), 0.5);
  EXPECT_EQ(answer.all[0].values.at(2), 0);
}

TEST(History, SeriesThatHaveEndedLeaveRoomForOthers) {
  history tested;
  std::vector<series_value> old;
  for (std::size_t i = 0; i < history::max_series; ++i)
    old.push_back({{"point.rate", "old " + std::to_string(i)}, 1});
  tested.add(begin, old);
  const std::vector<series_value> later{{{"point.rate", "later"}, 1}};
  const auto has_room = [&](timestamp moment) {
    tested.add(moment, later);
    return !tested
                .read({.series = {"point.rate:later"},
                       .begin_time = moment,
                       .end_time = moment,
                       .step = 10s})
                .all.empty();
  };
  EXPECT_FALSE(has_room(begin + 5h));
  // Nothing in memory is older than 6 hours.
  (void)has_room(begin + 7h);
  EXPECT_TRUE(has_room(begin + 8h));
}

TEST(History, GoesOnWithoutItsDatabase) {
  state_database broken({.url = "sqlite:///nonexistent/state.db",
                         .clock = system_clock(),
                         .log = std::make_shared<const logger>(log_sink{})});
  history tested(&broken);
  fill(tested, begin, begin + 5min);
  EXPECT_GE(tested.failures(), 4U);
  EXPECT_EQ(tested
                .read({.series = {"point.rate"},
                       .begin_time = begin + 1min,
                       .end_time = begin + 1min,
                       .step = 10s})
                .all.at(0)
                .values.at(0),
            1);
}

}  // namespace
