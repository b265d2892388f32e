// Drawing ids while the store is slow, down, stuck or forgetful.

#include <holdfast/metrics.hpp>
#include <holdfast/sequence.hpp>

#include "scripted_store.hpp"
#include "sequence/refiller.hpp"
#include "support/eventually.hpp"
#include "support/failure_of.hpp"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

class SequenceDrawing : public ::testing::Test {
 protected:
  std::shared_ptr<scripted_store> store = std::make_shared<scripted_store>();
  sequence_source source{store};
};

TEST_F(SequenceDrawing, NextNHasNoGap) {
  auto ids = source.sequence("many");
  EXPECT_EQ(ids.next(), 1);
  auto block = ids.next_n(500);
  EXPECT_EQ(block.first(), 2);
  EXPECT_EQ(block.last(), 501);
  EXPECT_EQ(block.size(), 500U);
  EXPECT_EQ(block.next(), 2);
  EXPECT_GE(ids.next(), 502);
  EXPECT_EQ(failure_of([&] { (void)ids.next_n(0); }).code(), errc::invalid_argument);
  EXPECT_EQ(failure_of([&] { (void)ids.next_n(largest_block + 1); }).code(),
            errc::invalid_argument);
}

TEST_F(SequenceDrawing, NextNHasNoGapWhenOtherProcessesTakeBlocksBetween) {
  store->after_each([this](std::span<const block_request>) {
    const block_request other_process{.name = "many", .count = 7};
    (void)store->counters().allocate({&other_process, 1});
  });
  auto ids = source.sequence("many");
  std::set<std::int64_t> drawn;
  for (int i = 0; i < 20; ++i) {
    auto block = ids.next_n(33);
    EXPECT_EQ(block.last() - block.first(), 32);
    while (block.has_next()) EXPECT_TRUE(drawn.insert(block.next()).second);
    EXPECT_TRUE(drawn.insert(ids.next()).second);
  }
}

TEST_F(SequenceDrawing, TryNextDoesNotWaitAndUsesUpNoId) {
  store->stick();
  auto ids = source.sequence("impatient");
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(ids.try_next(), std::nullopt);
  store->release();
  ASSERT_TRUE(eventually([&] { return ids.stats().refills == 1; }));
  EXPECT_EQ(ids.try_next(), 1) << "a thousand tries did not use up an id";
}

TEST_F(SequenceDrawing, ADeadlineIsKeptAndNothingIsLost) {
  auto ids = source.sequence("late");
  for (int i = 1; i <= 20; ++i) EXPECT_EQ(ids.next(), i);
  store->stick();
  const auto before = steady::now();
  const auto failure = failure_of([&] { (void)ids.next(before + 50ms); });
  EXPECT_EQ(failure.code(), errc::timeout);
  EXPECT_TRUE(failure.transient());
  EXPECT_GE(steady::now() - before, 50ms);
  store->release();
  EXPECT_EQ(ids.next(), 21);
}

TEST_F(SequenceDrawing, TheLeaseServesWhileTheStoreIsDown) {
  auto ids = source.sequence("down", {.wait = 100ms});
  EXPECT_EQ(ids.next(steady::now() + 30s), 1);
  store->fail_with(error(errc::unavailable, "the server is down", {.transient = true}));
  for (int i = 2; i <= 20; ++i) EXPECT_EQ(ids.next(), i);
  EXPECT_EQ(ids.try_next(), std::nullopt);
  ASSERT_TRUE(eventually([&] { return ids.stats().failures > 0; }));
  const auto failure = failure_of([&] { (void)ids.next(); });
  EXPECT_EQ(failure.code(), errc::timeout);
  EXPECT_NE(std::string(failure.what()).find("the server is down"), std::string::npos)
      << failure.what();
  store->fail_with(std::nullopt);
  EXPECT_EQ(ids.next(steady::now() + 30s), 21);
  EXPECT_GE(ids.stats().failures, 1U);
}

TEST_F(SequenceDrawing, ABlockInDoubtIsAbandoned) {
  auto ids = source.sequence("doubt");
  for (int i = 1; i <= 20; ++i) EXPECT_EQ(ids.next(), i);
  store->fail_with(
      error(errc::unavailable, "the connection was lost", {.transient = true, .in_doubt = true}));
  std::jthread repair([&] {
    store->await_calls(2);
    store->fail_with(std::nullopt);
  });
  const auto id = ids.next(steady::now() + 30s);
  EXPECT_GE(id, 41) << "21 to 40 may have been granted";
  EXPECT_GE(ids.stats().in_doubt, 1U);
}

TEST_F(SequenceDrawing, APermanentFailureIsThrownAtOnce) {
  auto ids = source.sequence("broken", {.wait = 1h});
  store->fail_with(error(errc::missing_object, "no such table"));
  EXPECT_EQ(failure_of([&] { (void)ids.next(); }).code(), errc::missing_object);
  store->fail_with(std::nullopt);
  EXPECT_EQ(ids.next(), 1) << "the next call asks again";
}

/// Tinyid's ids went backwards when a slow loader met a fast consumer, and Baidu's ring gave an id
/// twice when it was nearly empty.
TEST_F(SequenceDrawing, ASlowStoreNeverMakesIdsGoBack) {
  store->slow_down(300us);
  auto ids = source.sequence("slow", {.blocks = adaptive_blocks{.smallest = 2, .largest = 8}});
  std::int64_t before = 0;
  for (int i = 0; i < 3000; ++i) {
    const auto id = ids.next();
    ASSERT_GT(id, before);
    before = id;
  }
}

TEST_F(SequenceDrawing, AStoreThatForgotIsDetected) {
  auto ids = source.sequence("lost");
  for (int i = 1; i <= 20; ++i) EXPECT_EQ(ids.next(), i);
  store->forget();
  EXPECT_EQ(failure_of([&] { (void)ids.next(); }).code(), errc::tampered);
  EXPECT_EQ(failure_of([&] { (void)ids.next(); }).code(), errc::tampered) << "for good";
}

/// If a grant has no epoch, the sequence asks the store for it, without its lock. An epoch that
/// stays unknown does not mean that the store forgot.
TEST_F(SequenceDrawing, AnUnknownEpochIsNotALoss) {
  const sequence* drawn_from = nullptr;
  std::atomic<int> peeks{0};
  std::atomic<int> failures{2};
  store->hide_epochs([&] {
    (void)drawn_from->stats();  // takes the lock of the sequence
    ++peeks;
    const int remaining = failures.load();
    if (remaining == 0) return;
    --failures;
    if (remaining == 2) throw error(errc::unavailable, "the server is down", {.transient = true});
    throw 7;  // NOLINT(hicpp-exception-baseclass): a store of the user may
  });
  auto ids = source.sequence("epochs");
  drawn_from = &ids;
  for (int i = 1; i <= 100; ++i) ASSERT_EQ(ids.next(), i);
  EXPECT_EQ(peeks, 3) << "until one succeeded";
  store->forget();
  EXPECT_EQ(failure_of([&] { (void)ids.next(); }).code(), errc::tampered)
      << "a lower block of the same epoch";
}

TEST_F(SequenceDrawing, ALowerBlockOfAnUnknownEpochIsALoss) {
  store->hide_epochs(
      [] { throw error(errc::unavailable, "the server is down", {.transient = true}); });
  auto ids = source.sequence("unknown");
  for (int i = 1; i <= 20; ++i) ASSERT_EQ(ids.next(), i);
  store->forget();
  EXPECT_EQ(failure_of([&] { (void)ids.next(); }).code(), errc::tampered);
}

/// The requests that come while a call is under way go into the next call, or into a few if the
/// call takes long.
TEST_F(SequenceDrawing, RefillsOfManySequencesShareOneCall) {
  std::vector<sequence> all;
  all.reserve(101);
  for (int i = 0; i < 101; ++i) all.push_back(source.sequence("s" + std::to_string(i)));
  store->stick();
  EXPECT_EQ(all.front().try_next(), std::nullopt);
  store->await_calls(1);
  for (auto& ids : all) EXPECT_EQ(ids.try_next(), std::nullopt);
  store->release();
  for (auto& ids : all) EXPECT_EQ(ids.next(), 1);
  EXPECT_GE(store->calls(), 2U);
  EXPECT_LE(store->calls(), detail::sequence::refiller::max_threads + 1);
  EXPECT_EQ(store->requests(), 101U);
}

TEST_F(SequenceDrawing, ARequestThatFailsDoesNotStopTheOthers) {
  auto good = source.sequence("good");
  auto other = source.sequence("other");
  store->stick();
  EXPECT_EQ(good.try_next(), std::nullopt);
  store->await_calls(1);
  EXPECT_EQ(other.try_next(), std::nullopt);
  store->fail_with(error(errc::malformed, "one row is damaged"));
  store->release();
  ASSERT_TRUE(eventually([&] { return other.stats().failures > 0; }));
  store->fail_with(std::nullopt);
  EXPECT_EQ(good.next(), 1);
  EXPECT_EQ(other.next(), 1);
}

TEST_F(SequenceDrawing, HandlesGrowAndShareNothing) {
  auto ids = source.sequence("handles", {.blocks = fixed_blocks{1000}});
  std::set<std::int64_t> drawn;
  auto first = ids.handle();
  auto second = ids.handle(16);
  std::int64_t last_of_first = 0;
  std::int64_t last_of_second = 0;
  for (int i = 0; i < 5000; ++i) {
    const auto a = first.next();
    const auto b = second.next();
    ASSERT_GT(a, last_of_first);
    ASSERT_GT(b, last_of_second);
    last_of_first = a;
    last_of_second = b;
    ASSERT_TRUE(drawn.insert(a).second);
    ASSERT_TRUE(drawn.insert(b).second);
    // The unused ids of the old handle are a gap.
    if (i == 2500) second = ids.handle(16);
  }
  EXPECT_EQ(failure_of([&] { (void)ids.handle(0); }).code(), errc::invalid_argument);
}

TEST_F(SequenceDrawing, AHandleUsesTheEndOfABlock) {
  auto ids = source.sequence("tail", {.blocks = fixed_blocks{20}, .max = 20});
  auto handle = ids.handle();
  std::set<std::int64_t> drawn;
  for (int i = 0; i < 20; ++i) drawn.insert(handle.next());
  EXPECT_EQ(drawn.size(), 20U);
  EXPECT_EQ(*drawn.rbegin(), 20);
  EXPECT_EQ(failure_of([&] { (void)handle.next(); }).code(), errc::out_of_range);
}

TEST_F(SequenceDrawing, AStoreThatCouldForgetIsRefused) {
  store->set_unsafe_settings({"the disk does not sync; buy another one"});
  auto ids = source.sequence("refused");
  const auto failure = failure_of([&] { (void)ids.next(); });
  EXPECT_EQ(failure.code(), errc::unsupported_type);
  EXPECT_NE(std::string(failure.what()).find("buy another one"), std::string::npos);
  EXPECT_EQ(failure_of([&] { (void)ids.peek(); }).code(), errc::unsupported_type);
  EXPECT_EQ(failure_of([&] { (void)ids.ensure_at_least(7); }).code(), errc::unsupported_type);
  EXPECT_EQ(store->calls(), 0U);
  const sequence_source allowed(store, {.allow_unsafe = true});
  EXPECT_EQ(allowed.sequence("refused").next(), 1);
}

TEST_F(SequenceDrawing, AStoreThatIsDownIsCheckedLater) {
  store->set_unsafe_settings({"it forgets"});
  store->fail_with(error(errc::unavailable, "the server is down", {.transient = true}));
  auto ids = source.sequence("early", {.wait = 1h});
  store->fail_with(std::nullopt);
  EXPECT_EQ(failure_of([&] { (void)ids.next(); }).code(), errc::unsupported_type)
      << "before the first block, not after";
  EXPECT_EQ(store->calls(), 0U);
}

TEST_F(SequenceDrawing, AHungStoreDoesNotHangTheDestructor) {
  store->stick();
  const auto before = steady::now();
  {
    const sequence_source own(store);
    auto ids = own.sequence("hung");
    EXPECT_EQ(ids.try_next(), std::nullopt);
    store->await_calls(1);
  }
  EXPECT_LT(steady::now() - before, 20s);
  store->release();
}

TEST_F(SequenceDrawing, TheLongestWaitDoesNotOverflow) {
  store->stick();
  auto ids = source.sequence("patient", {.wait = std::chrono::milliseconds::max()});
  std::jthread later([this] {
    std::this_thread::sleep_for(50ms);
    store->release();
  });
  EXPECT_EQ(ids.next(), 1);
}

TEST_F(SequenceDrawing, TheLatestDeadlineDoesNotOverflow) {
  store->stick();
  auto ids = source.sequence("patient");
  std::jthread later([this] {
    store->await_calls(1);
    store->release();
  });
  EXPECT_EQ(ids.next(steady::time_point::max()), 1);
}

/// A new handle takes its share at once, not one id at a time until its block ends.
TEST_F(SequenceDrawing, AHandleTakesItsShareFromTheFirstId) {
  auto ids = source.sequence("share", {.blocks = fixed_blocks{8000}});
  EXPECT_EQ(ids.next(), 1);
  auto handle = ids.handle();
  EXPECT_EQ(handle.next(), 2);
  EXPECT_EQ(ids.next(), 2 + 1000) << "an eighth of the block";
}

TEST_F(SequenceDrawing, AClosedSequenceSaysSo) {
  auto ids = source.sequence("closed");
  EXPECT_EQ(ids.next(), 1);
  EXPECT_EQ(ids.close(steady::now() + 1s).unused, 19U);
  EXPECT_EQ(failure_of([&] { (void)ids.next(); }).code(), errc::unavailable);
  EXPECT_EQ(ids.close(steady::now() + 1s).unused, 0U);
}

TEST_F(SequenceDrawing, CloseEndsACallThatWaits) {
  store->stick();
  auto ids = source.sequence("waiting", {.wait = 1h});
  std::jthread waiting(
      [&] { EXPECT_EQ(failure_of([&] { (void)ids.next(); }).code(), errc::unavailable); });
  store->await_calls(1);
  ids.close(steady::now());
  waiting.join();
  store->release();
}

TEST_F(SequenceDrawing, MetricsAreCounted) {
  const auto registry = make_prometheus_registry();
  const sequence_source counted(store, {.metrics = registry});
  auto ids = counted.sequence("counted");
  for (int i = 0; i < 45; ++i) (void)ids.next();
  const auto stats = ids.stats();
  EXPECT_EQ(stats.ids, 45U);
  EXPECT_EQ(stats.refills, 3U);
  EXPECT_EQ(stats.stalls, 3U);
  EXPECT_EQ(stats.at_risk, 15U);
  EXPECT_EQ(stats.remaining, static_cast<std::uint64_t>(last_ordinal) - 60);
  ids.close(steady::now());
  const auto text = registry->text();
  EXPECT_NE(text.find(R"(holdfast_sequence_ids_total{sequence="counted"} 45)"), std::string::npos)
      << text;
  EXPECT_NE(text.find(R"(holdfast_sequence_refills_total{sequence="counted"} 3)"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("holdfast_sequence_refill_seconds_count"), std::string::npos) << text;
  EXPECT_NE(text.find("holdfast_sequence_ids_left"), std::string::npos) << text;
}

/// While this object exists no thread can be started: the default stack size exceeds the address
/// space.
class no_more_threads {
 public:
  no_more_threads() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t huge;
    pthread_attr_init(&huge);
    pthread_attr_setstacksize(&huge, std::size_t{1} << 47U);
    pthread_setattr_default_np(&huge);
    pthread_attr_destroy(&huge);
  }
  no_more_threads(const no_more_threads&) = delete;
  no_more_threads& operator=(const no_more_threads&) = delete;
  ~no_more_threads() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }

 private:
  pthread_attr_t before_{};
};

TEST_F(SequenceDrawing, ARefillerThatCannotStartIsAnErrorAndStartsLater) {
  auto ids = source.sequence("threads");
  auto handle = ids.handle();
  {
    const no_more_threads limit;
    for (int i = 0; i < 3; ++i) {
      const auto failure = failure_of([&] { (void)ids.next(); });
      EXPECT_EQ(failure.code(), errc::unavailable);
      EXPECT_TRUE(failure.transient());
      EXPECT_NE(std::string(failure.what()).find("cannot be started"), std::string::npos)
          << failure.what();
    }
    EXPECT_EQ(failure_of([&] { (void)ids.try_next(); }).code(), errc::unavailable);
    EXPECT_EQ(failure_of([&] { (void)ids.next_n(5); }).code(), errc::unavailable);
    EXPECT_EQ(failure_of([&] { (void)handle.next(); }).code(), errc::unavailable);
  }
  EXPECT_EQ(ids.next(), 1) << "tickets drawn in vain are not lost";
  EXPECT_EQ(ids.next(), 2);
}

/// Leaf failed callers here (its issues 35 and 143): many threads, tiny blocks, a slow store.
TEST_F(SequenceDrawing, ACrowdWithTinyBlocksIsServed) {
  store->slow_down(100us);
  for (const std::int64_t size : {1, 20}) {
    auto ids = source.sequence("crowd" + std::to_string(size),
                               {.blocks = fixed_blocks{size}, .wait = 5min});
    std::mutex mutex;
    std::set<std::int64_t> drawn;
    {
      std::vector<std::jthread> crowd;
      crowd.reserve(64);
      for (int i = 0; i < 64; ++i) {
        crowd.emplace_back([&] {
          for (int k = 0; k < 4; ++k) {
            const auto id = ids.next();
            const std::scoped_lock lock(mutex);
            drawn.insert(id);
          }
        });
      }
    }
    EXPECT_EQ(drawn.size(), 256U);
    EXPECT_EQ(ids.peek(), 256 + (size - 256 % size) % size);
  }
}

}  // namespace
}  // namespace holdfast::test
