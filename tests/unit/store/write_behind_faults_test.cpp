// A full queue, a store that fails, poison, shutdown: nothing is lost in silence.

#include "support/eventually.hpp"
#include "support/failure_of.hpp"
#include "unit/store/write_behind_fixture.hpp"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace holdfast::test {
namespace {

using operation = faulty_store::operation;

class WriteBehindFaults : public WriteBehindFixture {
 protected:
  static error down() { return {errc::unavailable, "the database is down", {.transient = true}}; }
};

TEST_F(WriteBehindFaults, TriesAgainWithPausesThatGrow) {
  before_ = [](operation op, auto) {
    if (op == operation::put) throw down();
  };
  put(make("k", 0ms, "v"));
  executor_->run_all();
  EXPECT_EQ(sizes_.size(), 1U);
  EXPECT_EQ(numbers().pending, 1U);
  EXPECT_EQ(payload("k"), "v") << "what failed is still seen";
  executor_->advance(4ms);
  EXPECT_EQ(sizes_.size(), 1U) << "at least half of the first pause";
  executor_->advance(6ms);
  EXPECT_EQ(sizes_.size(), 2U);
  executor_->advance(60s);
  EXPECT_LE(sizes_.size(), 2U + 8 + 60);
  EXPECT_GE(sizes_.size(), 2U + 30) << "every two seconds at the latest";
  EXPECT_TRUE(numbers().stalled);
  EXPECT_NE(store().health().problem.find("1 operations"), std::string::npos)
      << store().health().problem;
  put(make("other"));
  before_ = {};
  executor_->advance(2s);
  EXPECT_EQ(stored("k"), "v");
  EXPECT_EQ(numbers().written, 2U);
  EXPECT_EQ(numbers().retried, numbers().batches - 2);
  EXPECT_FALSE(numbers().stalled);
  EXPECT_EQ(store().health().problem, "");
}

TEST_F(WriteBehindFaults, RepeatsWhatIsInDoubt) {
  int doubts = 2;
  below_->after = [&](operation op, auto) {
    if ((op == operation::put || op == operation::erase) && doubts-- > 0) {
      throw error(errc::unavailable, "cut off", {.transient = false, .in_doubt = true});
    }
  };
  const auto one = make("k", 0ms, "v");
  put(one);
  executor_->advance(1s);
  EXPECT_EQ(stored("k"), "v");
  EXPECT_EQ(numbers().written, 1U);
  EXPECT_EQ(numbers().retried, 2U);
  doubts = 1;
  EXPECT_TRUE(store().erase("n", "k", one.as_of));
  executor_->advance(1s);
  EXPECT_EQ(stored("k"), "(none)");
  EXPECT_EQ(numbers().pending, 0U);
}

TEST_F(WriteBehindFaults, FindsPoisonByHalvesAndTellsOfIt) {
  std::vector<std::string> failures;
  options_.on_failed = [&](const entry& e, const error& reason) {
    failures.push_back(e.key + ": " + std::string(to_string(reason.code())));
    throw std::runtime_error("a listener that throws");
  };
  std::vector<std::string> said;
  options_.log = [&](const log_record& record) { said.emplace_back(record.message); };
  before_ = [](operation op, std::span<const entry> entries) {
    if (op != operation::put) return;
    for (const entry& each : entries) {
      if (each.payload == "poison") throw error(errc::too_large, "the row is too long");
    }
  };
  for (int i = 0; i < 256; ++i) put(make("k" + std::to_string(i), 0ms, i == 77 ? "poison" : "v"));
  executor_->run_all();
  EXPECT_EQ(failures, (std::vector<std::string>{"k77: too_large"}));
  EXPECT_EQ(said.size(), 1U);
  EXPECT_LE(sizes_.size(), 1U + 2 * 8);
  EXPECT_EQ(model_->count("n"), 255U);
  EXPECT_EQ(payload("k77"), "(none)") << "what will never be stored is not served";
  EXPECT_EQ(numbers().failed, 1U);
  EXPECT_EQ(numbers().written, 255U);
  const auto report = store().flush(now());
  EXPECT_EQ(report.failed, 1U);
  EXPECT_FALSE(report.complete()) << "one of those before it is not durable, and never will be";
  EXPECT_TRUE(store().flush(now()).complete()) << "told once";
}

TEST_F(WriteBehindFaults, AFailureAmongTheHalvesKeepsWhatIsDone) {
  int puts = 0;
  before_ = [&](operation op, std::span<const entry> entries) {
    if (op != operation::put) return;
    if (++puts == 3) throw down();
    for (const entry& each : entries) {
      if (each.key == "k7") throw error(errc::invalid_argument, "refused");
    }
  };
  for (int i = 0; i < 8; ++i) put(make("k" + std::to_string(i)));
  executor_->run_all();
  EXPECT_EQ(sizes_, (std::vector<std::size_t>{8, 4, 4}));
  EXPECT_EQ(numbers().written, 4U);
  EXPECT_EQ(numbers().pending, 4U);
  executor_->advance(1s);
  EXPECT_EQ(numbers().written, 7U);
  EXPECT_EQ(numbers().failed, 1U);
  EXPECT_EQ(model_->count("n"), 7U);
}

TEST_F(WriteBehindFaults, AMissingTableIsNoPoison) {
  before_ = [](operation op, auto) {
    if (op == operation::put) throw error(errc::missing_object, "no table; create it");
  };
  for (int i = 0; i < 10; ++i) put(make("k" + std::to_string(i)));
  executor_->advance(10s);
  EXPECT_EQ(numbers().failed, 0U);
  EXPECT_EQ(numbers().pending, 10U);
  before_ = {};
  executor_->advance(10s);
  EXPECT_EQ(model_->count("n"), 10U);
}

TEST_F(WriteBehindFaults, SurvivesAStoreThatThrowsAnything) {
  int puts = 0;
  before_ = [&](operation op, auto) {
    if (op != operation::put) return;
    ++puts;
    if (puts == 1) throw std::bad_alloc();
    if (puts == 2) throw 7;
  };
  put(make("k", 0ms, "v"));
  executor_->advance(1s);
  EXPECT_EQ(stored("k"), "v");
}

TEST_F(WriteBehindFaults, ServesWhatWaitsWhileTheStoreCannotBeRead) {
  model_->put(make("stored"));
  const auto one = make("k", 0ms, "v");
  put(one);
  before_ = [](auto, auto) { throw down(); };
  EXPECT_EQ(payload("k"), "v");
  EXPECT_EQ(failure_of([&] { (void)payload("stored"); }).code(), errc::unavailable);
  EXPECT_EQ(failure_of([&] { (void)store().erase("n", "stored", clock_->now()); }).code(),
            errc::unavailable);
  EXPECT_TRUE(store().erase("n", "k", one.as_of));
  EXPECT_EQ(failure_of([&] { (void)payload("k"); }).code(), errc::unavailable)
      << "there may be a newer one in the store";
}

TEST_F(WriteBehindFaults, DoesNotServeWhatWaitsWhenANewerVersionWasRead) {
  put(make("waited before the read", 2ms, "ours"));
  model_->put(make("waited before the read", 1ms, "theirs"));
  EXPECT_EQ(payload("waited before the read"), "theirs");
  model_->put(make("waits since the read", 1ms, "theirs"));
  EXPECT_EQ(payload("waits since the read"), "theirs");
  put(make("waits since the read", 2ms, "ours"));
  before_ = [](auto, auto) { throw down(); };
  EXPECT_EQ(failure_of([&] { (void)payload("waited before the read"); }).code(), errc::unavailable);
  EXPECT_EQ(failure_of([&] { (void)payload("waits since the read"); }).code(), errc::unavailable);
  put(make("waits since the read", 0ms, "ours again"));
  EXPECT_EQ(payload("waits since the read"), "ours again") << "nothing newer is known";
}

TEST_F(WriteBehindFaults, AStampFromTheFutureThatWasReadDoesNotHideWhatWaits) {
  auto future = make("k", -1h, "theirs");
  future.expire_on = future.as_of + 1h;
  model_->put(future);
  EXPECT_EQ(payload("k"), "theirs");
  put(make("k", 0ms, "ours"));
  before_ = [](auto, auto) { throw down(); };
  EXPECT_EQ(payload("k"), "ours");
}

TEST_F(WriteBehindFaults, DropsTheOldestAndCountsIt) {
  options_.max_entries = 4;
  options_.full = when_full::drop_oldest;
  for (int i = 0; i < 10; ++i) put(make("k" + std::to_string(i)));
  EXPECT_EQ(numbers().dropped, 6U);
  EXPECT_EQ(numbers().pending, 4U);
  put(make("k9", 0ms, "takes the place of its elder"));
  EXPECT_EQ(numbers().dropped, 6U);
  executor_->run_all();
  EXPECT_EQ(model_->count("n"), 4U);
  EXPECT_EQ(stored("k5"), "(none)");
  EXPECT_EQ(stored("k6"), "{}");
  const auto report = store().flush(now());
  EXPECT_EQ(report.dropped, 6U);
  EXPECT_FALSE(report.complete());
}

TEST_F(WriteBehindFaults, WhatIsOlderThanWhatWasDroppedIsNotServed) {
  options_.max_entries = 2;
  options_.full = when_full::drop_oldest;
  put(make("k", 4ms, "newer"));
  EXPECT_EQ(payload("k"), "newer");
  put(make("other"));
  put(make("another"));
  EXPECT_EQ(numbers().dropped, 1U);
  put(make("k", 5ms, "older"));
  before_ = [](auto, auto) { throw down(); };
  EXPECT_EQ(failure_of([&] { (void)payload("k"); }).code(), errc::unavailable)
      << "a caller has seen the newer one";
}

TEST_F(WriteBehindFaults, AKeyThatLostItsRecordIsNotServedWhatIsOlder) {
  options_.remembered = 1;
  put(make("k", 3ms, "newer"));
  executor_->run_all();
  put(make("other", 20ms));
  executor_->run_all();
  put(make("k", 10ms, "oldest"));
  executor_->run_all();
  put(make("k", 5ms, "older"));
  before_ = [](auto, auto) { throw down(); };
  EXPECT_EQ(failure_of([&] { (void)payload("k"); }).code(), errc::unavailable)
      << "this process wrote the newer one";
}

TEST_F(WriteBehindFaults, DropsWhatIsAddedWhenAllElseIsInFlight) {
  options_.max_entries = 1;
  options_.full = when_full::drop_oldest;
  put(make("k"));
  before_ = [this](operation op, auto) {
    if (op == operation::put) put(make("other"));
  };
  executor_->run_all();
  EXPECT_EQ(numbers().dropped, 1U);
  EXPECT_EQ(stored("k"), "{}");
  EXPECT_EQ(stored("other"), "(none)");
}

TEST_F(WriteBehindFaults, BoundsBytes) {
  options_.max_bytes = 10'000;
  options_.full = when_full::drop_oldest;
  for (int i = 0; i < 10; ++i) put(make("k" + std::to_string(i), 0ms, std::string(3'000, 'x')));
  EXPECT_LE(numbers().pending_bytes, 10'000U);
  EXPECT_EQ(numbers().pending, 3U);
  EXPECT_EQ(failure_of([&] { put(make("large", 0ms, std::string(10'000, 'x'))); }).code(),
            errc::too_large);
}

TEST_F(WriteBehindFaults, WritesThroughWhenFull) {
  options_.max_entries = 2;
  options_.full = when_full::write_through;
  put(make("a"));
  put(make("b"));
  put(make("c", 0ms, "written by its caller"));
  EXPECT_EQ(stored("c"), "written by its caller");
  EXPECT_EQ(numbers().written_through, 1U);
  put(make("a", 0ms, "merged: needs no room"));
  EXPECT_EQ(stored("a"), "(none)");
  before_ = [](auto, auto) { throw down(); };
  EXPECT_EQ(failure_of([&] { put(make("d")); }).code(), errc::unavailable)
      << "the caller learns what the store says";
  before_ = {};
  executor_->advance(1s);
  EXPECT_EQ(stored("a"), "merged: needs no room");
}

TEST_F(WriteBehindFaults, AFlushTriesAtOnceAndTellsWhatIsLeft) {
  before_ = [](operation op, auto) {
    if (op == operation::put) throw down();
  };
  for (int i = 0; i < 3; ++i) put(make("k" + std::to_string(i)));
  executor_->advance(5s);
  put(make("later"));
  auto report = store().flush(now());
  EXPECT_EQ(report.in_flight, 3U);
  EXPECT_EQ(report.unsaved, 1U);
  EXPECT_FALSE(report.complete());
  before_ = {};
  (void)store().flush(now());
  executor_->run_all();
  EXPECT_EQ(numbers().pending, 0U) << "without waiting for the end of a pause";
  EXPECT_TRUE(store().flush(now()).complete());
}

TEST_F(WriteBehindFaults, ClosesAndStays) {
  put(make("k", 0ms, "v"));
  const auto report = store().close(now());
  EXPECT_EQ(report.unsaved, 1U);
  EXPECT_EQ(failure_of([&] { put(make("other")); }).code(), errc::unavailable);
  EXPECT_EQ(failure_of([&] { (void)store().erase("n", "k", clock_->now()); }).code(),
            errc::unavailable);
  EXPECT_EQ(payload("k"), "v");
  executor_->advance(1min);
  EXPECT_EQ(stored("k"), "(none)") << "what was reported as unsaved is not written later";
  EXPECT_EQ(store().close(now()).unsaved, 1U);
}

TEST_F(WriteBehindFaults, ADestructorTellsWhatItLeft) {
  std::vector<std::string> said;
  options_.log = [&](const log_record& record) {
    said.emplace_back(std::string(record.message) + " " + std::string(record.fields[0].value));
  };
  put(make("k"));
  put(make("l"));
  store_.reset();
  ASSERT_EQ(said.size(), 1U);
  EXPECT_TRUE(said[0].ends_with(" 2")) << said[0];
  executor_->run_all();
  EXPECT_EQ(model_->count("n"), 0U);
}

TEST_F(WriteBehindFaults, NoticesThatATaskWasLost) {
  put(make("k"));
  executor_->clear();
  put(make("other"));
  executor_->run_all();
  EXPECT_EQ(model_->count("n"), 2U);
}

TEST_F(WriteBehindFaults, AFlushWritesByItselfWhenNobodyRunsTasks) {
  options_.executor = std::make_shared<refusing_executor>();
  for (int i = 0; i < 1200; ++i) put(make("k" + std::to_string(i)));
  const auto report = store().flush(now() + 20s);
  EXPECT_TRUE(report.complete());
  EXPECT_EQ(report.written, 1200U);
  EXPECT_EQ(model_->count("n"), 1200U);
}

TEST_F(WriteBehindFaults, RefusesLimitsWithoutRoom) {
  const auto refused = [this](auto change) {
    auto options = options_;
    change(options);
    return failure_of([&] { (void)make_write_behind(below_, options); }).code() ==
           errc::invalid_argument;
  };
  EXPECT_TRUE(refused([](auto& o) { o.max_entries = 0; }));
  EXPECT_TRUE(refused([](auto& o) { o.max_bytes = 0; }));
  EXPECT_TRUE(refused([](auto& o) { o.batch_entries = 0; }));
  EXPECT_TRUE(refused([](auto& o) { o.retry_first = 0ms; }));
  EXPECT_TRUE(refused([](auto& o) { o.retry_longest = 1ms; }));
  EXPECT_TRUE(refused([](auto& o) { o.refresh_after = -1ms; }));
  EXPECT_TRUE(refused([](auto& o) { o.max_skew = -1us; }));
  EXPECT_EQ(failure_of([] { (void)make_write_behind(nullptr); }).code(), errc::invalid_argument);
}

TEST_F(WriteBehindFaults, CountsForOthers) {
  const auto registry = make_prometheus_registry();
  options_.metrics = registry;
  put(make("k"));
  put(make("k"));
  executor_->run_all();
  put(make("l"));
  (void)store().flush(now());
  const auto text = registry->text();
  EXPECT_NE(text.find("holdfast_write_behind_operations_total{result=\"queued\"} 3"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("holdfast_write_behind_operations_total{result=\"coalesced\"} 1"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("holdfast_write_behind_operations_total{result=\"written\"} 1"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("holdfast_write_behind_pending 1"), std::string::npos) << text;
}

/// A store below that stops until it is let go.
class exit_gate {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
  }
  void wait_for_arrival() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return waiting_ > 0; });
  }
  void open() {
    const std::scoped_lock lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int waiting_ = 0;
  bool open_ = false;
};

/// With the machine's clock and a thread.
class WriteBehindThreads : public WriteBehindFixture {
 protected:
  WriteBehindThreads() {
    options_.clock = system_clock();
    options_.executor = nullptr;
    options_.scan_flush = 30s;
    model_ = std::make_shared<model_store>();
    below_ = std::make_shared<faulty_store>(model_);
  }
  [[nodiscard]] static entry current(std::string key, std::string payload = "{}") {
    const auto now = system_clock()->now();
    return {.name = "n",
            .key = std::move(key),
            .as_of = now,
            .expire_on = now + 1h,
            .payload = std::move(payload),
            .payload_class = "c"};
  }
  static std::chrono::steady_clock::time_point deadline_in(std::chrono::milliseconds time) {
    return std::chrono::steady_clock::now() + time;
  }
};

TEST_F(WriteBehindThreads, BlocksUntilThereIsRoomOrTheDeadline) {
  exit_gate door;
  below_->before = [&](operation op, auto) {
    if (op == operation::put) door.pass();
  };
  options_.max_entries = 2;
  options_.batch_entries = 1;
  options_.block_for = 50ms;
  put(current("a"));
  door.wait_for_arrival();
  put(current("b"));
  const auto start = std::chrono::steady_clock::now();
  const auto refused = failure_of([&] { put(current("c")); });
  EXPECT_GE(std::chrono::steady_clock::now() - start, 50ms);
  EXPECT_EQ(refused.code(), errc::timeout);
  EXPECT_TRUE(refused.transient());
  EXPECT_EQ(numbers().refused, 1U);
  EXPECT_EQ(numbers().queued, 2U);
  std::jthread later([&] {
    std::this_thread::sleep_for(10ms);
    door.open();
  });
  EXPECT_TRUE(eventually([&] {
    try {
      put(current("d"));
      return true;
    } catch (const error&) {
      return false;
    }
  }));
  EXPECT_EQ(store().count("n"), 3U);
}

TEST_F(WriteBehindThreads, AHungStoreHangsNeitherFlushNorDestructor) {
  auto door = std::make_shared<exit_gate>();
  below_->before = [door](operation op, auto) {
    if (op == operation::put) door->pass();
  };
  options_.linger = 20ms;
  put(current("k"));
  door->wait_for_arrival();
  put(current("l"));
  const auto report = store().flush(deadline_in(20ms));
  EXPECT_EQ(report.in_flight, 1U);
  EXPECT_EQ(report.unsaved, 1U);
  store_.reset();
  door->open();
  EXPECT_TRUE(eventually([&] { return model_->count("n") == 1; }))
      << "what was in flight ended by itself";
  EXPECT_TRUE(eventually([&] { return below_.use_count() == 1; }))
      << "and the thread let go of everything";
}

TEST_F(WriteBehindThreads, ManyThreadsLeaveTheNewestAndTheNumbersAddUp) {
  constexpr int writers = 4;
  constexpr int rounds = 2'000;
  constexpr int keys = 50;
  options_.max_entries = 64;
  options_.batch_entries = 16;
  options_.block_for = 30s;
  options_.refresh_after = 1ms;
  const auto start = system_clock()->now();
  std::atomic<int> back{0};
  (void)store();
  {
    std::vector<std::jthread> threads;
    for (int w = 0; w < writers; ++w) {
      threads.emplace_back([&, w] {
        for (int round = 0; round < rounds; ++round) {
          auto one = current("k" + std::to_string(round % keys), std::to_string(round / 100));
          one.as_of = start + 1us * (round * writers + w);
          store_->put({&one, 1});
        }
      });
    }
    threads.emplace_back([&](std::stop_token stop) {
      timestamp seen{};
      while (!stop.stop_requested()) {
        const auto result = store_->find("n", "k0");
        if (result && result->as_of < seen) ++back;
        if (result) seen = result->as_of;
        (void)store_->numbers();
      }
    });
    for (int w = 0; w < writers; ++w) threads[static_cast<std::size_t>(w)].join();
  }
  EXPECT_EQ(back, 0) << "a reader never goes back in time";
  EXPECT_TRUE(store().flush(deadline_in(30s)).complete());
  EXPECT_EQ(numbers().queued, static_cast<std::uint64_t>(writers * rounds));
  EXPECT_EQ(numbers().pending, 0U);
  for (int k = 0; k < keys; ++k) {
    const auto newest = start + 1us * ((rounds - keys + k) * writers + writers - 1);
    EXPECT_EQ(model_->find("n", "k" + std::to_string(k))->as_of, newest) << k;
  }
}

}  // namespace
}  // namespace holdfast::test
