// Time limits, batches, limits of types, and handlers of parked events.

#include <holdfast/error.hpp>
#include <holdfast/outbox/memory.hpp>
#include <holdfast/worker.hpp>

#include "outbox/worker/core.hpp"
#include "support/eventually.hpp"
#include "support/gate.hpp"
#include "support/manual_executor.hpp"
#include "support/running_worker.hpp"
#include "support/virtual_clock.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace std::chrono_literals;
using holdfast::delivery;
using holdfast::outcome;
using holdfast::worker;
using holdfast::worker_options;
using holdfast::detail::outbox::poll_status;
using holdfast::detail::outbox::worker_core;
using holdfast::test::eventually;
using holdfast::test::gate;
using holdfast::test::manual_executor;
using holdfast::test::open_in_the_end;
using holdfast::test::running_worker;
using holdfast::test::virtual_clock;
using ::testing::ElementsAre;

/// Without threads: an outbox in memory, a virtual clock, and tasks that the test runs.
class WorkerHandlers : public ::testing::Test {
 protected:
  std::shared_ptr<virtual_clock> clock_ = std::make_shared<virtual_clock>();
  std::shared_ptr<manual_executor> executor_ = std::make_shared<manual_executor>(clock_);
  holdfast::outbox outbox_{holdfast::make_memory_outbox({.clock = clock_})};
  std::vector<std::string> seen_{};

  void TearDown() override { executor_->clear(); }

  worker_options on_test_clock(worker_options options = {}) const {
    options.clock = clock_;
    options.executor = executor_;
    options.handling.backoff = {.first = 1s, .longest = 1s, .jitter = 0};
    return options;
  }
  std::string publish(std::string payload, std::string key = {}, std::string type = "t") const {
    return outbox_
        .publish({.type = std::move(type), .key = std::move(key), .payload = std::move(payload)})
        .id;
  }
  void work(worker_core& worker) const {
    for (int i = 0; i < 1000; ++i) {
      const auto status = worker.poll_lane(0).status;
      executor_->run_all();
      if (status != poll_status::events && status != poll_status::locked_out) return;
    }
    FAIL() << "the worker does not finish";
  }
};

TEST_F(WorkerHandlers, AWorkerWithoutHandlersRefusesToRun) {
  worker silent(outbox_, on_test_clock());
  EXPECT_THAT([&] { (void)silent.run_until_empty(); },
              ::testing::ThrowsMessage<holdfast::error>(::testing::HasSubstr(
                  "has no handler, so it would deliver nothing; call handle")));
}

TEST_F(WorkerHandlers, ATimeLimitRequestsStop) {
  const auto id = publish("a");
  std::shared_ptr<worker_core> worker;
  worker = worker_core::create(
      outbox_,
      [&](const delivery& d) {
        for (int i = 0; i < 299; ++i) {
          clock_->advance(1s);
          worker->renew_leases();
          EXPECT_FALSE(d.lost().stop_requested());
        }
        clock_->advance(2s);
        worker->renew_leases();
        EXPECT_TRUE(d.lost().stop_requested()) << "the default is five minutes";
        return outcome::retry("stopped");
      },
      on_test_clock());
  work(*worker);
  EXPECT_EQ(worker->count().timed_out, 0U) << "it returned soon enough";
  EXPECT_EQ(outbox_.find(id)->details.last_error, "stopped");
  EXPECT_EQ(outbox_.find(id)->details.attempts, 1U);
}

/// The handler is still running when its event is settled and the rest of the batch is handled.
TEST_F(WorkerHandlers, AHandlerThatIgnoresItsTimeLimitIsGivenUp) {
  auto options = on_test_clock();
  options.handling.time_limit = 10s;
  std::shared_ptr<worker_core> worker;
  bool hang = false;
  std::string hung_id;
  worker = worker_core::create(
      outbox_,
      [&](const delivery& d) {
        seen_.push_back(d.event().payload);
        if (std::exchange(hang, false)) {
          hung_id = d.event().id;
          clock_->advance(11s);
          worker->renew_leases();
          EXPECT_TRUE(d.lost().stop_requested());
          EXPECT_EQ(worker->count().timed_out, 0U);
          clock_->advance(3s);
          worker->renew_leases();
          EXPECT_EQ(worker->count().timed_out, 1U);
          executor_->run_all();  // another thread continues
          EXPECT_EQ(outbox_.find(hung_id)->details.attempts, 1U);
          EXPECT_EQ(outbox_.find(hung_id)->details.last_error,
                    "ambiguous: the handler exceeded its time limit of 10000 ms");
        }
        return outcome::done();
      },
      options);
  for (int i = 0; i < 100; ++i) publish("warm-up");
  work(*worker);
  seen_.clear();
  publish("a", "k");
  publish("b", "k");
  publish("c", "other");
  hang = true;
  ASSERT_EQ(worker->poll_lane(0).status, poll_status::events);
  executor_->run_all();
  EXPECT_THAT(seen_, ElementsAre("a", "c")) << "its key waits, other keys do not";
  EXPECT_TRUE(outbox_.find(hung_id)) << "the late outcome does not count";
  clock_->advance(1s);
  work(*worker);
  EXPECT_THAT(seen_, ElementsAre("a", "c", "a", "b"));
  EXPECT_EQ(outbox_.admin().stats().events, 0U);
  EXPECT_EQ(worker->in_flight(), 0U);
}

TEST_F(WorkerHandlers, ABatchHandlerGetsManyEventsOfItsType) {
  std::vector<std::size_t> sizes;
  const auto worker = worker_core::create(outbox_, {}, on_test_clock());
  worker->handle_batch(
      "t",
      [&](std::span<const delivery* const> events) {
        sizes.push_back(events.size());
        std::vector<outcome> outcomes;
        for (const auto* one : events) {
          EXPECT_EQ(one->event().type, "t");
          seen_.push_back(one->event().payload);
          outcomes.push_back(outcome::done());
        }
        clock_->advance(100ms);  // slow: batches must be large nevertheless
        return outcomes;
      },
      40, worker->default_options());
  worker->handle(
      "single", [](const delivery&) { return outcome::done(); }, worker->default_options());
  for (int i = 0; i < 200; ++i) {
    publish(std::to_string(i), i % 2 == 0 ? "k" : "");
    publish("x", "", "single");
  }
  work(*worker);
  EXPECT_EQ(worker->count().done, 400U);
  EXPECT_EQ(seen_.size(), 200U);
  EXPECT_LE(*std::ranges::max_element(sizes), 40U);
  EXPECT_LE(sizes.size(), 40U) << "batches are small";
}

TEST_F(WorkerHandlers, AFailureInABatchKeepsTheOrderOfItsKey) {
  int calls = 0;
  const auto worker = worker_core::create(outbox_, {}, on_test_clock());
  worker->handle_batch(
      "t",
      [&](std::span<const delivery* const> events) {
        std::vector<outcome> outcomes;
        const bool fail = ++calls == 2;
        for (const auto* one : events) {
          const bool fails = fail && one->event().payload == "a1";
          if (!fails) seen_.push_back(one->event().payload);
          outcomes.push_back(fails ? outcome::retry("no") : outcome::done());
        }
        return outcomes;
      },
      10, worker->default_options());
  publish("first");
  work(*worker);  // measures the handler
  seen_.clear();
  for (const char* payload : {"a1", "a2", "a3"}) publish(payload, "a");
  publish("b1", "b");
  work(*worker);
  EXPECT_EQ(outbox_.admin().stats().events, 3U) << "all events of the key stay";
  seen_.clear();
  clock_->advance(1s);
  work(*worker);
  EXPECT_THAT(seen_, ElementsAre("a1", "a2", "a3"));
}

TEST_F(WorkerHandlers, AWrongNumberOfOutcomesIsAFailure) {
  const auto id = publish("a");
  const auto worker = worker_core::create(outbox_, {}, on_test_clock());
  worker->handle_batch(
      "t", [](std::span<const delivery* const>) { return std::vector<outcome>(2); }, 10,
      worker->default_options());
  work(*worker);
  EXPECT_EQ(outbox_.find(id)->details.last_error, "the handler returned 2 outcomes for 1 events");
}

TEST_F(WorkerHandlers, WhatFailedForGoodIsHandedOver) {
  auto options = on_test_clock();
  std::vector<std::string> parked;
  options.handling.on_parked = [&](const holdfast::claimed_event& event, std::string_view reason) {
    EXPECT_EQ(outbox_.find(event.event.id)->state, holdfast::event_state::claimed)
        << "before it is parked: otherwise a crash would lose the call";
    parked.push_back(event.event.payload + ": " + std::string(reason));
    throw std::runtime_error("the alarm does not work");
  };
  const auto id = publish("a");
  const auto worker = worker_core::create(
      outbox_, [](const delivery&) { return outcome::permanent("no such address"); }, options);
  work(*worker);
  EXPECT_THAT(parked, ElementsAre("a: no such address"));
  EXPECT_EQ(outbox_.find(id)->state, holdfast::event_state::parked);
}

TEST_F(WorkerHandlers, WhatAClaimParksIsHandedOver) {
  auto options = on_test_clock();
  std::vector<std::string> parked;
  options.handling.on_parked = [&](const holdfast::claimed_event& event, std::string_view reason) {
    parked.push_back(event.event.payload + ": " + std::string(reason));
  };
  outbox_.publish({.type = "t", .payload = "old", .time_to_live = 1s});
  clock_->advance(2s);
  const auto worker =
      worker_core::create(outbox_, [](const delivery&) { return outcome::done(); }, options);
  work(*worker);
  EXPECT_THAT(parked, ElementsAre("old: too late: its time to live of 1000 ms is over"));
}

/// With the threads of a worker.
TEST(WorkerHandlerThreads, AHandlerThatNeverReturnsDoesNotStopTheWorker) {
  const holdfast::outbox outbox(holdfast::make_memory_outbox({}));
  gate closed;
  const open_in_the_end guard(closed);
  std::atomic<int> hung = 0;
  std::atomic<int> done = 0;
  std::mutex mutex;
  std::map<std::string, std::vector<std::string>> order;
  worker_options options{.concurrency = 2, .pollers = 1, .stop_within = 100ms};
  options.handling.time_limit = 1s;
  options.handling.backoff = {.first = 1ms, .longest = 1ms};
  worker worker(
      outbox,
      [&](const delivery& d) {
        if (d.event().payload == "hang" && d.attempts() == 0) {
          ++hung;
          closed.wait();
          return outcome::done();
        }
        const std::scoped_lock lock(mutex);
        order[d.event().key].push_back(d.event().payload);
        ++done;
        return outcome::done();
      },
      options);
  running_worker running(worker);
  for (const char* key : {"a", "b"}) {
    outbox.publish({.type = "t", .key = key, .payload = "hang"});
    for (int i = 0; i < 5; ++i)
      outbox.publish({.type = "t", .key = key, .payload = std::to_string(i)});
  }
  for (int i = 0; i < 20; ++i) outbox.publish({.type = "t"});
  EXPECT_TRUE(eventually([&] { return outbox.admin().stats().events == 0; }, 60s));
  EXPECT_EQ(hung, 2);
  EXPECT_EQ(done, 32);
  for (const char* key : {"a", "b"})
    EXPECT_THAT(order[key], ElementsAre("hang", "0", "1", "2", "3", "4"));
  const auto report = running.stop();
  EXPECT_EQ(report.did.timed_out, 2U);
  EXPECT_EQ(report.still_running, 2U) << "they are told about";
  closed.open();
  EXPECT_TRUE(eventually([&] { return closed.waiting() == 0; }));
}

TEST(WorkerHandlerThreads, ATypeHasItsOwnLimit) {
  const holdfast::outbox outbox(holdfast::make_memory_outbox({}));
  std::atomic<int> running_now = 0;
  std::atomic<int> most = 0;
  std::atomic<int> limited = 0;
  std::atomic<int> others = 0;
  gate closed;
  const open_in_the_end guard(closed);
  worker worker(outbox, worker_options{.concurrency = 4});
  holdfast::handler_options options;
  options.concurrency = 1;
  worker.handle(
      "limited",
      [&](const delivery&) {
        const int now = ++running_now;
        most = std::max(most.load(), now);
        closed.wait();
        --running_now;
        ++limited;
        return outcome::done();
      },
      options);
  worker.handle("other", [&](const delivery&) { return ++others, outcome::done(); });
  for (int i = 0; i < 30; ++i) {
    outbox.publish({.type = "limited", .key = i % 3 == 0 ? "k" : ""});
    outbox.publish({.type = "other"});
  }
  running_worker running(worker);
  EXPECT_TRUE(eventually([&] { return others == 30; }, 60s)) << "they do not wait for the limited";
  EXPECT_EQ(limited, 0);
  closed.open();
  EXPECT_TRUE(eventually([&] { return outbox.admin().stats().events == 0; }, 60s));
  EXPECT_EQ(limited, 30);
  EXPECT_EQ(most, 1);
  EXPECT_EQ(running.stop().did.done, 60U);
}

TEST(WorkerHandlerThreads, StoppingReleasesWhatWaitsForItsType) {
  const holdfast::outbox outbox(holdfast::make_memory_outbox({}));
  gate closed;
  const open_in_the_end guard(closed);
  worker worker(outbox, worker_options{.concurrency = 4});
  holdfast::handler_options options;
  options.concurrency = 1;
  worker.handle("t", [&](const delivery&) { return closed.wait(), outcome::done(); }, options);
  for (int i = 0; i < 8; ++i) outbox.publish({.type = "t"});
  running_worker running(worker);
  EXPECT_TRUE(eventually([&] { return closed.waiting() == 1 && worker.count().in_flight >= 2; }));
  std::jthread opener([&] {
    eventually([&] { return worker.count().released > 0; }, 60s);
    closed.open();
  });
  const auto report = running.stop();
  EXPECT_EQ(report.still_running, 0U);
  EXPECT_GE(report.did.released, 1U);
  EXPECT_EQ(report.did.done, 1U);
  const auto records = outbox.admin().scan().records;
  EXPECT_EQ(records.size(), 7U);
  for (const auto& record : records) EXPECT_NE(record.state, holdfast::event_state::claimed);
}

}  // namespace
