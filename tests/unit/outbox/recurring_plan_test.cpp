#include <holdfast/error.hpp>
#include <holdfast/outbox.hpp>

#include "outbox/recurring/definition.hpp"
#include "outbox/recurring/plan.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using detail::time_zone;
using detail::outbox::calendar;
using detail::outbox::plan_recurrence;
using detail::outbox::read_recurrence;
using detail::outbox::recurrence_plan;
using detail::outbox::recurrence_record;
using detail::outbox::recurrence_text;
using std::chrono::sys_days;
using std::chrono::sys_seconds;
using std::chrono::year;

const sys_seconds start = sys_days(year(2026) / 1 / 1);

recurrence_record record_of(const std::string& cron, recurrence_options options = {}) {
  recurrence_record record{
      .definition = {.cron = cron, .options = options, .event = {.type = "t"}}};
  record.progress.after = start;
  return record;
}

/// Steps until nothing is due.
std::vector<sys_seconds> run(recurrence_record& record, sys_seconds now, bool undelivered = false,
                             const time_zone& zone = {}, std::size_t most = 10) {
  const calendar times(record.definition.cron, zone);
  std::vector<sys_seconds> all;
  for (int step = 0; step < 1000; ++step) {
    const auto plan = plan_recurrence(record, times, now, undelivered, most);
    EXPECT_LE(plan.due_times.size(), most);
    record.progress = plan.progress;
    all.insert(all.end(), plan.due_times.begin(), plan.due_times.end());
    if (plan.review > now) return all;
  }
  ADD_FAILURE() << "it does not end";
  return all;
}

TEST(RecurringPlan, PublishesEachDueTimeOnce) {
  auto record = record_of("0 * * * *");
  EXPECT_TRUE(run(record, start + 59min).empty());
  EXPECT_EQ(run(record, start + 1h), (std::vector<sys_seconds>{start + 1h}));
  EXPECT_TRUE(run(record, start + 1h).empty());
  EXPECT_TRUE(run(record, start + 1h + 59min).empty());
  EXPECT_EQ(run(record, start + 2h + 3s), (std::vector<sys_seconds>{start + 2h}));
  EXPECT_EQ(record.progress.published, 2U);
  EXPECT_EQ(record.progress.skipped, 0U);
}

TEST(RecurringPlan, CatchesUpAfterAWeek) {
  const auto now = start + 24h * 7 + 30min;
  auto none = record_of("0 * * * *", {.catch_up = catch_up_policy::none});
  EXPECT_TRUE(run(none, now).empty());
  EXPECT_EQ(none.progress.skipped, 168U);
  auto last = record_of("0 * * * *", {.catch_up = catch_up_policy::last});
  EXPECT_EQ(run(last, now), (std::vector<sys_seconds>{start + 24h * 7}));
  EXPECT_EQ(last.progress.skipped, 167U);
  auto all = record_of("0 * * * *", {.catch_up = catch_up_policy::all, .catch_up_limit = 1000});
  EXPECT_EQ(run(all, now).size(), 168U);
  EXPECT_EQ(all.progress.skipped, 0U);
  auto some = record_of("0 * * * *", {.catch_up = catch_up_policy::all, .catch_up_limit = 25});
  const auto times = run(some, now);
  ASSERT_EQ(times.size(), 25U);
  EXPECT_EQ(times.front(), start + 24h * 6);
  EXPECT_EQ(times.back(), start + 24h * 7);
  EXPECT_EQ(some.progress.skipped, 143U);
}

TEST(RecurringPlan, WhatIsNotMissedIsNotCaughtUp) {
  for (const auto policy : {catch_up_policy::none, catch_up_policy::last, catch_up_policy::all}) {
    auto record = record_of("* * * * * *", {.catch_up = policy, .catch_up_limit = 3});
    EXPECT_EQ(run(record, start + 60s).size(), 60U) << to_string(policy);
    EXPECT_EQ(run(record, start + 90s).size(), 30U) << to_string(policy);
  }
  auto record = record_of("* * * * * *", {.catch_up = catch_up_policy::none, .tolerance = 0ms});
  EXPECT_EQ(run(record, start + 60s).size(), 1U);
}

TEST(RecurringPlan, SkipsWhileTheLastEventIsUndelivered) {
  auto record = record_of("0 * * * *", {.overlap = overlap_policy::skip});
  EXPECT_EQ(run(record, start + 1h).size(), 1U);
  EXPECT_TRUE(run(record, start + 2h, true).empty());
  EXPECT_TRUE(run(record, start + 2h, false).empty()) << "that due time is over";
  EXPECT_EQ(run(record, start + 3h).size(), 1U);
  EXPECT_EQ(record.progress.skipped, 1U);
  record.definition.options.catch_up = catch_up_policy::all;
  EXPECT_EQ(run(record, start + 24h), (std::vector<sys_seconds>{start + 24h}))
      << "the first of several would be undelivered when the next one is due";
}

TEST(RecurringPlan, AClockThatIsSetBackRepeatsNothing) {
  auto record = record_of("*/10 * * * *");
  std::set<sys_seconds> published;
  std::size_t count = 0;
  for (const auto now :
       {start + 1h, start + 5h, start + 4h, start + 4h + 59min, start + 5h + 10min})
    for (const auto due : run(record, now)) count += published.insert(due).second ? 1 : 100;
  EXPECT_EQ(count, published.size());
  EXPECT_EQ(*published.rbegin(), start + 5h + 10min);
}

TEST(RecurringPlan, AClockThatWasAYearAheadDoesNotStopItForAYear) {
  auto record = record_of("0 * * * *");
  const auto ahead = start + std::chrono::hours(24 * 365);
  EXPECT_FALSE(run(record, ahead).empty());
  const calendar times("0 * * * *", {});
  const auto plan = plan_recurrence(record, times, start + 90min, false, 10);
  EXPECT_TRUE(plan.clock_was_ahead);
  EXPECT_EQ(plan.review, start + 2h);
  record.progress = plan.progress;
  EXPECT_EQ(run(record, start + 2h).size(), 1U);
}

TEST(RecurringPlan, NewTimeZoneDataMovesTheNextDueTime) {
  auto record = record_of("0 3 * * *");
  const auto paris = time_zone::load("Europe/Paris");
  const auto tokyo = time_zone::load("Asia/Tokyo");
  EXPECT_TRUE(run(record, start + 1min, false, paris).empty());
  EXPECT_EQ(record.progress.next, start + 2h);
  // Another zone is as good as new data of the same: it is due 16 hours later.
  EXPECT_TRUE(run(record, start + 2h, false, tokyo).empty());
  EXPECT_EQ(record.progress.next, start + 18h);
  EXPECT_EQ(run(record, start + 18h, false, tokyo).size(), 1U);
}

TEST(RecurringPlan, IsReviewedOnceADay) {
  auto record = record_of("0 0 1 7 *");
  const auto plan = plan_recurrence(record, calendar("0 0 1 7 *", {}), start, false, 10);
  EXPECT_EQ(plan.review, start + 24h);
  EXPECT_EQ(plan.progress.next, sys_days(year(2026) / 7 / 1));
}

/// Any sequence of times and cuts: nothing comes twice, and the order is kept.
TEST(RecurringPlan, NeverPublishesADueTimeTwice) {
  for (unsigned seed = 1; seed <= 500; ++seed) {
    std::mt19937 random(seed);
    const char* crons[] = {"* * * * *", "*/15 * * * * *", "0 3 * * *", "30 2 * * *", "0 0 29 2 *"};
    auto record =
        record_of(crons[random() % 5],
                  {.overlap = random() % 2 == 0 ? overlap_policy::queue : overlap_policy::skip,
                   .catch_up = static_cast<catch_up_policy>(random() % 3),
                   .catch_up_limit = 1 + random() % 200,
                   .tolerance = std::chrono::seconds(random() % 200)});
    const auto zone = time_zone::load("Europe/Paris");
    auto now = start + std::chrono::hours(24 * 80);
    record.progress.after = now;
    std::vector<sys_seconds> all;
    auto latest = now;
    for (int step = 0; step < 60; ++step) {
      const int jump = static_cast<int>(random() % 20);
      if (jump == 0) now -= std::chrono::minutes(random() % 600);
      else if (jump < 4) now += std::chrono::hours(random() % 300);
      else now += std::chrono::seconds(random() % 200);
      latest = std::max(latest, now);
      now = std::max(now, latest - 24h);  // beyond that, due times repeat on purpose
      const auto times = run(record, now, random() % 3 == 0, zone, 1 + random() % 20);
      for (const auto due : times) {
        ASSERT_LE(due, now) << seed;
        ASSERT_TRUE(all.empty() || all.back() < due) << seed;
        all.push_back(due);
      }
      ASSERT_EQ(record.progress.published, all.size());
      record = read_recurrence(recurrence_text(record));
    }
  }
}

TEST(RecurringDefinition, SurvivesItsText) {
  recurrence_record record = record_of("0 3 * * 1-5", {.zone = "Europe/Paris",
                                                       .overlap = overlap_policy::skip,
                                                       .catch_up = catch_up_policy::all,
                                                       .catch_up_limit = 7,
                                                       .tolerance = 90s});
  record.definition.event = {.type = "report \"due\"",
                             .key = "k",
                             .payload = "{\"a\":\n1}",
                             .headers = {{"tenant", "x"}},
                             .time_to_live = 1h,
                             .schema = "s"};
  record.progress = {.after = start + 1h,
                     .next = start + 2h,
                     .last = start + 1h,
                     .last_id = new_event_id(),
                     .published = 3,
                     .skipped = 4};
  const auto text = recurrence_text(record);
  const auto read = read_recurrence(text);
  EXPECT_EQ(read.definition, record.definition);
  EXPECT_EQ(read.progress.after, record.progress.after);
  EXPECT_EQ(read.progress.next, record.progress.next);
  EXPECT_EQ(read.progress.last, record.progress.last);
  EXPECT_EQ(read.progress.last_id, record.progress.last_id);
  EXPECT_EQ(read.progress.published, 3U);
  EXPECT_EQ(read.progress.skipped, 4U);
  // Every payload, byte by byte.
  for (const std::string payload : {"", "text", "{\"n\":1}", "[1]\n", "\xff\x00\n{"}) {
    record.definition.event.payload = payload;
    EXPECT_EQ(read_recurrence(recurrence_text(record)).definition, record.definition) << payload;
  }
}

TEST(RecurringDefinition, RefusesDamagedTexts) {
  const auto text = recurrence_text(record_of("0 3 * * *"));
  for (std::size_t size = 0; size < text.size(); ++size)
    EXPECT_THROW((void)read_recurrence(std::string_view(text).substr(0, size)), error) << size;
  std::mt19937 random(3);
  for (int i = 0; i < 20'000; ++i) {
    auto damaged = text;
    damaged[random() % damaged.size()] = static_cast<char>(random());
    try {
      (void)recurrence_text(read_recurrence(damaged));
    } catch (const error& problem) {
      EXPECT_TRUE(problem.code() == errc::malformed || problem.code() == errc::unsupported_type);
    }
  }
  auto later = text;
  later.replace(later.find("\"v\":1"), 5, "\"v\":2");
  try {
    (void)read_recurrence(later);
    ADD_FAILURE();
  } catch (const error& problem) {
    EXPECT_EQ(problem.code(), errc::unsupported_type);
  }
}

}  // namespace
}  // namespace holdfast::test
