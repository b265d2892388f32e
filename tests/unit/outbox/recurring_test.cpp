// Recurring events of an outbox in memory, with a virtual clock. The contract suite has what every
// backend does.

#include <holdfast/error.hpp>
#include <holdfast/outbox.hpp>
#include <holdfast/outbox/memory.hpp>
#include <holdfast/worker.hpp>

#include "support/virtual_clock.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

struct recurring_fixture : ::testing::Test {
  std::shared_ptr<virtual_clock> clock = std::make_shared<virtual_clock>();
  std::vector<std::string> log{};

  outbox open(std::size_t lanes = 1) {
    return outbox(make_memory_outbox({.lanes = lanes, .clock = clock}), {.lanes = lanes},
                  [this](const log_record& record) { log.emplace_back(record.message); });
  }
  static std::size_t drain_all(const outbox& box) {
    std::size_t published = 0;
    for (std::size_t lane = 0; lane < box.lanes(); ++lane) published += box.drain(lane).recurring;
    return published;
  }
};
using RecurringEvents = recurring_fixture;

TEST_F(RecurringEvents, AnEventHasItsDueTime) {
  const auto box = open();
  EXPECT_EQ(box.recur("nightly", "0 3 * * *", {}, {.type = "report.due", .payload = "{\"a\":1}"}),
            recur_status::added);
  clock->advance(3h);
  EXPECT_EQ(box.drain(0).recurring, 1U);
  const auto got = box.claim();
  ASSERT_EQ(got.events.size(), 1U);
  const auto& event = got.events[0].event;
  EXPECT_EQ(event.type, "report.due");
  EXPECT_EQ(event.payload, "{\"a\":1}");
  EXPECT_EQ(event.headers.at("Holdfast-Recurrence"), "nightly");
  EXPECT_EQ(event.headers.at("Holdfast-Due"), "2026-01-01T03:00:00Z");
  const auto listed = box.admin().recurring();
  ASSERT_EQ(listed.size(), 1U);
  EXPECT_EQ(listed[0].last_id, event.id);
  EXPECT_EQ(listed[0].last, virtual_clock::default_start() + 3h);
  EXPECT_EQ(listed[0].next, virtual_clock::default_start() + 27h);
  EXPECT_EQ(listed[0].published, 1U);
}

TEST_F(RecurringEvents, AWorkerPublishesAndDelivers) {
  const auto box = open();
  (void)box.recur("tick", "* * * * *", {}, {.type = "tick"});
  int delivered = 0;
  worker_options options;
  options.clock = clock;
  worker one{box,
             [&](const delivery&) {
               ++delivered;
               return outcome::done();
             },
             options};
  for (int minute = 0; minute < 5; ++minute) {
    (void)one.run_until_empty();
    clock->advance(1min);
  }
  (void)one.run_until_empty();
  EXPECT_EQ(delivered, 5);
}

TEST_F(RecurringEvents, AnotherDefinitionReplacesItAndSaysSo) {
  const auto box = open();
  (void)box.recur("nightly", "0 3 * * *", {}, {.type = "a"});
  EXPECT_EQ(box.recur("nightly", "0 3 * * *", {}, {.type = "a"}), recur_status::unchanged);
  EXPECT_TRUE(log.empty());
  EXPECT_EQ(box.recur("nightly", "0 4 * * *", {}, {.type = "a"}), recur_status::changed);
  EXPECT_EQ(log.size(), 1U);
  clock->advance(3h + 30min);
  EXPECT_EQ(box.drain(0).recurring, 0U);
  clock->advance(30min);
  EXPECT_EQ(box.drain(0).recurring, 1U);
  // Another event keeps what is due: 04:00 of the next day has passed when it is defined.
  clock->advance(24h);
  EXPECT_EQ(box.recur("nightly", "0 4 * * *", {}, {.type = "b"}), recur_status::changed);
  EXPECT_EQ(box.drain(0).recurring, 1U);
  // Another expression does not: nothing before the definition is due.
  clock->advance(24h);
  EXPECT_EQ(box.recur("nightly", "1 4 * * *", {}, {.type = "b"}), recur_status::changed);
  EXPECT_EQ(box.drain(0).recurring, 0U);
  clock->advance(1min);
  EXPECT_EQ(box.drain(0).recurring, 1U);
}

TEST_F(RecurringEvents, TheKeyMovesItToAnotherLane) {
  const auto box = open(8);
  std::string key = "a";
  while (box.lane_of(key) == box.lane_of("job")) key += 'a';
  std::string other = key;
  while (box.lane_of(other) == box.lane_of(key)) other += 'b';
  (void)box.recur("job", "* * * * *", {}, {.type = "t", .key = key});
  clock->advance(1min);
  EXPECT_EQ(drain_all(box), 1U);
  EXPECT_EQ(box.recur("job", "* * * * *", {}, {.type = "t", .key = other}), recur_status::changed);
  EXPECT_EQ(drain_all(box), 0U);
  clock->advance(1min);
  EXPECT_EQ(drain_all(box), 1U);
  EXPECT_EQ(box.admin().recurring().size(), 1U);
  EXPECT_TRUE(box.cancel_recurring("job"));
  EXPECT_FALSE(box.cancel_recurring("job"));
  clock->advance(1min);
  EXPECT_EQ(drain_all(box), 0U);
}

TEST_F(RecurringEvents, SkipWaitsForTheDelivery) {
  const auto box = open();
  (void)box.recur("job", "* * * * *", {.overlap = overlap_policy::skip}, {.type = "t"});
  clock->advance(1min);
  EXPECT_EQ(box.drain(0).recurring, 1U);
  clock->advance(1min);
  EXPECT_EQ(box.drain(0).recurring, 0U) << "it was not delivered";
  auto got = box.claim({.lease = 10min});
  clock->advance(1min);
  EXPECT_EQ(box.drain(0).recurring, 0U) << "it is being delivered";
  EXPECT_TRUE(box.ack(got.fence, got.events.at(0)));
  EXPECT_EQ(box.drain(0).recurring, 0U);
  clock->advance(1min);
  EXPECT_EQ(box.drain(0).recurring, 1U);
  got = box.claim();
  EXPECT_TRUE(box.park(got.fence, got.events.at(0), park_policy::skip, "no"));
  clock->advance(1min);
  EXPECT_EQ(box.drain(0).recurring, 1U) << "a parked event does not stop it";
  EXPECT_EQ(box.admin().recurring().at(0).skipped, 2U);
}

TEST_F(RecurringEvents, WhatCannotBeUnderstoodDoesNotKeepTheOthers) {
  const auto box = open();
  (void)box.recur("good", "* * * * *", {}, {.type = "t"});
  const auto put = [&](const std::string& name, const std::string& text) {
    const stored_recurrence stored{.name = name, .due = clock->now(), .text = text};
    EXPECT_EQ(box.backend()->update_recurrence(0, {.name = name, .replacement = stored}, {}),
              update_status::done);
  };
  put("damaged", "nonsense");
  put("later", "{\"v\":2}\n\"type\":\"t\"");
  put("no zone",
      "{\"v\":1,\"cron\":\"* * * * *\",\"zone\":\"Mars/Base\",\"overlap\":\"queue\",\"catchUp\":"
      "\"last\",\"limit\":1,\"tolerance\":0,\"bodySize\":10}\n\"type\":\"t\"");
  clock->advance(1min);
  EXPECT_EQ(box.drain(0).recurring, 1U);
  EXPECT_FALSE(log.empty());
  EXPECT_GT(box.drain(0).next.value_or(0ms), 0ms) << "they are not read again and again";
  std::size_t problems = 0;
  for (const auto& one : box.admin().recurring()) problems += one.problem.empty() ? 0 : 1;
  EXPECT_EQ(problems, 3U);
  EXPECT_EQ(box.recur("damaged", "* * * * *", {}, {.type = "t"}), recur_status::changed);
  EXPECT_THROW((void)box.recur("later", "* * * * *", {}, {.type = "t"}), error);
  EXPECT_TRUE(box.cancel_recurring("later"));
}

TEST_F(RecurringEvents, RefusesWhatCannotWork) {
  const auto box = open();
  const event good{.type = "t"};
  EXPECT_THROW((void)box.recur("", "* * * * *", {}, good), error);
  EXPECT_THROW((void)box.recur("a\nb", "* * * * *", {}, good), error);
  EXPECT_THROW((void)box.recur("a", "* * *", {}, good), error);
  EXPECT_THROW((void)box.recur("a", "* * * * *", {.zone = "Nowhere"}, good), error);
  EXPECT_THROW((void)box.recur("a", "* * * * *", {.catch_up_limit = 0}, good), error);
  EXPECT_THROW((void)box.recur("a", "* * * * *", {.catch_up_limit = 1001}, good), error);
  EXPECT_THROW((void)box.recur("a", "* * * * *", {.tolerance = -1ms}, good), error);
  EXPECT_THROW((void)box.recur("a", "* * * * *", {}, {}), error);
  EXPECT_THROW((void)box.recur("a", "* * * * *", {}, {.type = "t", .id = new_event_id()}), error);
  EXPECT_THROW((void)box.recur("a", "* * * * *", {}, {.type = "t", .delay = 1s}), error);
  EXPECT_THROW(
      (void)box.recur("a", "* * * * *", {}, {.type = "t", .payload = std::string(300'000, 'x')}),
      error);
  EXPECT_TRUE(box.admin().recurring().empty());
  EXPECT_FALSE(box.cancel_recurring("a"));
}

TEST_F(RecurringEvents, ALaneHasAThousandAtMost) {
  const auto box = open();
  for (int i = 0; i < 1000; ++i)
    (void)box.recur("n" + std::to_string(i), "0 0 1 1 *", {}, {.type = "t"});
  EXPECT_THROW((void)box.recur("one more", "0 0 1 1 *", {}, {.type = "t"}), error);
  EXPECT_EQ(box.recur("n17", "0 0 1 1 *", {}, {.type = "t"}), recur_status::unchanged);
  EXPECT_EQ(box.admin().recurring().size(), 1000U);
}

}  // namespace
}  // namespace holdfast::test
