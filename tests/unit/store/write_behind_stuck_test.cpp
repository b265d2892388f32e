// What must not hold up all the rest, or wait for what will not come.

#include "support/eventually.hpp"
#include "support/failure_of.hpp"
#include "support/gate.hpp"
#include "unit/store/write_behind_fixture.hpp"

#include <atomic>
#include <cstdlib>
#include <future>
#include <thread>

namespace holdfast::test {
namespace {

using operation = faulty_store::operation;

class WriteBehindStuck : public WriteBehindFixture {
 protected:
  static error down() { return {errc::unavailable, "the database is down", {.transient = true}}; }
};

TEST_F(WriteBehindStuck, ARowThatCannotBeReadDoesNotStopTheWriter) {
  before_ = [](operation op, auto) {
    if (op == operation::put) throw down();
  };
  auto brief = make("k");
  brief.expire_on = clock_->now() + 1s;
  put(brief);
  put(make("other", 0ms, "v"));
  executor_->advance(5s);
  // As a sealed store says it of a row that was sealed with a key that is gone.
  before_ = [](operation op, auto) {
    if (op == operation::find)
      throw error(errc::not_found, "sealed with a key that is not in the ring", {.path = "n/k"});
  };
  executor_->advance(5s);
  EXPECT_EQ(stored("other"), "v");
  EXPECT_EQ(numbers().pending, 0U);
  EXPECT_EQ(numbers().expired, 1U);
}

TEST_F(WriteBehindStuck, AStoreThatCannotBeReadIsWaitedFor) {
  auto brief = make("k", 0ms, "new");
  brief.expire_on = clock_->now() + 1s;
  model_->put(make("k", 1min, "old"));
  put(brief);
  clock_->advance(2s);
  before_ = [](operation op, auto) {
    if (op == operation::find)
      throw error(errc::permission, "no privilege", {.path = "FAILOVER_STORE"});
  };
  executor_->advance(5s);
  EXPECT_EQ(numbers().pending, 1U)
      << "what it would have replaced is there, and may be readable tomorrow";
  before_ = {};
  executor_->advance(5s);
  EXPECT_EQ(numbers().pending, 0U);
  EXPECT_EQ(stored("k"), "(none)");
}

TEST_F(WriteBehindStuck, AnOlderPutDoesNotFollowAnExpiredOneThatIsTriedAgain) {
  auto brief = make("k", 0ms, "new");
  brief.expire_on = clock_->now() + 1s;
  const auto older = make("k", 1ms, "older");
  model_->put(make("k", 1min, "old"));
  put(brief);
  clock_->advance(2s);
  before_ = [](operation op, auto) {
    if (op == operation::erase) throw error(errc::unavailable, "an unknown fault");
  };
  executor_->advance(5s);
  ASSERT_EQ(numbers().pending, 1U) << "what it would have replaced could not be erased";
  put(older);
  executor_->advance(5s);
  before_ = {};
  executor_->advance(5s);
  EXPECT_EQ(numbers().pending, 0U);
  EXPECT_EQ(stored("k"), "(none)") << "the store would have refused it if the newer one was there";
  EXPECT_EQ(numbers().coalesced, 1U);
}

TEST_F(WriteBehindStuck, AnEraseIsCarriedOutThoughThePutAfterItIsRefused) {
  const auto erased = make("k", 1s, "old");
  put(erased);
  executor_->run_all();
  bool unreachable = true;
  before_ = [&](operation op, std::span<const entry> entries) {
    if (op == operation::put && entries[0].payload == "poison")
      throw error(errc::too_large, "the row is too long");
    if (op == operation::erase && std::exchange(unreachable, false)) throw down();
  };
  ASSERT_TRUE(store().erase("n", "k", erased.as_of));
  put(make("k", 0ms, "poison"));
  executor_->advance(5s);
  EXPECT_EQ(numbers().failed, 1U);
  EXPECT_EQ(numbers().pending, 0U);
  EXPECT_EQ(payload("k"), "(none)") << "its erase was acknowledged";
}

TEST_F(WriteBehindStuck, ARefusedPutLeavesTheLastGoodAnswer) {
  put(make("k", 1s, "old"));
  executor_->run_all();
  before_ = [&](operation op, auto) {
    if (op == operation::put) throw error(errc::too_large, "the row is too long");
  };
  put(make("k", 0ms, "poison"));
  executor_->advance(5s);
  EXPECT_EQ(payload("k"), "old");
}

TEST_F(WriteBehindStuck, FlushesOfAStoreThatFailsLeaveNoTimersBehind) {
  before_ = [](operation op, auto) {
    if (op == operation::put) throw down();
  };
  put(make("k", 0ms, "v"));
  executor_->run_all();
  for (int i = 0; i < 200; ++i) {
    (void)store().flush(now());
    executor_->run_all();
    executor_->advance(1ms);
  }
  EXPECT_GE(sizes_.size(), 200U) << "each of them tried";
  EXPECT_LE(executor_->size(), 20U);
  executor_->advance(10s);
  EXPECT_LE(executor_->size(), 1U) << "one that tries again is enough";
  before_ = {};
  executor_->advance(10s);
  EXPECT_EQ(stored("k"), "v");
  EXPECT_EQ(executor_->size(), 0U);
}

TEST_F(WriteBehindStuck, AfterClosingNobodyWaitsForWhatIsNotWritten) {
  put(make("k"));
  EXPECT_EQ(store().close(now()).unsaved, 1U);
  auto asked = std::async(std::launch::async, [this] { return store_->flush(now() + 1h); });
  EXPECT_EQ(asked.wait_for(60s), std::future_status::ready);
  clock_->advance(2h);
  EXPECT_EQ(asked.get().unsaved, 1U);
}

TEST_F(WriteBehindStuck, ClosingEndsABatchBetweenTwoStatements) {
  const auto one = make("k");
  put(one);
  EXPECT_TRUE(store().erase("n", "k", one.as_of));
  write_behind_report report;
  before_ = [&](operation op, auto) {
    if (op == operation::put) report = store().close(now());
  };
  executor_->run_all();
  EXPECT_EQ(report.in_flight, 2U);
  EXPECT_EQ(stored("k"), "{}") << "what was on its way arrived";
  EXPECT_EQ(erases_, 0U) << "nothing is sent after closing returned";
  EXPECT_EQ(numbers().pending, 1U);
}

TEST_F(WriteBehindStuck, ADeadlineIsKeptThoughNobodyRunsTasksAndTheStoreHangs) {
  const auto door = std::make_shared<gate>();
  options_.executor = std::make_shared<refusing_executor>();
  before_ = [door](operation op, auto) {
    if (op == operation::put) door->wait();
  };
  put(make("k", 0ms, "v"));
  auto asked = std::async(std::launch::async, [this] { return store_->close(now() + 20s); });
  EXPECT_TRUE(eventually([&] { return door->waiting() == 1; }));
  clock_->advance(20s);
  const bool in_time = asked.wait_for(60s) == std::future_status::ready;
  EXPECT_TRUE(in_time);
  door->open();
  EXPECT_EQ(asked.get().in_flight, in_time ? 1U : 0U);
  store_.reset();
  EXPECT_TRUE(eventually([this] { return below_.use_count() == 1; }))
      << "it ended by itself, and let go of everything";
  EXPECT_EQ(stored("k"), "v");
}

TEST_F(WriteBehindStuck, AFailureIsTriedAgainThoughTheClockIsFarAheadOfTheExecutor) {
  clock_ =
      std::make_shared<virtual_clock>(virtual_clock::default_start(), virtual_clock::far_ahead);
  options_.clock = clock_;
  options_.executor = make_thread_pool({.threads = 1});
  options_.retry_first = options_.retry_longest = 20ms;
  std::atomic<int> tried{0};
  before_ = [&](operation op, auto) {
    if (op == operation::put && ++tried == 1) throw down();
  };
  put(make("k", 0ms, "v"));
  ASSERT_TRUE(eventually([&] { return tried == 1; }));
  std::this_thread::sleep_for(60ms);
  EXPECT_EQ(tried, 1)
      << "the executor's timer came, but by this store's clock the pause is not over";
  clock_->advance(20ms);
  EXPECT_TRUE(eventually([&] { return numbers().pending == 0; })) << "so the timer was set again";
  EXPECT_EQ(tried, 2);
}

TEST_F(WriteBehindStuck, WritesThoughTheClockBeginsBeforeZero) {
  clock_ = std::make_shared<virtual_clock>(virtual_clock::default_start(), -1h);
  executor_ = std::make_shared<manual_executor>(clock_);
  options_.clock = clock_;
  options_.executor = executor_;
  put(make("k", 0ms, "v"));
  executor_->run_all();
  EXPECT_EQ(stored("k"), "v") << "a pause that was never set is not one that lasts until zero";
}

TEST_F(WriteBehindStuck, AClockThatStandsStillHoldsNeitherFlushNorPutNorDestructor) {
  const auto door = std::make_shared<gate>();
  options_.executor = make_thread_pool({.threads = 1, .linger = 0ms});
  options_.max_entries = 2;
  options_.block_for = options_.linger = options_.scan_flush = 20ms;
  before_ = [door](operation op, auto) {
    if (op == operation::put) door->wait();
  };
  put(make("k"));
  ASSERT_TRUE(eventually([&] { return door->waiting() == 1; }));
  put(make("l"));
  auto asked = std::async(std::launch::async, [this] {
    EXPECT_EQ(store_->flush(now() + 20ms).in_flight, 1U);
    EXPECT_EQ(failure_of([&] { put(make("m")); }).code(), errc::timeout);
    EXPECT_EQ(failure_of([&] { (void)store_->count("n"); }).code(), errc::timeout);
    store_.reset();
  });
  const bool in_time = asked.wait_for(60s) == std::future_status::ready;
  EXPECT_TRUE(in_time) << "the same time has passed on the machine's clock";
  door->open();
  while (!in_time && asked.wait_for(10ms) != std::future_status::ready) clock_->advance(1s);
  asked.get();
  EXPECT_TRUE(eventually([this] { return below_.use_count() == 1; }));
}

TEST_F(WriteBehindStuck, AFailureThatPassesIsTriedAgainThoughNobodyRunsTasks) {
  options_.executor = std::make_shared<refusing_executor>();
  std::atomic<int> tried{0};
  before_ = [&](operation op, auto) {
    if (op == operation::put && ++tried < 3) throw down();
  };
  put(make("k", 0ms, "v"));
  auto asked = std::async(std::launch::async, [this] { return store_->close(now() + 1h); });
  const bool ended = eventually([&] {
    clock_->advance(1s);
    return asked.wait_for(1ms) == std::future_status::ready;
  });
  if (!ended) clock_->advance(2h);
  EXPECT_TRUE(asked.get().complete());
  EXPECT_EQ(tried, 3);
  EXPECT_EQ(stored("k"), "v");
}

TEST_F(WriteBehindStuck, TwoFlushesAreBothServedThoughNobodyRunsTasks) {
  options_.executor = std::make_shared<refusing_executor>();
  options_.batch_entries = 1;
  const auto door = std::make_shared<gate>();
  before_ = [door](operation op, auto) {
    if (op == operation::put) door->wait();
  };
  put(make("k", 0ms, "v"));
  auto first = std::async(std::launch::async, [this] { return store_->flush(now() + 1h); });
  ASSERT_TRUE(eventually([&] { return door->waiting() == 1; }));
  put(make("l", 0ms, "w"));
  auto second = std::async(std::launch::async, [this] { return store_->flush(now() + 1h); });
  EXPECT_EQ(second.wait_for(100ms), std::future_status::timeout) << "another thread was writing";
  door->open();
  const bool ended = second.wait_for(60s) == std::future_status::ready;
  EXPECT_TRUE(ended);
  if (!ended) clock_->advance(2h);
  EXPECT_TRUE(first.get().complete());
  EXPECT_TRUE(second.get().complete());
  EXPECT_EQ(stored("l"), "w");
}

TEST_F(WriteBehindStuck, NobodyWaitsUntilTheFirstMomentThereIs) {
  before_ = [](operation op, auto) {
    if (op == operation::put) throw down();
  };
  put(make("k"));
  auto asked = std::async(std::launch::async, [this] {
    return store_->close(std::chrono::steady_clock::time_point::min());
  });
  const bool ended = asked.wait_for(60s) == std::future_status::ready;
  EXPECT_TRUE(ended);
  if (!ended) std::quick_exit(1);  // otherwise the test would hang
  EXPECT_EQ(asked.get().unsaved, 1U);
}

TEST_F(WriteBehindStuck, TheLongestTimeThatThereIsIsLong) {
  constexpr auto forever = std::chrono::milliseconds::max();
  options_.max_entries = 1;
  options_.block_for = options_.scan_flush = options_.stalled_after = options_.retry_longest =
      options_.refresh_after = forever;
  put(make("k"));
  EXPECT_FALSE(numbers().stalled);
  auto blocked = std::async(std::launch::async, [this] { put(make("other")); });
  while (blocked.wait_for(1ms) != std::future_status::ready) executor_->run_all();
  EXPECT_NO_THROW(blocked.get());
  before_ = [](operation op, auto) {
    if (op == operation::put) throw down();
  };
  executor_->run_all();
  EXPECT_FALSE(numbers().stalled);
  before_ = {};
}

TEST_F(WriteBehindStuck, AQueueWithoutABoundIsWritten) {
  options_.max_entries = options_.batch_entries = std::size_t{1} << 62U;
  put(make("k", 0ms, "v"));
  EXPECT_NO_THROW(executor_->run_all(1000));
  EXPECT_EQ(stored("k"), "v");
}

TEST_F(WriteBehindStuck, WhatIsHeldIsWrittenThoughItsTimerMetAWriterAtWork) {
  options_.refresh_after = 10s;
  put(make("a", 0ms, "same"));
  executor_->run_all();
  executor_->advance(2s);
  put(make("b", 0ms, "same"));
  executor_->run_all();
  executor_->advance(1s);
  const auto again = make("b", 0ms, "same");
  put(make("a", 0ms, "same"));
  put(again);
  executor_->run_all();
  ASSERT_EQ(numbers().held, 2U);
  executor_->advance(6'999ms);
  put(make("a", 0ms, "another"));
  before_ = [this](operation op, auto) {
    // The timer for a, which is held no more, finds the writer at work
    if (op == operation::put) executor_->advance(500ms);
  };
  executor_->run_all();
  before_ = {};
  EXPECT_EQ(numbers().held, 1U);
  executor_->advance(3s);
  EXPECT_EQ(numbers().held, 0U);
  EXPECT_EQ(model_->find("n", "b").value().as_of, again.as_of);
}

}  // namespace
}  // namespace holdfast::test
