// The worker with its threads, on an outbox in memory.

#include <holdfast/error.hpp>
#include <holdfast/metrics.hpp>
#include <holdfast/outbox/memory.hpp>
#include <holdfast/worker.hpp>

#include "outbox/memory/backend.hpp"
#include "support/eventually.hpp"
#include "support/running_worker.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using holdfast::delivery;
using holdfast::outcome;
using holdfast::worker;
using holdfast::worker_options;
using holdfast::test::eventually;
using holdfast::test::running_worker;

holdfast::outbox make_outbox(std::size_t lanes = 1) {
  return holdfast::outbox(holdfast::make_memory_outbox({.lanes = lanes}), {.lanes = lanes});
}

TEST(WorkerThreads, DeliverUntilTold) {
  const auto outbox = make_outbox();
  std::atomic<int> calls = 0;
  worker worker(outbox, [&](const delivery&) { return ++calls, outcome::done(); });
  running_worker running(worker);
  for (int i = 0; i < 100; ++i) outbox.publish({.type = "t"});
  EXPECT_TRUE(eventually([&] { return outbox.admin().stats().events == 0; }));
  const auto report = running.stop();
  EXPECT_EQ(calls, 100);
  EXPECT_EQ(report.did.done, 100U);
  EXPECT_EQ(report.still_running, 0U);
  EXPECT_FALSE(outbox.lock(0, "another").holder.empty());
  EXPECT_TRUE(outbox.lock(0, "another").held) << "the lock was released";
}

TEST(WorkerThreads, ANewEventWakesAtOnce) {
  const auto outbox = make_outbox();
  std::atomic<int> calls = 0;
  worker worker(outbox, [&](const delivery&) { return ++calls, outcome::done(); },
                {.lock_time = 10min, .idle = 10min});
  running_worker running(worker);
  for (int i = 1; i <= 5; ++i) {
    // Most of the time it sleeps by now. In any case it must be quick.
    std::this_thread::sleep_for(5ms);
    outbox.publish({.type = "t"});
    ASSERT_TRUE(eventually([&] { return calls == i; }, 60s));
  }
  const auto began = std::chrono::steady_clock::now();
  running.stop();
  EXPECT_LT(std::chrono::steady_clock::now() - began, 60s) << "a stop request wakes it";
}

/// Not even a ticket that expires before all tickets that the worker knows.
TEST(WorkerThreads, ANewTicketIsNotForgotten) {
  const auto outbox = make_outbox();
  std::atomic<int> calls = 0;
  worker worker(outbox, [&](const delivery&) { return ++calls, outcome::done(); },
                {.lock_time = 10min, .idle = 10min});
  running_worker running(worker);
  for (int i = 1; i <= 3; ++i) {
    std::this_thread::sleep_for(5ms);
    outbox.schedule("ticket" + std::to_string(i), 5ms, {.type = "t"});
    ASSERT_TRUE(eventually([&] { return calls == i; }, 60s));
  }
}

TEST(WorkerThreads, RunUntilEmptyEnds) {
  for (const std::size_t lanes : {1U, 8U}) {
    const auto outbox = make_outbox(lanes);
    for (int i = 0; i < 300; ++i)
      outbox.publish({.type = "t", .key = i % 3 == 0 ? "" : "k" + std::to_string(i % 7)});
    outbox.publish({.type = "t", .delay = 1h});
    worker worker(outbox, [](const delivery&) { return outcome::done(); });
    const auto report = worker.run_until_empty();
    EXPECT_EQ(report.did.done, 300U);
    EXPECT_EQ(outbox.admin().stats().events, 1U);
    EXPECT_EQ(worker.run_until_empty().did.done, 300U) << "again, with nothing to do";
  }
}

TEST(WorkerThreads, ABusyLaneStarvesNoOther) {
  const auto outbox = make_outbox(2);
  for (const std::size_t busy : {0U, 1U}) {
    const auto publish = [&](const std::string& type, std::size_t lane) {
      auto id = holdfast::new_event_id();
      while (outbox.lane_of(id) != lane) id = holdfast::new_event_id();
      outbox.publish({.type = type, .id = id});
    };
    for (int i = 0; i < 400; ++i) publish("busy", busy);
    publish("other", 1 - busy);
    std::atomic<int> handled = 0;
    std::atomic<int> handled_before_other = -1;
    worker worker(outbox,
                  [&](const delivery& d) {
                    if (d.event().type == "other") handled_before_other = handled.load();
                    else ++handled;
                    return outcome::done();
                  },
                  {.concurrency = 1, .batch = 1, .run = 1, .pollers = 1});
    EXPECT_EQ(worker.run_until_empty().did.done, 401U);
    EXPECT_GE(handled_before_other, 0);
    EXPECT_LT(handled_before_other, 200);
  }
}

/// A backend whose statistics cannot be read.
class backend_without_stats final : public holdfast::detail::outbox::memory_backend {
 public:
  using memory_backend::memory_backend;
  holdfast::outbox_stats stats(std::size_t /*lane*/) override {
    throw holdfast::error(holdfast::errc::unavailable, "no statistics", {.transient = true});
  }
};

TEST(WorkerThreads, GoOnWithoutNumbers) {
  const holdfast::outbox outbox(
      std::make_shared<backend_without_stats>(holdfast::memory_outbox_options{}), {});
  for (int i = 0; i < 10; ++i) outbox.publish({.type = "t"});
  worker worker(outbox, [](const delivery&) { return outcome::done(); }, {.lease = 10min});
  const auto report = worker.run_until_empty();
  EXPECT_EQ(report.did.done, 10U) << "events that were claimed before the failure are handled";
  EXPECT_EQ(report.did.in_flight, 0U);
  EXPECT_EQ(report.still_running, 0U);
  EXPECT_GE(report.did.errors, 1U);
}

TEST(WorkerThreads, StopWaitsForHandlers) {
  const auto outbox = make_outbox();
  outbox.publish({.type = "t"});
  std::atomic<bool> inside = false;
  std::atomic<bool> may_end = false;
  worker worker(outbox, [&](const delivery&) {
    inside = true;
    (void)eventually([&] { return may_end.load(); });
    return outcome::done();
  });
  running_worker running(worker);
  ASSERT_TRUE(eventually([&] { return inside.load(); }));
  std::jthread later([&] {
    std::this_thread::sleep_for(20ms);
    may_end = true;
  });
  EXPECT_EQ(running.stop().did.done, 1U);
}

TEST(WorkerThreads, AHandlerThatHangsDoesNotHangTheEnd) {
  const auto outbox = make_outbox();
  outbox.publish({.type = "t"});
  auto inside = std::make_shared<std::atomic<bool>>(false);
  auto gone = std::make_shared<std::atomic<bool>>(false);
  auto stop_requested = std::make_shared<std::atomic<bool>>(false);
  {
    worker worker(outbox,
                  [inside, gone, stop_requested](const delivery& d) {
                    *inside = true;
                    (void)eventually([&] { return gone->load(); });
                    *stop_requested = d.lost().stop_requested();
                    return outcome::done();
                  },
                  {.stop_within = 20ms});
    running_worker running(worker);
    ASSERT_TRUE(eventually([&] { return inside->load(); }));
    EXPECT_EQ(running.stop().still_running, 1U);
  }
  *gone = true;
  EXPECT_TRUE(eventually([&] { return stop_requested->load(); }));
}

TEST(WorkerThreads, TheEndMayWaitForHandlersAsLongAsThereIs) {
  const auto outbox = make_outbox();
  outbox.publish({.type = "t"});
  std::atomic<bool> inside = false;
  worker worker(
      outbox,
      [&](const delivery&) {
        inside = true;
        std::this_thread::sleep_for(50ms);
        return outcome::done();
      },
      {.idle = std::chrono::milliseconds::max(), .stop_within = std::chrono::milliseconds::max()});
  running_worker running(worker);
  ASSERT_TRUE(eventually([&] { return inside.load(); }));
  EXPECT_EQ(running.stop().still_running, 0U) << "the longest time does not overflow";
}

/// If the executor is full, its tasks run on the thread that polls.
TEST(WorkerThreads, AFullExecutorDoesNotHangTheEnd) {
  std::atomic<bool> over = false;
  std::atomic<bool> busy = false;
  const auto full = holdfast::make_thread_pool({.threads = 1, .queue = 1});
  const auto wait = [&] {
    busy = true;
    (void)eventually([&] { return over.load(); }, 10min);
  };
  ASSERT_TRUE(full->post(wait));
  ASSERT_TRUE(eventually([&] { return busy.load(); }));
  ASSERT_TRUE(full->post(wait));
  const auto outbox = make_outbox();
  for (int i = 0; i < 3; ++i) outbox.publish({.type = "t"});
  std::atomic<int> handlers = 0;
  worker worker(outbox,
                [&](const delivery& d) {
                  ++handlers;
                  while (!d.lost().stop_requested()) std::this_thread::sleep_for(1ms);
                  return outcome::retry("abandoned");
                },
                {.concurrency = 2, .stop_within = 50ms, .executor = full});
  running_worker running(worker);
  EXPECT_TRUE(eventually([&] { return handlers > 0; }));
  running.stop();
  over = true;
  EXPECT_EQ(worker.count().done, 0U);
}

TEST(WorkerThreads, WhatWaitsForAHandlerThatHangsIsGivenBack) {
  const auto outbox = make_outbox();
  auto calls = std::make_shared<std::atomic<int>>(0);
  auto gone = std::make_shared<std::atomic<bool>>(false);
  {
    worker worker(outbox,
                  [calls, gone](const delivery& d) {
                    ++*calls;
                    if (d.event().type == "hangs") (void)eventually([&] { return gone->load(); });
                    return outcome::done();
                  },
                  // More than one event is claimed, even on a slow machine.
                  {.concurrency = 1, .batch_time = 10min, .stop_within = 500ms});
    running_worker running(worker);
    for (int i = 0; i < 50; ++i) outbox.publish({.type = "quick"});
    ASSERT_TRUE(eventually([&] { return calls->load() == 50; }));
    outbox.publish({.type = "hangs"});
    ASSERT_TRUE(eventually([&] { return calls->load() == 51; }));
    outbox.publish({.type = "waits"});
    ASSERT_TRUE(eventually([&] { return worker.count().in_flight == 2; }));
    EXPECT_EQ(running.stop().still_running, 1U) << "one handler";
    const auto next = outbox.claim();
    ASSERT_EQ(next.events.size(), 1U) << "it is released before its lease ends";
    EXPECT_EQ(next.events[0].event.type, "waits");
    EXPECT_EQ(next.events[0].deliveries, 1U);
  }
  *gone = true;
}

TEST(WorkerThreads, KeepOrderPerKey) {
  const auto outbox = make_outbox(4);
  constexpr int keys = 20;
  constexpr int events_per_key = 50;
  for (int i = 0; i < events_per_key; ++i) {
    std::vector<holdfast::event> events;
    for (int k = 0; k < keys; ++k)
      events.push_back({.type = "t", .key = "k" + std::to_string(k), .payload = std::to_string(i)});
    for (const auto& receipt : outbox.publish_all(std::move(events))) ASSERT_TRUE(receipt.safe());
  }
  std::mutex mutex;
  std::map<std::string, std::vector<int>> firsts;
  std::atomic<int> concurrent = 0;
  std::atomic<int> most_concurrent = 0;
  worker_options options{.concurrency = 8};
  options.handling.backoff = {.first = 1ms, .longest = 2ms};
  options.handling.max_attempts = 0;
  worker worker(
      outbox,
      [&](const delivery& d) {
        const int now = ++concurrent;
        int before = most_concurrent;
        while (before < now && !most_concurrent.compare_exchange_weak(before, now)) {
        }
        bool fail = false;
        {
          const std::scoped_lock lock(mutex);
          if (d.attempts() == 0) firsts[d.event().key].push_back(std::stoi(d.event().payload));
          static std::mt19937 random(7);
          fail = random() % 10 == 0;
        }
        std::this_thread::sleep_for(50us);
        --concurrent;
        return fail ? outcome::retry("at random") : outcome::done();
      },
      options);
  running_worker running(worker);
  EXPECT_TRUE(eventually([&] { return outbox.admin().stats().events == 0; }, 120s));
  running.stop();
  ASSERT_EQ(firsts.size(), static_cast<std::size_t>(keys));
  for (const auto& [key, numbers] : firsts) {
    ASSERT_EQ(numbers.size(), static_cast<std::size_t>(events_per_key)) << key;
    for (int i = 0; i < events_per_key; ++i)
      ASSERT_EQ(numbers[static_cast<std::size_t>(i)], i) << key;
  }
  EXPECT_LE(most_concurrent, 8);
}

TEST(WorkerThreads, AreCounted) {
  const auto registry = holdfast::make_prometheus_registry();
  const auto outbox = make_outbox();
  outbox.publish({.type = "t"});
  outbox.publish({.type = "bad"});
  worker worker(outbox,
                [](const delivery& d) {
                  return d.event().type == "bad" ? outcome::permanent("no") : outcome::done();
                },
                {.metrics = registry});
  worker.run_until_empty();
  const auto text = registry->text();
  EXPECT_THAT(text, ::testing::HasSubstr("holdfast_outbox_deliveries_total 2"));
  EXPECT_THAT(text, ::testing::HasSubstr(R"(holdfast_outbox_outcomes_total{outcome="done"} 1)"));
  EXPECT_THAT(text, ::testing::HasSubstr(R"(holdfast_outbox_outcomes_total{outcome="parked"} 1)"));
  EXPECT_THAT(text, ::testing::HasSubstr("holdfast_outbox_parked 1"));
  const auto health = worker.health();
  EXPECT_TRUE(health.available);
  EXPECT_EQ(health.parked, 1U);
  EXPECT_EQ(health.depth, 0U);
}

TEST(WorkerThreads, RunOnlyOnceAtATime) {
  const auto outbox = make_outbox();
  worker worker(outbox, [](const delivery&) { return outcome::done(); });
  running_worker running(worker);
  ASSERT_TRUE(eventually([&] { return worker.health().locks == 1; }));
  EXPECT_THROW(worker.run_until_empty(), holdfast::error);
  EXPECT_THROW(worker.handle("t", [](const delivery&) { return outcome::done(); }),
               holdfast::error);
  running.stop();
}

}  // namespace
