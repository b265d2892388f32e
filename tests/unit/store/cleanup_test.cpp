// The cleanup on a manual executor and a virtual clock, so that every race is a fixed order of
// steps.

#include <holdfast/database.hpp>
#include <holdfast/store/cleanup.hpp>

#include "store/cleaner.hpp"
#include "support/eventually.hpp"
#include "support/gate.hpp"
#include "support/manual_executor.hpp"
#include "support/virtual_clock.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using detail::store::cleaner;
using detail::store::cleaner_parts;

/// A row of the lease table.
struct lease_row {
  std::string owner{};
  timestamp until{};
  std::uint64_t fence = 0;
  std::function<void()> before_release = [] {};
};

class row_lease final : public detail::store::table_lease {
 public:
  row_lease(std::shared_ptr<lease_row> row, std::shared_ptr<virtual_clock> clock)
      : row_(std::move(row)), clock_(std::move(clock)) {}
  attempt acquire(std::string_view owner, std::chrono::microseconds duration) override {
    if (row_->until > clock_->now() && row_->owner != owner) return {.holder = row_->owner};
    row_->owner = owner;
    row_->until = clock_->now() + duration;
    ++row_->fence;
    return {.fence = row_->fence, .holder = row_->owner};
  }
  bool renew(std::string_view owner, std::uint64_t fence,
             std::chrono::microseconds duration) override {
    if (row_->owner != owner || row_->fence != fence) return false;
    row_->until = clock_->now() + duration;
    return true;
  }
  void release(std::string_view owner, std::uint64_t fence) override {
    row_->before_release();
    if (row_->owner == owner && row_->fence == fence) row_->until = {};
  }

 private:
  std::shared_ptr<lease_row> row_;
  std::shared_ptr<virtual_clock> clock_;
};

/// A store that counts entries instead of keeping them.
class counting_store final : public holdfast::store {
 public:
  std::size_t expired = 0;
  std::function<void()> before_batch = [] {};
  std::vector<std::size_t> batches{};

  void put(std::span<const entry>) override {}
  std::optional<entry> find(place, std::string_view) override { return std::nullopt; }
  entry_page find_all(place, std::size_t, std::string_view) override { return {}; }
  bool erase(place, std::string_view, timestamp) override { return false; }
  std::size_t expire(timestamp, std::size_t limit) override {
    before_batch();
    const auto removed = std::min(limit, expired);
    expired -= removed;
    batches.push_back(removed);
    return removed;
  }
  std::uint64_t count(place) override { return expired; }
  store_health health() noexcept override { return {}; }
};

struct Cleanup : ::testing::Test {
  std::shared_ptr<virtual_clock> clock = std::make_shared<virtual_clock>();  // 2026-01-01 00:00:00
  std::shared_ptr<manual_executor> executor = std::make_shared<manual_executor>(clock);
  std::shared_ptr<counting_store> store = std::make_shared<counting_store>();
  std::shared_ptr<lease_row> row = std::make_shared<lease_row>();
  std::shared_ptr<prometheus_registry> registry = make_prometheus_registry();
  std::vector<std::string> lines{};

  // A task that did not run owns its cleaner, which owns the executor
  void TearDown() override { executor->clear(); }

  std::shared_ptr<cleaner> make(cleanup_options options = {}) {
    if (options.jitter == cleanup_options{}.jitter) options.jitter = 0ms;
    auto log = std::make_shared<const logger>([this](const log_record& record) {
      lines.push_back(std::string(to_string(record.level)) + " " +
                      std::string(record.fields.empty() ? "" : record.fields[0].value));
    });
    auto result =
        std::make_shared<cleaner>(cleaner_parts{.target = store,
                                                .lease = std::make_unique<row_lease>(row, clock),
                                                .executor = executor,
                                                .clock = clock,
                                                .log = log,
                                                .metrics = isolate(registry)},
                                  options);
    result->start();
    return result;
  }
};

TEST_F(Cleanup, RunsByItsScheduleAndRemovesInBatches) {
  const auto cleaner = make({.batch = 10});
  store->expired = 25;
  executor->advance(59min);
  EXPECT_EQ(store->expired, 25U) << "not yet";
  EXPECT_EQ(cleaner->state().next, clock->now() + 1min);
  executor->advance(1min);
  EXPECT_EQ(store->batches, (std::vector<std::size_t>{10, 10, 5, 0}));
  const auto state = cleaner->state();
  ASSERT_TRUE(state.last);
  EXPECT_EQ(state.last->result, cleanup_result::cleaned);
  EXPECT_EQ(state.last->removed, 25U);
  EXPECT_EQ(state.last->fence, 1U);
  EXPECT_EQ(state.last->holder, row->owner);
  EXPECT_EQ(row->until, timestamp{}) << "given back";
  EXPECT_EQ(state.next, clock->now() + 1h);
  store->expired = 3;
  executor->advance(1h);
  EXPECT_EQ(cleaner->state().removed, 28U);
  EXPECT_EQ(cleaner->state().runs, 2U);
}

TEST_F(Cleanup, TellsOfEveryRunToOneWhoMayThrow) {
  std::vector<std::size_t> removed;
  const auto cleaner = make({.on_run = [&](const cleanup_report& report) {
    removed.push_back(report.removed);
    throw std::runtime_error("a listener's fault");
  }});
  store->expired = 2;
  executor->advance(2h);
  EXPECT_EQ(removed, (std::vector<std::size_t>{2, 0}));
  EXPECT_EQ(cleaner->state().failures, 0U);
}

TEST_F(Cleanup, ARunIsLimitedAndTheNextGoesOn) {
  const auto cleaner = make({.batch = 10, .limit = 15});
  store->expired = 20;
  EXPECT_EQ(cleaner->run_now().result, cleanup_result::limited);
  EXPECT_EQ(store->expired, 5U);
  EXPECT_EQ(cleaner->run_now().result, cleanup_result::cleaned);
  EXPECT_EQ(store->expired, 0U);
}

TEST_F(Cleanup, IsLaterByUpToItsJitter) {
  bool late = false;
  for (int i = 0; i < 20; ++i) {
    const auto next = make({.jitter = 10min})->state().next;
    ASSERT_TRUE(next);
    EXPECT_GE(*next, clock->now() + 1h);
    EXPECT_LE(*next, clock->now() + 1h + 10min);
    late = late || *next != clock->now() + 1h;
  }
  EXPECT_TRUE(late);
}

TEST_F(Cleanup, OfTwoMachinesOneCleans) {
  const auto one = make({.batch = 1});
  const auto two = make({.batch = 1});
  store->expired = 5;
  executor->advance(1h);
  EXPECT_EQ(one->state().removed + two->state().removed, 5U);
  EXPECT_EQ(one->state().skipped + two->state().skipped, 1U);
  const auto& idle = one->state().skipped == 1 ? one : two;
  const auto& busy = one->state().skipped == 1 ? two : one;
  EXPECT_EQ(idle->state().last->result, cleanup_result::held_elsewhere);
  EXPECT_EQ(idle->state().last->holder, busy->state().last->holder) << "reports the holder";
  EXPECT_EQ(idle->state().removed, 0U);
}

TEST_F(Cleanup, InWhateverOrderTheyRunOneCleansAtATime) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const auto one = make({.batch = 1});
    const auto two = make({.batch = 1});
    store->expired = 8;
    store->batches.clear();
    clock->advance(1h);
    executor->run_all_shuffled(seed);
    EXPECT_EQ(store->expired, 0U);
    // Each run of batches ends with one that found nothing; a second cleaner only comes after it.
    for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(store->batches.at(i), 1U) << "seed " << seed;
    executor->clear();
  }
}

TEST_F(Cleanup, AHolderThatDiedIsFollowedWhenItsLeaseEnds) {
  auto died = make({.batch = 1, .lease = 60s});
  store->expired = 5;
  clock->advance(1h);
  executor->run_one();  // the timer
  executor->run_one();  // the lease
  executor->run_one();  // a batch
  EXPECT_EQ(store->expired, 4U);
  executor->clear();  // kill -9
  const auto next = make({.batch = 1, .lease = 60s});
  EXPECT_EQ(next->run_now().result, cleanup_result::held_elsewhere);
  clock->advance(59s);
  EXPECT_EQ(next->run_now().result, cleanup_result::held_elsewhere);
  clock->advance(1s);
  const auto report = next->run_now();
  EXPECT_EQ(report.result, cleanup_result::cleaned);
  EXPECT_EQ(report.removed, 4U);
  EXPECT_EQ(report.fence, 2U) << "the fence grew";
}

TEST_F(Cleanup, ASlowHolderRenewsItsLease) {
  const auto cleaner = make({.batch = 1, .lease = 60s});
  store->expired = 10;
  store->before_batch = [&] {
    EXPECT_GT(row->until, clock->now() + 30s) << "never near its end when a batch begins";
    clock->advance(25s);
  };
  const auto report = cleaner->run_now();
  EXPECT_EQ(report.result, cleanup_result::cleaned);
  EXPECT_EQ(report.removed, 10U);
  EXPECT_EQ(report.duration, 275s);
}

TEST_F(Cleanup, AHolderThatWasTooSlowStopsWhenAnotherTookOver) {
  const auto slow = make({.batch = 1, .lease = 60s});
  const auto quick = make({.batch = 1, .lease = 60s});
  store->expired = 10;
  bool stalled = false;
  store->before_batch = [&] {
    if (std::exchange(stalled, true)) return;
    clock->advance(61s);  // as if the machine had slept
    EXPECT_EQ(quick->run_now().removed, 10U);
  };
  const auto report = slow->run_now();
  EXPECT_EQ(report.result, cleanup_result::cleaned) << "nothing was left to remove";
  stalled = false;
  store->expired = 10;
  store->before_batch = [&] {
    if (std::exchange(stalled, true)) return;
    clock->advance(61s);
    row->owner = "another";
    row->until = clock->now() + 1h;
    ++row->fence;
  };
  const auto second = slow->run_now();
  EXPECT_EQ(second.result, cleanup_result::lost);
  EXPECT_EQ(second.removed, 1U) << "the batch that it was in, and no other";
  EXPECT_EQ(row->owner, "another") << "left alone";
  EXPECT_EQ(slow->state().failures, 1U);
}

TEST_F(Cleanup, AFailureIsReportedAndTheScheduleGoesOn) {
  const auto cleaner = make();
  store->expired = 5;
  store->before_batch = [] {
    throw error(errc::unavailable, "the server is down", {.transient = true});
  };
  executor->advance(1h);
  auto state = cleaner->state();
  EXPECT_EQ(state.last->result, cleanup_result::failed);
  EXPECT_EQ(state.last->problem, "the server is down");
  EXPECT_EQ(row->until, timestamp{}) << "given back, so that another may try";
  EXPECT_EQ(lines, std::vector<std::string>{"warning failed"});
  store->before_batch = [] {};
  executor->advance(1h);
  EXPECT_EQ(cleaner->state().last->result, cleanup_result::cleaned);
  EXPECT_EQ(lines.back(), "info cleaned");
  const auto text = registry->text();
  EXPECT_NE(text.find("holdfast_cleanup_runs_total{result=\"failed\"} 1\n"), std::string::npos);
  EXPECT_NE(text.find("holdfast_cleanup_runs_total{result=\"cleaned\"} 1\n"), std::string::npos);
  EXPECT_NE(text.find("holdfast_cleanup_removed_total 5\n"), std::string::npos);
  EXPECT_NE(text.find("holdfast_cleanup_seconds_count 2\n"), std::string::npos);
}

TEST_F(Cleanup, CloseEndsARunBetweenTwoBatchesAndGivesTheLeaseBack) {
  const auto cleaner = make({.batch = 1});
  store->expired = 5;
  clock->advance(1h);
  for (int i = 0; i < 3; ++i) executor->run_one();
  EXPECT_TRUE(cleaner->state().running);
  EXPECT_TRUE(cleaner->close(std::chrono::steady_clock::now() + 20s));
  EXPECT_EQ(cleaner->state().last->result, cleanup_result::stopped);
  EXPECT_EQ(row->until, timestamp{});
  EXPECT_FALSE(cleaner->state().next);
  executor->run_all();
  EXPECT_EQ(store->expired, 4U) << "nothing more";
  EXPECT_EQ(cleaner->run_now().result, cleanup_result::stopped);
}

TEST_F(Cleanup, CloseDoesNotWaitLongerThanItsDeadlineForTheLease) {
  const auto hung = std::make_shared<gate>();
  const auto cleaner = make({.batch = 1});
  store->expired = 5;
  row->before_release = [hung] { hung->wait(); };
  clock->advance(1h);
  for (int i = 0; i < 3; ++i) executor->run_one();
  auto closed = std::async(std::launch::async,
                           [&] { return cleaner->close(std::chrono::steady_clock::now() + 50ms); });
  const bool in_time = closed.wait_for(60s) == std::future_status::ready;
  EXPECT_TRUE(in_time);
  hung->open();
  EXPECT_EQ(closed.get(), !in_time);
  EXPECT_TRUE(cleaner->close(std::chrono::steady_clock::now() + 20s)) << "it ended by itself";
  EXPECT_EQ(row->until, timestamp{});
}

TEST_F(Cleanup, DoesNotRunTwiceAtOnce) {
  const auto cleaner = make({.batch = 1});
  store->expired = 5;
  clock->advance(1h);
  for (int i = 0; i < 3; ++i) executor->run_one();
  EXPECT_EQ(cleaner->run_now().result, cleanup_result::running);
  executor->run_all();
  EXPECT_EQ(cleaner->state().last->removed, 5U);
}

TEST_F(Cleanup, OneThatIsGoneDoesNothing) {
  auto cleaner = make();
  store->expired = 5;
  cleaner.reset();
  executor->advance(2h);
  EXPECT_EQ(store->expired, 5U);
  EXPECT_EQ(executor->size(), 0U) << "and leaves no timer";
}

TEST_F(Cleanup, AClockThatIsSetDoesNotStopIt) {
  const auto cleaner = make();
  store->expired = 1;
  clock->jump(-std::chrono::hours(24 * 30));
  executor->advance(1h + 1min);
  EXPECT_EQ(store->expired, 0U) << "the next hour of the new time, not a month later";
  store->expired = 1;
  clock->jump(std::chrono::hours(24 * 30) + 30min);
  executor->advance(1min);
  EXPECT_EQ(store->expired, 0U) << "its hour has passed";
}

/// Refuses all tasks.
struct full_executor final : executor {
  bool post(task) override { return false; }
  bool post_after(std::chrono::steady_clock::duration, task) override { return false; }
};

TEST_F(Cleanup, AFullExecutorIsLoggedAndRunNowStillWorks) {
  auto parts = cleaner_parts{.target = store,
                             .executor = std::make_shared<full_executor>(),
                             .clock = clock,
                             .log = std::make_shared<const logger>(
                                 [this](const log_record& r) { lines.emplace_back(r.message); }),
                             .metrics = isolate(nullptr)};
  const auto cleaner =
      std::make_shared<detail::store::cleaner>(std::move(parts), cleanup_options{});
  cleaner->start();
  EXPECT_EQ(lines.size(), 1U);
  EXPECT_FALSE(cleaner->state().next);
  store->expired = 3;
  EXPECT_EQ(cleaner->run_now().removed, 3U);
}

TEST_F(Cleanup, ContinuesWhenTheExecutorHasRoomAgain) {
  struct pausable_executor final : executor {
    explicit pausable_executor(std::shared_ptr<executor> target) : next(std::move(target)) {}
    bool post(task t) override { return next->post(std::move(t)); }
    bool post_after(std::chrono::steady_clock::duration delay, task t) override {
      return !full && next->post_after(delay, std::move(t));
    }
    std::shared_ptr<executor> next;
    bool full = false;
  };
  const auto limited = std::make_shared<pausable_executor>(executor);
  auto parts = cleaner_parts{.target = store,
                             .executor = limited,
                             .clock = clock,
                             .log = std::make_shared<const logger>(
                                 [this](const log_record& r) { lines.emplace_back(r.message); }),
                             .metrics = isolate(nullptr)};
  const auto cleaner =
      std::make_shared<detail::store::cleaner>(std::move(parts), cleanup_options{.jitter = 0ms});
  cleaner->start();
  limited->full = true;
  executor->advance(2h);
  EXPECT_FALSE(cleaner->state().next);
  EXPECT_EQ(lines.size(), 1U) << "logged once";
  limited->full = false;
  EXPECT_TRUE(cleaner->state().next) << "state() starts it again";
  store->expired = 3;
  executor->advance(1h);
  EXPECT_EQ(store->expired, 0U);
  ASSERT_TRUE(cleaner->close(std::chrono::steady_clock::now()));
  EXPECT_FALSE(cleaner->state().next) << "but not after close";
}

TEST_F(Cleanup, RefusesInvalidOptions) {
  for (const cleanup_options& bad :
       {cleanup_options{.cron = "hourly"}, cleanup_options{.batch = 0}, cleanup_options{.limit = 0},
        cleanup_options{.jitter = -1ms}, cleanup_options{.lease = 10ms}}) {
    EXPECT_THROW((void)make(bad), error);
  }
}

TEST(CleanupOnMemory, RunsOnAPoolEvenIfTheClockIsFarAheadOfTheSystem) {
  // A moment before the hour, so that the pool does not wait long.
  const auto clock = std::make_shared<virtual_clock>(virtual_clock::default_start() - 20ms,
                                                     virtual_clock::far_ahead);
  const auto db = open("memory:", {.clock = clock});
  const auto store = db.store();
  const entry e{.name = "n",
                .key = "k",
                .as_of = clock->now(),
                .expire_on = clock->now() + 1ms,
                .payload = "x",
                .payload_class = "c"};
  store->put({&e, 1});
  cleanup cleaner(db, store, {.jitter = 0ms});
  clock->advance(1s);
  EXPECT_TRUE(eventually([&] { return cleaner.state().removed == 1; }));
  EXPECT_TRUE(cleaner.close(std::chrono::steady_clock::now() + 20s));
}

TEST(CleanupOnMemory, CleansThroughThePublicInterface) {
  const auto clock = std::make_shared<virtual_clock>();
  const auto executor = std::make_shared<manual_executor>(clock);
  const auto db = open("memory:", {.clock = clock, .executor = executor});
  const auto store = db.store();
  const entry e{.name = "n",
                .key = "k",
                .as_of = clock->now(),
                .expire_on = clock->now() + 30min,
                .payload = "x",
                .payload_class = "c"};
  store->put({&e, 1});
  cleanup cleaner(db, store, {.jitter = 0ms});
  executor->advance(1h);
  EXPECT_FALSE(store->find("n", "k"));
  EXPECT_EQ(cleaner.state().removed, 1U);
  EXPECT_TRUE(cleaner.close(std::chrono::steady_clock::now()));
  EXPECT_THROW(cleanup(db, nullptr), error);
}

}  // namespace
}  // namespace holdfast::test
