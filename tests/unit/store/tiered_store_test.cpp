#include <holdfast/store/tiered.hpp>
#include <holdfast/store/write_behind.hpp>

#include "support/eventually.hpp"
#include "support/faulty_store.hpp"
#include "support/manual_executor.hpp"
#include "support/model_store.hpp"
#include "support/virtual_clock.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using operation = faulty_store::operation;

/// Runs each task at once, on the thread that posts it.
class inline_executor final : public executor {
 public:
  bool post(task t) override {
    t();
    return true;
  }
  bool post_after(std::chrono::steady_clock::duration, task) override { return false; }
};

class full_executor final : public executor {
 public:
  bool post(task) override { return false; }
  bool post_after(std::chrono::steady_clock::duration, task) override { return false; }
};

class TieredStore : public ::testing::Test {
 protected:
  [[nodiscard]] std::shared_ptr<tiered_store> make(tiered_options options = {}) const {
    options.clock = clock_;
    return make_tiered_store(durable_, std::move(options));
  }
  [[nodiscard]] entry make_entry(std::string key, std::string payload,
                                 std::chrono::microseconds ago = {}) const {
    return {.name = "n",
            .key = std::move(key),
            .as_of = clock_->now() - ago,
            .expire_on = clock_->now() + 1h,
            .payload = std::move(payload),
            .payload_class = "test.payload"};
  }
  static std::string payload(store& source, std::string_view key) {
    const auto result = source.find("n", key);
    return !result ? "(none)" : result->payload.value_or("(tombstone)");
  }
  /// The same where reads have a deadline, which a busy machine may miss now and then.
  static std::string payload_in_time(store& source, std::string_view key) {
    std::string result;
    EXPECT_TRUE(eventually([&] {
      try {
        result = payload(source, key);
        return true;
      } catch (const error& late) {
        return late.code() != errc::timeout;
      }
    }));
    return result;
  }
  /// How often the durable store was asked for an entry.
  [[nodiscard]] auto counting_finds() {
    auto finds = std::make_shared<std::atomic<int>>(0);
    durable_->before = [finds](operation op, auto) { *finds += op == operation::find ? 1 : 0; };
    return finds;
  }
  /// A hook that does something the first time that operation comes by.
  static faulty_store::hook once(operation target, std::function<void()> action) {
    return [target, action = std::move(action), done = std::make_shared<bool>(false)](operation op,
                                                                                      auto) {
      if (op == target && !std::exchange(*done, true)) action();
    };
  }
  void fail(operation target, errc code = errc::unavailable, bool afterwards = false) {
    auto hook = [target, code](operation op, auto) {
      if (op == target)
        throw error(
            code, "planted",
            {.transient = code == errc::unavailable, .in_doubt = code == errc::unavailable});
    };
    (afterwards ? durable_->after : durable_->before) = hook;
  }
  static errc failure(auto&& action) {
    try {
      action();
    } catch (const error& e) {
      return e.code();
    }
    return errc::internal;
  }

  std::shared_ptr<virtual_clock> clock_ = std::make_shared<virtual_clock>();
  std::shared_ptr<model_store> model_ =
      std::make_shared<model_store>(model_store_options{.clock = clock_});
  std::shared_ptr<faulty_store> durable_ = std::make_shared<faulty_store>(model_);
};

TEST_F(TieredStore, AnswersFromTheFrontWhileItIsFresh) {
  const auto store = make({.freshness = 10s});
  const auto finds = counting_finds();
  store->put(make_entry("written", "1"));
  model_->put(make_entry("there before", "2"));
  EXPECT_EQ(payload(*store, "written"), "1");
  EXPECT_EQ(*finds, 0) << "what was just written is not asked for";
  EXPECT_EQ(payload(*store, "there before"), "2");
  EXPECT_EQ(payload(*store, "there before"), "2");
  EXPECT_EQ(*finds, 1) << "once read, it is in front";
  clock_->advance(10s);
  EXPECT_EQ(payload(*store, "written"), "1");
  EXPECT_EQ(*finds, 1);
  clock_->advance(1us);
  EXPECT_EQ(payload(*store, "written"), "1");
  EXPECT_EQ(payload(*store, "there before"), "2");
  EXPECT_EQ(*finds, 3) << "beyond freshness both are asked for again";
  const auto numbers = store->stats();
  EXPECT_EQ(numbers.fresh, 3U);
  EXPECT_EQ(numbers.asked, 3U);
  EXPECT_EQ(numbers.backfilled, 3U);
  EXPECT_EQ(numbers.front.entries, 2U);
}

TEST_F(TieredStore, SeesWhatOthersDoWithinFreshness) {
  const auto store = make({.freshness = 10s});
  store->put(make_entry("k", "ours"));
  clock_->advance(1s);
  model_->put(make_entry("k", "theirs"));
  EXPECT_EQ(payload(*store, "k"), "ours");
  clock_->advance(10s);
  EXPECT_EQ(payload(*store, "k"), "theirs");
  ASSERT_TRUE(model_->erase("n", "k", clock_->now() - 10s));
  clock_->advance(10s + 1us);
  EXPECT_EQ(payload(*store, "k"), "(none)");
  EXPECT_EQ(store->stats().front.entries, 0U) << "what is gone leaves the front";
}

TEST_F(TieredStore, SeesWhatOthersWroteWithinFreshnessOfTheWriteNotOfTheCallThatWasAnswered) {
  const auto store = make({.freshness = 10s});
  model_->put(make_entry("k", "ours", 1s));
  EXPECT_EQ(payload(*store, "k"), "ours");
  clock_->advance(5s);
  // A call that started before our read and took long: when we read, its answer was not there to be
  // seen.
  model_->put(make_entry("k", "theirs", 5500ms));
  clock_->advance(5s);
  EXPECT_EQ(payload(*store, "k"), "ours") << "10 s after the read";
  clock_->advance(1us);
  EXPECT_EQ(payload(*store, "k"), "theirs");
}

TEST_F(TieredStore, AnOldAnswerWrittenLateIsNotTakenForFresh) {
  const auto store = make({.freshness = 10s});
  model_->put(make_entry("k", "theirs", 5s));
  store->put(make_entry("k", "a call that took long", 11s));
  EXPECT_EQ(payload(*store, "k"), "theirs");
}

TEST_F(TieredStore, AnOlderPutDoesNotShowWhenTheNewerHasLeftTheFront) {
  const auto store = make({.max_entries = 1});
  store->put(make_entry("k", "newer", 1s));
  store->put(make_entry("other", "drives it out"));
  store->put(make_entry("k", "older", 2s));
  EXPECT_EQ(payload(*store, "k"), "newer");
}

TEST_F(TieredStore, ABackfillNeverBringsBackWhatWasErased) {
  const auto store = make();
  const auto e = make_entry("k", "old");
  model_->put(e);
  // The read has its answer; before it comes back, another caller erases.
  durable_->after = once(operation::find, [&] { EXPECT_TRUE(store->erase("n", "k", e.as_of)); });
  EXPECT_EQ(payload(*store, "k"), "old")
      << "the read began before the erase: both answers are right";
  EXPECT_EQ(payload(*store, "k"), "(none)");
  EXPECT_EQ(store->stats().not_backfilled, 1U);
}

TEST_F(TieredStore, AnEarlierReadDoesNotReplaceWhatALaterOneSaw) {
  const auto store = make();
  model_->put(make_entry("k", "first", 1s));
  durable_->after = once(operation::find, [&] {
    model_->put(make_entry("k", "second"));
    EXPECT_EQ(payload(*store, "k"), "second");
  });
  EXPECT_EQ(payload(*store, "k"), "first");
  EXPECT_EQ(payload(*store, "k"), "second");
}

TEST_F(TieredStore, AnOlderPutDoesNotShowWhenTheNewerWasReadAndHasLeftTheFront) {
  const auto store = make({.max_entries = 1});
  model_->put(make_entry("k", "theirs", 1s));
  EXPECT_EQ(payload(*store, "k"), "theirs");
  store->put(make_entry("other", "drives it out"));
  store->put(make_entry("k", "older", 2s));
  EXPECT_EQ(payload(*store, "k"), "theirs");
}

TEST_F(TieredStore, AStampFromTheFutureDoesNotStayInFront) {
  const auto store = make();
  auto future = make_entry("k", "future", -10min);
  future.expire_on = clock_->now() + 2h;
  model_->put(future);
  EXPECT_EQ(payload(*store, "k"), "future");
  store->put(make_entry("k", "now"));
  EXPECT_EQ(payload(*model_, "k"), "now") << "the durable store did not believe the stamp";
  fail(operation::find);
  EXPECT_EQ(failure([&] { (void)store->find("n", "k"); }), errc::unavailable)
      << "not even now may the older one be served";
  durable_->before = nullptr;
  EXPECT_EQ(payload(*store, "k"), "now");
}

TEST_F(TieredStore, ABackfillNeverHidesWhatWasPutMeanwhile) {
  const auto store = make();
  model_->put(make_entry("k", "old", 1s));
  durable_->after = once(operation::find, [&] { store->put(make_entry("k", "new")); });
  EXPECT_EQ(payload(*store, "k"), "old");
  EXPECT_EQ(payload(*store, "k"), "new");
}

TEST_F(TieredStore, WhoSawWhatAnotherProcessWroteDoesNotSeeTheOlderVersionAfterThat) {
  const auto store = make();
  model_->put(make_entry("k", "old", 1s));
  durable_->before = once(operation::find, [&] {
    EXPECT_EQ(payload(*store, "k"), "old") << "a read that began later and ends earlier";
    model_->put(make_entry("k", "new"));
  });
  EXPECT_EQ(payload(*store, "k"), "new");
  EXPECT_EQ(payload(*store, "k"), "new");
  EXPECT_EQ(payload(*store, "k"), "new");
}

TEST_F(TieredStore, AnOutageDoesNotBringBackTheVersionBeforeTheOneThatWasSeen) {
  const auto store = make();
  model_->put(make_entry("k", "old", 1s));
  durable_->before = once(operation::find, [&] {
    EXPECT_EQ(payload(*store, "k"), "old") << "a read that began later and ends earlier";
    model_->put(make_entry("k", "new"));
  });
  EXPECT_EQ(payload(*store, "k"), "new");
  fail(operation::find);
  EXPECT_EQ(failure([&] { (void)store->find("n", "k"); }), errc::unavailable);
}

TEST_F(TieredStore, OnWriteBehindAnOutageServesWhatWasSeenNotWhatIsStillQueued) {
  const auto behind = make_write_behind(
      durable_,
      {.linger = 0ms, .executor = std::make_shared<manual_executor>(clock_), .clock = clock_});
  const auto store = make_tiered_store(behind, {.freshness = 1s, .clock = clock_});
  store->put(make_entry("k", "queued", 1s));
  model_->put(make_entry("k", "of another process"));
  clock_->advance(2s);
  EXPECT_EQ(payload(*store, "k"), "of another process");
  clock_->advance(2s);
  fail(operation::find);
  EXPECT_EQ(payload(*store, "k"), "of another process");
  durable_->before = nullptr;
  EXPECT_EQ(payload(*store, "k"), "of another process");
}

TEST_F(TieredStore, TheLongestDeadlineThatThereIsIsLong) {
  const auto pool = make_thread_pool();
  const auto store = make({.read_deadline = std::chrono::milliseconds::max(), .executor = pool});
  model_->put(make_entry("k", "value"));
  EXPECT_EQ(payload(*store, "k"), "value");
}

TEST_F(TieredStore, AReadWithinAPutDoesNotBringTheOldVersionBack) {
  const auto store = make();
  store->put(make_entry("k", "old", 1s));
  durable_->before = once(operation::put, [&] { EXPECT_EQ(payload(*store, "k"), "old"); });
  store->put(make_entry("k", "new"));
  EXPECT_EQ(payload(*store, "k"), "new");
}

TEST_F(TieredStore, TheFrontIsNotNewerThanWhatWasAcknowledged) {
  const auto store = make();
  store->put(make_entry("k", "old", 1s));
  fail(operation::put);
  EXPECT_EQ(failure([&] { store->put(make_entry("k", "new")); }), errc::unavailable);
  EXPECT_EQ(payload(*store, "k"), "old") << "it failed";
  durable_->before = nullptr;
  fail(operation::put, errc::unavailable, true);
  EXPECT_EQ(failure([&] { store->put(make_entry("k", "newest")); }), errc::unavailable);
  EXPECT_EQ(payload(*store, "k"), "newest")
      << "it failed and happened: the front asks again and learns it";
}

TEST_F(TieredStore, AFailedEraseIsAskedForAgain) {
  const auto store = make();
  const auto e = make_entry("k", "value");
  store->put(e);
  fail(operation::erase, errc::unavailable, true);
  EXPECT_EQ(failure([&] { (void)store->erase("n", "k", e.as_of); }), errc::unavailable);
  EXPECT_EQ(payload(*store, "k"), "(none)");
}

TEST_F(TieredStore, WhatTheDurableStoreRefusesIsNotInFront) {
  const auto store = make();
  EXPECT_EQ(failure([&] { store->put(make_entry("", "no key")); }), errc::invalid_argument);
  auto expired = make_entry("k", "late", 1h);
  expired.expire_on = clock_->now() - 1us;
  store->put(expired);
  EXPECT_EQ(payload(*store, "k"), "(none)");
  EXPECT_EQ(store->stats().front.entries, 0U);
}

TEST_F(TieredStore, ServesTheFrontWhenTheDurableStoreFails) {
  const auto store = make({.freshness = 1s});
  store->put(make_entry("k", "value"));
  clock_->advance(1h);
  fail(operation::find);
  EXPECT_EQ(payload(*store, "k"), "value");
  EXPECT_EQ(store->stats().stale, 1U);
  EXPECT_EQ(failure([&] { (void)store->find("n", "nobody"); }), errc::unavailable)
      << "there is nothing to serve";
  fail(operation::find, errc::permission);
  EXPECT_EQ(failure([&] { (void)store->find("n", "k"); }), errc::permission)
      << "this failure is not transient";
  const auto strict = make({.freshness = 1s, .serve_stale = false});
  strict->put(make_entry("k", "value"));
  clock_->advance(2s);
  fail(operation::find);
  EXPECT_EQ(failure([&] { (void)strict->find("n", "k"); }), errc::unavailable);
}

TEST_F(TieredStore, ALateReadServesTheFrontOrSaysTimeout) {
  const auto executor = std::make_shared<manual_executor>();
  const auto store = make({.freshness = 1s, .read_deadline = 1ms, .executor = executor});
  store->put(make_entry("k", "old"));
  model_->put(make_entry("other", "there"));
  clock_->advance(2s);
  EXPECT_EQ(payload(*store, "k"), "old") << "no answer: the entry in front is served";
  EXPECT_EQ(failure([&] { (void)store->find("n", "other"); }), errc::timeout);
  EXPECT_EQ(failure([&] { (void)store->find_all("n", 10); }), errc::timeout);
  EXPECT_EQ(failure([&] { (void)store->count("n"); }), errc::timeout);
  EXPECT_EQ(store->stats().late, 4U);
  const auto finds = counting_finds();
  executor->run_all();
  EXPECT_EQ(*finds, 0) << "their callers have gone before they began: the durable store is spared";
}

TEST_F(TieredStore, AReadInTimeIsLikeAnyOther) {
  const auto store = make({.read_deadline = 10s, .executor = std::make_shared<inline_executor>()});
  model_->put(make_entry("k", "value"));
  EXPECT_EQ(payload(*store, "k"), "value");
  EXPECT_EQ(store->count("n"), 1U);
  EXPECT_EQ(store->find_all("n", 5).entries.size(), 1U);
  EXPECT_EQ(store->stats().late, 0U);
  fail(operation::find, errc::permission);
  EXPECT_EQ(failure([&] { (void)store->find("n", "another"); }), errc::permission)
      << "what it threw arrives";
}

TEST_F(TieredStore, AnExecutorThatIsFullCountsAsLate) {
  const auto store =
      make({.freshness = 0s, .read_deadline = 10s, .executor = std::make_shared<full_executor>()});
  EXPECT_EQ(failure([&] { (void)store->find("n", "k"); }), errc::timeout);
  store->put(make_entry("k", "value"));
  clock_->advance(1s);
  EXPECT_EQ(payload(*store, "k"), "value");
  EXPECT_EQ(store->stats().refused, 2U);
}

TEST_F(TieredStore, LateReadsAreBoundedAndBringTheirAnswerToTheFrontLater) {
  const auto pool = make_thread_pool({.threads = 4});
  const auto store =
      make({.freshness = 1h, .read_deadline = 20ms, .max_late_reads = 2, .executor = pool});
  for (const char* key : {"a", "b", "c"}) model_->put(make_entry(key, key));
  std::promise<void> go;
  durable_->before = [&, hung = go.get_future().share()](operation op, auto) {
    if (op == operation::find) hung.wait();
  };
  // A read may be late without having begun (a slow machine), and does not count then.
  ASSERT_TRUE(eventually([&] {
    for (const char* key : {"a", "b", "c"})
      EXPECT_EQ(failure([&] { (void)store->find("n", key); }), errc::timeout);
    return store->stats().refused > 0;
  })) << "two of them run, and no third";
  EXPECT_LE(pool->count().running, 3U);
  go.set_value();
  ASSERT_TRUE(eventually([&] { return pool->count().running == 0 && pool->count().queued == 0; }));
  ASSERT_GE(store->stats().backfilled, 2U);
  EXPECT_EQ(payload_in_time(*store, "c"), "c") << "there is room for others again";
}

TEST_F(TieredStore, ALateReadDoesNotBringBackWhatWasErasedMeanwhile) {
  const auto pool = make_thread_pool();
  const auto store = make({.freshness = 1h, .read_deadline = 20ms, .executor = pool});
  const auto e = make_entry("k", "old");
  model_->put(e);
  std::promise<void> go;
  std::atomic<bool> has_answer{false};
  durable_->after = [&, hung = go.get_future().share()](operation op, auto) {
    if (op != operation::find) return;
    has_answer = true;
    hung.wait();
  };
  ASSERT_TRUE(eventually([&] {
    EXPECT_EQ(failure([&] { (void)store->find("n", "k"); }), errc::timeout);
    return has_answer.load();
  }));
  EXPECT_TRUE(store->erase("n", "k", e.as_of));
  go.set_value();
  ASSERT_TRUE(eventually([&] { return pool->count().running == 0 && pool->count().queued == 0; }));
  EXPECT_EQ(store->stats().front.entries, 0U);
  EXPECT_EQ(payload_in_time(*store, "k"), "(none)");
}

TEST_F(TieredStore, MayBeDestroyedBeforeALateReadEnds) {
  const auto pool = make_thread_pool();
  std::promise<void> go;
  std::atomic<bool> begun{false};
  durable_->before = [&, hung = go.get_future().share()](operation op, auto) {
    if (op != operation::find) return;
    begun = true;
    hung.wait();
  };
  auto store = make({.read_deadline = 20ms, .executor = pool});
  ASSERT_TRUE(eventually([&] {
    EXPECT_EQ(failure([&] { (void)store->find("n", "k"); }), errc::timeout);
    return begun.load();
  }));
  store.reset();
  go.set_value();
  EXPECT_TRUE(eventually([&] { return pool->count().running == 0; }));
}

TEST_F(TieredStore, SaysWhatTheDurableStoreSays) {
  const auto store = make();
  EXPECT_TRUE(store->waits());
  EXPECT_TRUE(store->health().available);
  EXPECT_EQ(store->peer(), peer::none);
}

TEST_F(TieredStore, RefusesOptionsThatCannotBeMeant) {
  EXPECT_EQ(failure([&] { (void)make_tiered_store(nullptr); }), errc::invalid_argument);
  EXPECT_EQ(failure([&] { (void)make({.max_entries = 0}); }), errc::invalid_argument);
  EXPECT_EQ(failure([&] { (void)make({.freshness = -1s}); }), errc::invalid_argument);
  EXPECT_EQ(failure([&] { (void)make({.read_deadline = -1s}); }), errc::invalid_argument);
  EXPECT_EQ(failure([&] { (void)make({.read_deadline = 1s}); }), errc::invalid_argument)
      << "no executor";
  EXPECT_EQ(failure([&] { (void)make({.max_late_reads = 0}); }), errc::invalid_argument);
}

/// Each key has one writer, which writes ever newer versions, and now and then erases; readers must
/// never see less than was acknowledged.
TEST_F(TieredStore, ManyThreadsNeverSeeLessThanWasAcknowledged) {
  constexpr int keys = 3;
  constexpr int versions = 1500;
  const auto start = clock_->now() - 1s;
  const auto store = make({.max_entries = 2, .freshness = 1h});
  std::array<std::atomic<int>, keys> acknowledged{};
  std::array<std::atomic<int>, keys> erasing{};  // this version is about to go
  std::array<std::atomic<int>, keys> erased{};   // this version and all before it are gone
  std::atomic<int> wrong{0};
  std::atomic<bool> over{false};
  {
    std::vector<std::jthread> readers;
    for (int r = 0; r < 3; ++r) {
      readers.emplace_back([&, r] {
        for (std::size_t i = static_cast<std::size_t>(r); !over; ++i) {
          const std::size_t k = i % keys;
          const int least = acknowledged[k];
          const int gone = erased[k];
          const auto result = store->find("n", std::to_string(k));
          const auto version = result ? (result->as_of - start).count() : 0;
          if (version == 0 ? erasing[k] < least : version < least || version <= gone) ++wrong;
        }
      });
    }
    std::vector<std::jthread> writers;
    for (std::size_t k = 0; k < keys; ++k) {
      writers.emplace_back([&, k] {
        for (int v = 1; v <= versions; ++v) {
          store->put({.name = "n",
                      .key = std::to_string(k),
                      .as_of = start + 1us * v,
                      .expire_on = start + 1h,
                      .payload = "{}"});
          acknowledged[k] = v;
          if (v % 10 != 0) continue;
          erasing[k] = v;
          (void)store->erase("n", std::to_string(k), start + 1us * v);
          erased[k] = v;
        }
      });
    }
    writers.clear();
    over = true;
  }
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace holdfast::test
