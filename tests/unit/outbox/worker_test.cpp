// The worker without threads: an outbox in memory, a virtual clock, and tasks that run when the
// test runs them.

#include <holdfast/outbox/memory.hpp>
#include <holdfast/outbox/relay.hpp>
#include <holdfast/worker.hpp>

#include "outbox/memory/backend.hpp"
#include "outbox/worker/core.hpp"
#include "support/manual_executor.hpp"
#include "support/virtual_clock.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace std::chrono_literals;
using holdfast::delivery;
using holdfast::event_state;
using holdfast::outcome;
using holdfast::worker_options;
using holdfast::detail::outbox::poll_status;
using holdfast::detail::outbox::worker_core;
using holdfast::test::manual_executor;
using holdfast::test::virtual_clock;
using ::testing::ElementsAre;

class Worker : public ::testing::Test {
 protected:
  std::shared_ptr<virtual_clock> clock_ = std::make_shared<virtual_clock>();
  std::shared_ptr<manual_executor> executor_ = std::make_shared<manual_executor>(clock_);
  holdfast::outbox outbox_{holdfast::make_memory_outbox({.clock = clock_}), {.max_deliveries = 3}};
  std::vector<std::string> seen_{};

  // A task that did not run holds its worker, which holds the executor.
  void TearDown() override { executor_->clear(); }

  worker_options with_test_clock(worker_options options = {}) const {
    options.clock = clock_;
    options.executor = executor_;
    options.handling.backoff.jitter = 0;
    return options;
  }
  std::shared_ptr<worker_core> make_worker(holdfast::event_handler handler,
                                           worker_options options = {}) const {
    return worker_core::create(outbox_, std::move(handler), with_test_clock(std::move(options)));
  }
  /// Its handler appends the payload to seen_.
  std::shared_ptr<worker_core> make_recorder(worker_options options = {}) {
    return make_worker(
        [this](const delivery& d) {
          seen_.push_back(d.event().payload);
          return outcome::done();
        },
        std::move(options));
  }
  std::string publish(std::string payload, std::string key = {}, std::string type = "t") const {
    return outbox_
        .publish({.type = std::move(type), .key = std::move(key), .payload = std::move(payload)})
        .id;
  }
  /// Polls and handles until nothing is due.
  void work(worker_core& worker) const {
    for (int i = 0; i < 1000; ++i) {
      const auto status = worker.poll_lane(0).status;
      executor_->run_all();
      // A lock that expired meanwhile is acquired again.
      if (status != poll_status::events && status != poll_status::locked_out) return;
    }
    FAIL() << "the worker does not finish";
  }
  event_state state_of(const std::string& id) const {
    const auto record = outbox_.find(id);
    EXPECT_TRUE(record) << id;
    return record ? record->state : event_state::due;
  }
};

TEST_F(Worker, DeliversAndAcknowledges) {
  for (const char* payload : {"a", "b", "c"}) publish(payload);
  const auto worker = make_recorder();
  work(*worker);
  EXPECT_THAT(seen_, ::testing::UnorderedElementsAre("a", "b", "c"));
  EXPECT_EQ(outbox_.admin().stats().events, 0U);
  const auto did = worker->count();
  EXPECT_EQ(did.done, 3U);
  EXPECT_EQ(did.deliveries, 3U);
  EXPECT_EQ(did.in_flight, 0U);
}

TEST_F(Worker, HandsOverWhatAHandlerNeeds) {
  const auto id = publish("a", "k");
  holdfast::fence first = 0;
  const auto worker = make_worker([&](const delivery& d) {
    EXPECT_EQ(d.event().id, id);
    EXPECT_EQ(d.event().key, "k");
    EXPECT_GT(d.fence(), first);
    first = d.fence();
    EXPECT_FALSE(d.lost().stop_requested());
    if (d.attempts() == 0) return outcome::retry("not yet", 0ms);
    EXPECT_EQ(d.deliveries(), 2U);
    EXPECT_EQ(d.claimed().last_error, "not yet");
    return outcome::done();
  });
  work(*worker);
  EXPECT_EQ(worker->count().done, 1U);
}

TEST_F(Worker, KeepsTheOrderOfAKeyWhenOneFails) {
  for (int i = 0; i < 200; ++i) publish(std::to_string(i), "k");
  std::vector<int> firsts;
  const auto worker = make_worker([&](const delivery& d) {
    const int number = std::stoi(d.event().payload);
    if (d.attempts() > 0 && number % 7 == 0) return outcome::done();
    firsts.push_back(number);
    return number % 7 == 0 ? outcome::retry("again") : outcome::done();
  });
  for (int i = 0; i < 100 && outbox_.admin().stats().events > 0; ++i) {
    work(*worker);
    clock_->advance(2s);
  }
  EXPECT_EQ(outbox_.admin().stats().events, 0U);
  std::vector<int> expected(200);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(firsts, expected);
}

TEST_F(Worker, AHotKeyTravelsInRuns) {
  for (int i = 0; i < 1000; ++i) publish(std::to_string(i), "k");
  const auto worker = make_recorder();
  work(*worker);
  ASSERT_EQ(seen_.size(), 1000U);
  for (std::size_t i = 0; i < seen_.size(); ++i) ASSERT_EQ(seen_[i], std::to_string(i));
  // The first claims are small: the handler has not been measured yet.
  EXPECT_LE(worker->count().claims, 40U);
}

TEST_F(Worker, TriesAgainLaterAndLater) {
  const auto id = publish("a");
  std::vector<std::chrono::microseconds> when;
  const auto began = clock_->now();
  worker_options options;
  options.handling.backoff = {.first = 1s, .factor = 2, .longest = 3s};
  const auto worker = make_worker(
      [&](const delivery&) {
        when.push_back(clock_->now() - began);
        return outcome::retry("down");
      },
      options);
  for (int i = 0; i < 100; ++i) {
    work(*worker);
    clock_->advance(100ms);
  }
  EXPECT_THAT(when, ElementsAre(0s, 1s, 3s, 6s, 9s));
  EXPECT_EQ(outbox_.find(id)->details.last_error, "down");
  EXPECT_EQ(outbox_.find(id)->details.attempts, 5U);
}

TEST_F(Worker, JitterSpreadsWhatFailedTogether) {
  for (int i = 0; i < 50; ++i) publish("x");
  worker_options options = with_test_clock();
  options.handling.backoff = {.first = 10s, .jitter = 1};
  const auto worker =
      worker_core::create(outbox_, [](const delivery&) { return outcome::retry("down"); }, options);
  work(*worker);
  std::set<holdfast::timestamp> times;
  for (const auto& record : outbox_.admin().scan().records) {
    ASSERT_TRUE(record.until);
    EXPECT_LE(*record.until, clock_->now() + 10s);
    times.insert(*record.until);
  }
  EXPECT_GT(times.size(), 20U);
}

TEST_F(Worker, ParksWhatWillNeverSucceed) {
  const auto id = publish("a", "k");
  publish("b", "k");
  const auto worker = make_worker([&](const delivery& d) {
    seen_.push_back(d.event().payload);
    return d.event().payload == "a" ? outcome::permanent("no such address") : outcome::done();
  });
  work(*worker);
  EXPECT_EQ(state_of(id), event_state::parked);
  EXPECT_EQ(outbox_.find(id)->details.last_error, "no such address");
  EXPECT_THAT(seen_, ElementsAre("a", "b")) << "skip: the key continues";
  EXPECT_EQ(worker->count().parked, 1U);
  EXPECT_EQ(outbox_.admin().replay(std::vector{id}), 1U);
}

TEST_F(Worker, AKeyCanWaitForItsParkedEvent) {
  const auto id = publish("a", "k");
  publish("b", "k");
  publish("c", "other");
  worker_options options;
  options.handling.parked = holdfast::park_policy::block;
  const auto worker = make_worker(
      [&](const delivery& d) {
        seen_.push_back(d.event().payload);
        return d.event().payload == "a" ? outcome::permanent("no") : outcome::done();
      },
      options);
  work(*worker);
  EXPECT_EQ(state_of(id), event_state::blocking);
  EXPECT_THAT(seen_, ::testing::UnorderedElementsAre("a", "c"));
  EXPECT_EQ(outbox_.admin().discard(std::vector{id}), 1U);
  work(*worker);
  EXPECT_EQ(seen_.back(), "b");
}

TEST_F(Worker, GivesUpAfterSoManyAttempts) {
  const auto id = publish("a");
  worker_options options;
  options.handling.max_attempts = 3;
  options.handling.backoff = {.first = 0ms};
  const auto worker =
      make_worker([](const delivery&) -> outcome { throw std::runtime_error("broken"); }, options);
  for (int i = 0; i < 10; ++i) {
    work(*worker);
    clock_->advance(1s);
  }
  EXPECT_EQ(state_of(id), event_state::parked);
  EXPECT_EQ(worker->count().deliveries, 3U);
  EXPECT_EQ(outbox_.find(id)->details.last_error, "broken");
}

TEST_F(Worker, GivesUpWhenItIsTooOld) {
  const auto id = publish("a");
  worker_options options;
  options.handling.max_age = 1min;
  const auto worker = make_worker([](const delivery&) { return outcome::throttled(25s); }, options);
  for (int i = 0; i < 100; ++i) {
    work(*worker);
    clock_->advance(1s);
  }
  EXPECT_EQ(state_of(id), event_state::parked);
  EXPECT_EQ(worker->count().deliveries, 4U);
}

TEST_F(Worker, AThrottledEventDoesNotCount) {
  const auto id = publish("a");
  int calls = 0;
  worker_options options;
  options.handling.max_attempts = 2;
  const auto worker = make_worker(
      [&](const delivery&) { return ++calls <= 20 ? outcome::throttled(10s) : outcome::done(); },
      options);
  for (int i = 0; i < 20; ++i) {
    work(*worker);
    ASSERT_EQ(outbox_.find(id)->details.attempts, 0U);
    ASSERT_EQ(state_of(id), event_state::waiting)
        << "neither failures nor deliveries are counted; call " << i;
    clock_->advance(10s);
  }
  work(*worker);
  EXPECT_EQ(outbox_.admin().stats().events, 0U);
  EXPECT_EQ(worker->count().throttled, 20U);
}

TEST_F(Worker, AnAmbiguousFailureIsToldApart) {
  const auto id = publish("a");
  const auto worker = make_worker([](const delivery&) -> outcome {
    throw holdfast::error(holdfast::errc::timeout, "no answer",
                          {.transient = true, .in_doubt = true});
  });
  work(*worker);
  EXPECT_EQ(outbox_.find(id)->details.last_error, "ambiguous: no answer");
  EXPECT_EQ(outbox_.find(id)->details.attempts, 1U);
}

TEST_F(Worker, TypesHaveTheirHandlers) {
  publish("1", {}, "created");
  publish("2", {}, "deleted");
  const auto stranger = publish("3", {}, "renamed");
  const auto worker = worker_core::create(outbox_, holdfast::event_handler(), with_test_clock());
  worker->handle("created",
                 [&](const delivery& d) {
                   return seen_.push_back("created " + d.event().payload), outcome::done();
                 },
                 {});
  worker->handle("deleted",
                 [&](const delivery& d) {
                   return seen_.push_back("deleted " + d.event().payload), outcome::done();
                 },
                 {});
  EXPECT_THROW(worker->handle("deleted", [](const delivery&) { return outcome::done(); }, {}),
               holdfast::error);
  work(*worker);
  EXPECT_THAT(seen_, ::testing::UnorderedElementsAre("created 1", "deleted 2"));
  EXPECT_EQ(state_of(stranger), event_state::waiting);
  EXPECT_EQ(outbox_.find(stranger)->details.attempts, 0U);
}

TEST_F(Worker, ABreakerSparesTheAttemptsOfOthers) {
  for (int i = 0; i < 100; ++i) publish("x", {}, "mail");
  publish("y", {}, "print");
  bool down = true;
  int mails = 0;
  const auto worker = make_recorder({.concurrency = 1, .batch = 5});
  holdfast::handler_options options;
  options.breaker =
      holdfast::breaker_options{.window = 10, .minimum = 5, .open_for = 30s, .probes = 1};
  options.backoff = {.first = 100ms, .jitter = 0};
  worker->handle(
      "mail",
      [&](const delivery&) { return ++mails, down ? outcome::retry("refused") : outcome::done(); },
      options);
  work(*worker);
  EXPECT_EQ(mails, 5);
  EXPECT_EQ(worker->count().retried, 5U);
  EXPECT_GE(worker->count().throttled, 95U);
  EXPECT_THAT(seen_, ElementsAre("y")) << "other types are delivered";
  EXPECT_THAT(worker->health().open, ElementsAre("mail"));
  down = false;
  for (int i = 0; i < 10; ++i) {
    clock_->advance(30s);
    work(*worker);
  }
  EXPECT_EQ(outbox_.admin().stats().events, 0U);
  EXPECT_TRUE(worker->health().open.empty());
}

TEST_F(Worker, LeasesAreRenewedWhileAHandlerRuns) {
  publish("a");
  publish("b", "k");
  publish("c", "k");
  std::shared_ptr<worker_core> worker;
  const auto busy = [&](const delivery& d) {
    for (int i = 0; i < 100; ++i) {
      clock_->advance(1s);
      worker->renew_leases();
      EXPECT_TRUE(outbox_.claim({}).events.empty());
      EXPECT_FALSE(d.lost().stop_requested());
    }
    return outcome::done();
  };
  worker = make_worker(busy, {.lease = 10s, .lock_time = 10s});
  work(*worker);
  EXPECT_EQ(worker->count().done, 3U);
  EXPECT_EQ(worker->count().fenced, 0U);
}

TEST_F(Worker, ALostLeaseIsToldAndRefused) {
  publish("a");
  std::shared_ptr<worker_core> worker;
  bool stop_requested = false;
  worker = make_worker(
      [&](const delivery& d) {
        clock_->advance(11s);  // longer than the lease: another worker claims the event
        EXPECT_EQ(outbox_.claim({.lease = 1min}).events.size(), 1U);
        const std::stop_callback on_stop(d.lost(), [&] { stop_requested = true; });
        worker->renew_leases();
        EXPECT_TRUE(d.lost().stop_requested());
        return outcome::done();
      },
      {.lease = 10s, .compete = true});
  work(*worker);
  EXPECT_TRUE(stop_requested);
  EXPECT_EQ(worker->count().done, 0U);
  EXPECT_GE(worker->count().fenced, 1U);
  EXPECT_EQ(outbox_.admin().stats().events, 1U) << "the late outcome changed nothing";
}

/// A backend that does not answer in time when leases are extended.
class hanging_backend final : public holdfast::detail::outbox::memory_backend {
 public:
  using memory_backend::memory_backend;
  std::vector<bool> extend(std::size_t, holdfast::fence, std::span<const holdfast::settlement>,
                           std::chrono::milliseconds) override {
    on_extend();
    throw holdfast::error(holdfast::errc::timeout, "no answer", {.transient = true});
  }
  std::function<void()> on_extend{};
};

TEST_F(Worker, WhoOutlivedItsLeaseWhileAnotherCallHungIsToldAtOnce) {
  const auto store = std::make_shared<hanging_backend>(
      holdfast::memory_outbox_options{.lanes = 2, .clock = clock_});
  outbox_ = holdfast::outbox(store, {.lanes = 2});
  for (const std::size_t lane : {0U, 1U}) {
    std::string key = "k";
    while (outbox_.lane_of(key) != lane) key += 'k';
    publish("a", key);
  }
  std::vector<std::stop_token> lost;
  const auto stop_requests = [&] {
    return std::ranges::count_if(lost, [](const auto& token) { return token.stop_requested(); });
  };
  std::vector<std::ptrdiff_t> requests_before_call;
  store->on_extend = [&] {
    requests_before_call.push_back(stop_requests());
    clock_->advance(11s);
  };
  std::shared_ptr<worker_core> worker;
  worker = make_worker(
      [&](const delivery& d) {
        lost.push_back(d.lost());
        if (lost.size() == 1) {
          executor_->run_all();  // the other handler, while this one runs
        } else if (lost.size() == 2) {
          clock_->advance(5s);
          worker->renew_leases();
          EXPECT_EQ(stop_requests(), 2);
        }
        return outcome::done();
      },
      {.lease = 10s, .compete = true});
  for (const std::size_t lane : {0U, 1U})
    EXPECT_EQ(worker->poll_lane(lane).status, poll_status::events);
  executor_->run_all();
  EXPECT_THAT(requests_before_call, ElementsAre(0)) << "no second call: the other lease has ended";
}

TEST_F(Worker, OneWriterForEachLane) {
  publish("a");
  const auto first = make_recorder();
  const auto second = make_recorder();
  work(*first);
  publish("b");
  EXPECT_EQ(second->poll_lane(0).status, poll_status::locked_out);
  EXPECT_EQ(first->health().locks, 1U);
  EXPECT_EQ(second->health().locks, 0U);
  clock_->advance(11s);  // the lock of the first worker expires
  EXPECT_EQ(second->poll_lane(0).status, poll_status::events);
  executor_->run_all();
  EXPECT_THAT(seen_, ElementsAre("a", "b"));
  publish("c");
  EXPECT_EQ(first->poll_lane(0).status, poll_status::locked_out) << "it notices the loss";
  EXPECT_EQ(first->count().fenced, 1U);
  second->release_locks();
  EXPECT_EQ(first->poll_lane(0).status, poll_status::events);
}

TEST_F(Worker, ALockIsRenewed) {
  const auto first = make_recorder();
  const auto second = make_recorder();
  EXPECT_EQ(first->poll_lane(0).status, poll_status::nothing);
  for (int i = 0; i < 100; ++i) {
    clock_->advance(1s);
    first->renew_leases();
    ASSERT_EQ(second->poll_lane(0).status, poll_status::locked_out);
  }
}

TEST_F(Worker, CompetitorsShareALane) {
  for (int i = 0; i < 40; ++i) publish(std::to_string(i));
  const auto first = make_recorder({.compete = true, .batch = 4});
  const auto second = make_recorder({.compete = true, .batch = 4});
  for (bool some = true; some;) {
    some = first->poll_lane(0).status == poll_status::events;
    some = second->poll_lane(0).status == poll_status::events || some;
    executor_->run_all();
  }
  EXPECT_GT(first->count().done, 0U);
  EXPECT_GT(second->count().done, 0U);
  EXPECT_EQ(first->count().done + second->count().done, 40U);
}

TEST_F(Worker, GivesBackWhatNoHandlerHasSeen) {
  const auto a = publish("a");
  const auto b = publish("b", "k");
  publish("c", "k");
  const auto worker = make_recorder();
  EXPECT_EQ(worker->poll_lane(0).status, poll_status::events);
  worker->stop();
  executor_->run_all();
  EXPECT_TRUE(seen_.empty());
  EXPECT_EQ(state_of(a), event_state::due);
  EXPECT_EQ(state_of(b), event_state::due);
  EXPECT_EQ(outbox_.find(a)->details.deliveries, 0U) << "it was not delivered";
  EXPECT_GE(worker->count().released, 2U);
}

TEST_F(Worker, ClaimsNoMoreThanSlowHandlersCanTake) {
  for (int i = 0; i < 1000; ++i) publish("x");
  const auto worker = make_worker(
      [&](const delivery&) {
        clock_->advance(100ms);
        return outcome::done();
      },
      {.concurrency = 2, .lease = 1h, .lock_time = 1h, .batch_time = 1s});
  for (int i = 0; i < 20; ++i) {
    worker->poll_lane(0);
    executor_->run_all();
  }
  worker->poll_lane(0);
  EXPECT_LE(worker->in_flight(), 25U) << "a second of work for two handlers";
  EXPECT_EQ(worker->poll_lane(0).status, poll_status::no_room);
  executor_->run_all();
  EXPECT_EQ(worker->in_flight(), 0U);
}

TEST_F(Worker, TicketsBecomeEventsByThemselves) {
  outbox_.schedule("hold-7", 5s, {.type = "hold.expired", .payload = "7"});
  const auto worker = make_recorder();
  const auto polled = worker->poll_lane(0);
  EXPECT_EQ(polled.status, poll_status::nothing);
  EXPECT_LE(polled.wait, 5s);
  clock_->advance(5s);
  work(*worker);
  EXPECT_THAT(seen_, ElementsAre("7"));
  EXPECT_EQ(worker->count().tickets, 1U);
}

TEST_F(Worker, LooksAtTicketsAndNumbersThoughTheClockBeginsBeforeZero) {
  clock_ = std::make_shared<virtual_clock>(virtual_clock::default_start(), -1h);
  executor_ = std::make_shared<manual_executor>(clock_);
  outbox_ = holdfast::outbox(holdfast::make_memory_outbox({.clock = clock_}));
  outbox_.schedule("hold-7", 1ms, {.type = "hold.expired", .payload = "7"});
  clock_->advance(1ms);
  const auto worker = make_worker([](const delivery&) { return outcome::retry("not yet", 1h); });
  work(*worker);
  EXPECT_EQ(worker->count().tickets, 1U);
  worker->sample_backlog();
  EXPECT_EQ(worker->health().depth, 1U);
}

TEST_F(Worker, SleepsUntilTheNextEventIsDue) {
  outbox_.publish({.type = "t", .payload = "later", .delay = 300ms});
  const auto worker = make_recorder();
  const auto polled = worker->poll_lane(0);
  EXPECT_EQ(polled.status, poll_status::nothing);
  EXPECT_EQ(polled.wait, 300ms);
  clock_->advance(300ms);
  work(*worker);
  EXPECT_THAT(seen_, ElementsAre("later"));
}

TEST_F(Worker, APauseIsKept) {
  publish("a");
  outbox_.admin().pause();
  const auto worker = make_recorder();
  EXPECT_EQ(worker->poll_lane(0).status, poll_status::paused);
  outbox_.admin().resume();
  work(*worker);
  EXPECT_THAT(seen_, ElementsAre("a"));
}

TEST_F(Worker, PoisonThatKillsItsWorkersIsParked) {
  const auto id = publish("poison");
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(outbox_.claim({.lease = 1s}).events.size(), 1U);  // and the worker dies
    clock_->advance(1s);
  }
  const auto worker = make_recorder();
  work(*worker);
  EXPECT_TRUE(seen_.empty());
  EXPECT_EQ(state_of(id), event_state::parked);
}

TEST_F(Worker, FailuresThatWereReportedAreNoPoison) {
  const auto id = publish("a");
  worker_options options;
  options.handling.backoff = {.first = 1ms};
  options.handling.max_attempts = 30;
  const auto worker = make_worker([](const delivery&) { return outcome::retry("down"); }, options);
  for (int i = 0; i < 12; ++i) {
    work(*worker);
    ASSERT_EQ(state_of(id), event_state::waiting) << i;
    clock_->advance(5min);
  }
  EXPECT_EQ(outbox_.find(id)->details.attempts, 12U);
}

TEST_F(Worker, IsNotDoneWhenAClaimWasParkedOnItsWay) {
  for (int i = 0; i < 3; ++i) outbox_.publish({.type = "t", .time_to_live = 1s});
  clock_->advance(2s);
  const auto worker = make_recorder({.batch = 1});
  for (int i = 1; i <= 3; ++i) {
    const auto polled = worker->poll_lane(0);
    EXPECT_EQ(polled.status, poll_status::nothing);
    EXPECT_FALSE(polled.quiet) << "there may be more events";
    EXPECT_EQ(outbox_.admin().stats().parked, static_cast<std::uint64_t>(i));
    EXPECT_EQ(worker->count().parked, static_cast<std::uint64_t>(i));
  }
  EXPECT_TRUE(worker->poll_lane(0).quiet);
}

TEST_F(Worker, AWrongPauseKeepsNoOutcomeFromBeingTold) {
  for (const char* payload : {"a", "b", "c"}) publish(payload);
  const auto worker = make_worker([&](const delivery& d) {
    seen_.push_back(d.event().payload);
    if (d.event().payload != "b" || d.attempts() > 1) return outcome::done();
    return outcome::retry("not yet", d.attempts() == 0 ? -1ms : std::chrono::milliseconds::max());
  });
  work(*worker);
  EXPECT_THAT(seen_, ::testing::UnorderedElementsAre("a", "b", "b", "c"))
      << "a negative pause counts as zero";
  EXPECT_EQ(worker->count().done, 2U);
  clock_->advance(24h * 3661);
  work(*worker);
  EXPECT_EQ(worker->count().done, 3U) << "the longest pause is ten years";
}

TEST_F(Worker, AnEventThatIsTooLateDoesNotHoldUpItsKey) {
  const auto worker = make_recorder();
  for (int i = 0; i < 50; ++i) publish("warm");
  work(*worker);  // its handlers are quick, so it claims runs from now on
  seen_.clear();
  publish("1", "k");
  const auto late =
      outbox_.publish({.type = "t", .key = "k", .payload = "2", .time_to_live = 1s}).id;
  publish("3", "k");
  publish("4", "k");
  clock_->advance(2s);
  // A claim whose events are all parked counts as empty.
  for (int i = 0; i < 3; ++i) work(*worker);
  EXPECT_THAT(seen_, ElementsAre("1", "3", "4")) << "without waiting for a lease to end";
  EXPECT_EQ(state_of(late), event_state::parked);
  EXPECT_EQ(worker->count().fenced, 0U);
}

/// A backend that fails once to park followers.
class failing_backend final : public holdfast::detail::outbox::memory_backend {
 public:
  using memory_backend::memory_backend;
  std::size_t park_followers(std::size_t lane, std::string_view key, std::size_t most) override {
    if (std::exchange(fails, false))
      throw holdfast::error(holdfast::errc::unavailable, "not now", {.transient = true});
    return memory_backend::park_followers(lane, key, most);
  }
  bool fails = true;
};

TEST_F(Worker, WhatWasSettledIsSettledThoughTheParkingBehindItFails) {
  outbox_ = holdfast::outbox(
      std::make_shared<failing_backend>(holdfast::memory_outbox_options{.clock = clock_}), {});
  publish("good");
  publish("bad", "k");
  publish("behind", "k");
  const auto worker = make_worker(
      [](const delivery& d) {
        return d.event().payload == "bad" ? outcome::permanent("bad") : outcome::done();
      },
      {.handling = {.parked = holdfast::park_policy::park}});
  for (int i = 0; i < 3; ++i) work(*worker);
  const auto did = worker->count();
  EXPECT_EQ(did.done, 1U);
  EXPECT_EQ(did.parked, 1U);
  EXPECT_EQ(did.fenced, 0U) << "no settlement is sent twice";
  EXPECT_EQ(did.errors, 0U);
  EXPECT_EQ(outbox_.admin().stats().parked, 2U) << "the next claim parks the followers";
}

TEST_F(Worker, TheRestOfARunWhoseHeadIsReplayedIsGivenBack) {
  // A replayed event goes behind others, but has a smaller sequence.
  const auto first = publish("first", "k");
  const auto got = outbox_.claim({.run = 1});
  ASSERT_TRUE(outbox_.park(got.fence, got.events.at(0), holdfast::park_policy::skip, "bad"));
  outbox_.publish({.type = "t", .key = "k", .payload = "late", .time_to_live = 1s});
  const std::vector<std::string> ids{first};
  ASSERT_EQ(outbox_.admin().replay(ids), 1U);
  clock_->advance(2s);
  EXPECT_TRUE(outbox_.claim({.run = 10}).events.empty()) << "the head is too late";
  EXPECT_EQ(state_of(first), event_state::due) << "not held until the lease ends";
}

TEST_F(Worker, TheNextRunIsClaimedWhenItIsClaimed) {
  for (const char* payload : {"a", "b"}) publish(payload, "k");
  worker_options options{.lease = 1h, .lock_time = 1h, .run = 1};
  options.handling.max_age = 60s;
  std::string second;
  const auto worker = make_worker(
      [&](const delivery& d) {
        if (d.event().payload == "a") {
          clock_->advance(50s);
          return outcome::done();
        }
        second = d.event().id;
        return outcome::retry("not yet", 1h);
      },
      options);
  work(*worker);
  ASSERT_FALSE(second.empty());
  EXPECT_EQ(state_of(second), event_state::waiting) << "it is 50 seconds old, not 100";
}

TEST_F(Worker, DropsThePayloadOfWhatIsDone) {
  struct payloads final : holdfast::payload_store {
    std::map<std::string, std::string, std::less<>> kept{};
    std::string put(std::string_view id, std::string_view payload) override {
      return kept[std::string(id)] = payload, std::string(id);
    }
    std::string get(std::string_view reference) override { return kept.find(reference)->second; }
    void drop(std::string_view reference) override { kept.erase(std::string(reference)); }
  };
  const auto store = std::make_shared<payloads>();
  const holdfast::outbox box(holdfast::make_memory_outbox({.clock = clock_}),
                             {.inline_limit = 10, .claim_check = store});
  for (const char* type : {"done", "not yet", "done"})
    box.publish({.type = type, .payload = std::string(20, 'x')});
  std::string passed_on;
  const auto worker = worker_core::create(
      box,
      [&](const delivery& d) {
        passed_on = holdfast::relay::to_json(d);
        return d.event().type == "done" ? outcome::done() : outcome::retry("not yet", 1h);
      },
      with_test_clock());
  work(*worker);
  EXPECT_EQ(worker->count().done, 2U);
  EXPECT_EQ(store->kept.size(), 1U) << "the payload of the event that is retried";
  EXPECT_THAT(passed_on, ::testing::HasSubstr(R"("payloadText":"xxxxxxxxxxxxxxxxxxxx")"))
      << "not a reference, which will be dropped";
}

TEST_F(Worker, AnEventSaysNothingAboutItsRequest) {
  holdfast::claimed_event claimed;
  claimed.event = {.type = "t", .id = "018f2b6e-5c1e-7000-8000-000000000001"};
  for (const char* header : {"CE-Id",
                             "ce-extra",
                             "idempotency-KEY",
                             "Content-Length",
                             "transfer-encoding",
                             "HOST",
                             "Connection",
                             "Expect",
                             "TE",
                             "Trailer",
                             "Upgrade",
                             "Keep-Alive",
                             "Content-Type",
                             "content_length",
                             "Transfer_Encoding",
                             "ce_id",
                             "Proxy",
                             "Proxy-Connection",
                             "proxy_authenticate",
                             "X-Forwarded-For",
                             "x_forwarded_host",
                             "Forwarded",
                             "Via",
                             "X-Real-IP",
                             "X-HTTP-Method-Override",
                             "X-Method-Override",
                             "X-HTTP-Method",
                             "x_http_method",
                             "X-Original-URL",
                             "X-Rewrite-URL"}) {
    claimed.event.headers.emplace(header, "1");
  }
  claimed.event.headers.emplace("traceparent", "00-1-2-01");
  claimed.event.headers.emplace("tenant_id", "acme");
  std::vector<std::string> names;
  for (const auto& [name, value] :
       holdfast::relay::cloud_event_headers(delivery(outbox_, claimed, 7, {}), "/here")) {
    names.push_back(name);
    EXPECT_NE(value, "1") << name;
  }
  EXPECT_THAT(names,
              ElementsAre("Idempotency-Key", "ce-fence", "ce-id", "ce-sequence", "ce-source",
                          "ce-specversion", "ce-time", "ce-type", "tenant_id", "traceparent"));
}

TEST_F(Worker, CredentialsOfAnEventAreNotPassedOnUnlessAsked) {
  holdfast::claimed_event claimed;
  claimed.event = {.type = "t", .id = "018f2b6e-5c1e-7000-8000-000000000001"};
  for (const char* header :
       {"Authorization", "COOKIE", "proxy-authorization", "Set-Cookie", "x-authorization",
        "Proxy_Authorization", "Cookie2", "Set-Cookie2", "X-Api-Key", "X_AUTH_TOKEN"})
    claimed.event.headers.emplace(header, "Bearer secret");
  const delivery delivered(outbox_, claimed, 7, {});
  std::vector<std::string> names;
  const auto pass = [&](holdfast::relay::cloud_event_options options) {
    names.clear();
    for (const auto& [name, value] :
         holdfast::relay::cloud_event_headers(delivered, "/here", options))
      if (value == "Bearer secret") names.push_back(name);
    return names;
  };
  EXPECT_THAT(pass({}), ElementsAre("x-authorization"));
  EXPECT_THAT(pass({.credentials = true}),
              ElementsAre("Authorization", "COOKIE", "Cookie2", "Proxy_Authorization", "Set-Cookie",
                          "Set-Cookie2", "X-Api-Key", "X_AUTH_TOKEN", "proxy-authorization",
                          "x-authorization"));
}

TEST_F(Worker, OptionsThatCannotHold) {
  const auto refused = [&](worker_options options) {
    EXPECT_THROW(make_recorder(std::move(options)), holdfast::error);
  };
  refused({.concurrency = 0});
  refused({.lease = 1ms});
  refused({.lease = 24h * 4000});
  refused({.lock_time = 24h * 4000});
  refused({.batch = 0});
  refused({.batch = 1001});
  refused({.run = 0});
  refused({.pollers = 0});
  worker_options options;
  options.handling.backoff.factor = 0.5;
  refused(options);
  EXPECT_THROW(holdfast::worker(outbox_, holdfast::event_handler()), holdfast::error);
}

}  // namespace
