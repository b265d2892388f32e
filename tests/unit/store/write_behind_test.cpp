// What is queued is seen, coalesced and written in batches; what is unchanged waits.

#include "support/failure_of.hpp"
#include "unit/store/write_behind_fixture.hpp"

namespace holdfast::test {
namespace {

using operation = faulty_store::operation;

class WriteBehind : public WriteBehindFixture {};

TEST_F(WriteBehind, QueuesAndWritesLater) {
  put(make("k", 0ms, "v"));
  EXPECT_EQ(payload("k"), "v");
  EXPECT_EQ(stored("k"), "(none)");
  EXPECT_EQ(numbers().pending, 1U);
  EXPECT_EQ(executor_->run_all(), 1U);
  EXPECT_EQ(stored("k"), "v");
  EXPECT_EQ(payload("k"), "v");
  EXPECT_EQ(numbers().written, 1U);
  EXPECT_EQ(numbers().pending, 0U);
  EXPECT_EQ(numbers().pending_bytes, 0U);
}

TEST_F(WriteBehind, WakesTheWriterOnce) {
  for (int i = 0; i < 100; ++i) put(make("k" + std::to_string(i)));
  EXPECT_EQ(executor_->size(), 1U) << "one that will write is enough";
  executor_->run_all();
  EXPECT_EQ(executor_->size(), 0U);
  EXPECT_EQ(sizes_, (std::vector<std::size_t>{100}));
}

TEST_F(WriteBehind, CoalescesByTheRuleOfTheStore) {
  put(make("k", 2ms, "middle"));
  put(make("k", 3ms, "old"));
  EXPECT_EQ(payload("k"), "middle");
  put(make("k", 1ms, "new"));
  EXPECT_EQ(payload("k"), "new");
  put(make("k", 1ms, "same moment, later"));
  EXPECT_EQ(payload("k"), "same moment, later");
  EXPECT_EQ(numbers().queued, 4U);
  EXPECT_EQ(numbers().coalesced, 3U);
  executor_->run_all();
  EXPECT_EQ(sizes_, (std::vector<std::size_t>{1}));
  EXPECT_EQ(stored("k"), "same moment, later");
}

TEST_F(WriteBehind, AFutureStampDoesNotFreezeItsKey) {
  auto future = make("k", 0ms, "future");
  future.as_of += 10min;
  put(future);
  put(make("k", 0ms, "now"));
  EXPECT_EQ(payload("k"), "now");
  executor_->run_all();
  EXPECT_EQ(stored("k"), "now");
}

TEST_F(WriteBehind, TakesWhatIsQueuedUpToABatch) {
  for (int i = 0; i < 1200; ++i) put(make("k" + std::to_string(i)));
  bool more = true;
  before_ = [&](operation op, auto) {
    if (op == operation::put && std::exchange(more, false)) {
      for (int i = 0; i < 7; ++i) put(make("later" + std::to_string(i)));
    }
  };
  executor_->run_all();
  EXPECT_EQ(sizes_, (std::vector<std::size_t>{500, 500, 207}));
}

TEST_F(WriteBehind, ClosesABatchThatIsLarge) {
  options_.batch_bytes = 10'000;
  for (int i = 0; i < 10; ++i) put(make("k" + std::to_string(i), 0ms, std::string(4'000, 'x')));
  executor_->run_all();
  EXPECT_EQ(sizes_, (std::vector<std::size_t>{3, 3, 3, 1}));
}

TEST_F(WriteBehind, ReadsSeeWhatIsInFlight) {
  put(make("k", 1ms, "v"));
  int looked = 0;
  before_ = [&](operation op, auto) {
    if (op != operation::put) return;
    ++looked;
    EXPECT_EQ(payload("k"), "v");
    EXPECT_EQ(numbers().pending, 1U);
    put(make("k", 2ms, "older, while the newer is in flight"));
    EXPECT_EQ(payload("k"), "v");
    before_ = {};
  };
  executor_->run_all();
  EXPECT_EQ(looked, 1);
  EXPECT_EQ(stored("k"), "v");
}

TEST_F(WriteBehind, ReadsMergeWithWhatOthersWrote) {
  model_->put(make("k", 1ms, "another machine's, newer"));
  put(make("k", 2ms, "ours"));
  EXPECT_EQ(payload("k"), "another machine's, newer");
  model_->put(make("older", 2ms, "another machine's, older"));
  put(make("older", 1ms, "ours"));
  EXPECT_EQ(payload("older"), "ours");
}

TEST_F(WriteBehind, KeepsRealmsApart) {
  auto one = make("k", 0ms, "of a");
  one.realm = "a";
  auto other = make("k", 0ms, "of b");
  other.realm = "b";
  put(one);
  put(other);
  EXPECT_EQ(store().find({"n", "a"}, "k"), one);
  EXPECT_EQ(store().find({"n", "b"}, "k"), other);
  EXPECT_EQ(store().find("n", "k"), std::nullopt);
  EXPECT_EQ(store().find({"a", "n"}, "k"), std::nullopt);
  executor_->run_all();
  EXPECT_EQ(model_->find({"n", "a"}, "k"), one);
  EXPECT_EQ(model_->find({"n", "b"}, "k"), other);
}

TEST_F(WriteBehind, ErasesTheVisibleVersion) {
  const auto old = make("k", 3ms, "old");
  const auto fresh = make("k", 2ms, "fresh");
  model_->put(old);
  put(fresh);
  EXPECT_FALSE(store().erase("n", "k", old.as_of));
  EXPECT_EQ(numbers().queued, 1U) << "what is not there needs no erase";
  EXPECT_TRUE(store().erase("n", "k", fresh.as_of));
  EXPECT_EQ(payload("k"), "(none)") << "and not the old one: the fresh one had replaced it";
  EXPECT_FALSE(store().erase("n", "k", fresh.as_of));
  executor_->run_all();
  EXPECT_EQ(stored("k"), "(none)");
  EXPECT_EQ(erases_, 1U);
}

TEST_F(WriteBehind, ErasesWhatOnlyTheStoreHas) {
  const auto there = make("k", 1ms, "v");
  model_->put(there);
  EXPECT_TRUE(store().erase("n", "k", there.as_of));
  EXPECT_EQ(payload("k"), "(none)");
  EXPECT_EQ(stored("k"), "v");
  executor_->run_all();
  EXPECT_EQ(stored("k"), "(none)");
}

TEST_F(WriteBehind, KeepsTheOrderOfPutsAndErases) {
  const auto first = make("k", 5ms, "first");
  put(first);
  EXPECT_TRUE(store().erase("n", "k", first.as_of));
  put(make("k", 6ms, "an older one, put after the erase"));
  EXPECT_EQ(payload("k"), "an older one, put after the erase")
      << "a plain erase lets an older write return, here as in every store";
  executor_->run_all();
  EXPECT_EQ(stored("k"), "an older one, put after the erase");
  EXPECT_EQ(numbers().written, 3U);
}

TEST_F(WriteBehind, AnEraseIsNotNeededBeforeANewerPut) {
  const auto first = make("k", 5ms, "first");
  put(first);
  EXPECT_TRUE(store().erase("n", "k", first.as_of));
  put(make("k", 4ms, "second"));
  EXPECT_EQ(payload("k"), "second");
  EXPECT_EQ(numbers().coalesced, 2U);
  executor_->run_all();
  EXPECT_EQ(stored("k"), "second");
  EXPECT_EQ(erases_, 0U);
  EXPECT_EQ(sizes_, (std::vector<std::size_t>{1}));
}

TEST_F(WriteBehind, PutsOfABatchTravelTogetherThoughErasesAreAmongThem) {
  std::vector<entry> all;
  for (int i = 0; i < 20; ++i) {
    all.push_back(make("k" + std::to_string(i), 5ms));
    put(all.back());
    if (i % 2 == 0) {
      EXPECT_TRUE(store().erase("n", all.back().key, all.back().as_of));
    }
  }
  executor_->run_all();
  EXPECT_EQ(sizes_, (std::vector<std::size_t>{20}));
  EXPECT_EQ(erases_, 10U);
  EXPECT_EQ(model_->count("n"), 10U);
}

TEST_F(WriteBehind, ScansFlushFirst) {
  put(make("k"));
  EXPECT_EQ(failure_of([&] { (void)store().count("n"); }).code(), errc::timeout);
  EXPECT_EQ(failure_of([&] { (void)store().find_all("n", 10); }).code(), errc::timeout);
  const auto refused = failure_of([&] { (void)store().expire(clock_->now(), 10); });
  EXPECT_EQ(refused.code(), errc::timeout);
  EXPECT_TRUE(refused.transient());
  executor_->run_all();
  EXPECT_EQ(store().count("n"), 1U);
  EXPECT_EQ(store().find_all("n", 10).entries.size(), 1U);
  EXPECT_EQ(store().expire(clock_->now() + 2h, 10), 1U);
}

TEST_F(WriteBehind, RefusesAndIgnoresAtOnceWhatAStoreWould) {
  EXPECT_EQ(failure_of([&] { put(make("")); }).code(), errc::invalid_argument);
  EXPECT_EQ(failure_of([&] { (void)store().find("n", ""); }).code(), errc::invalid_argument);
  auto expired = make("k");
  expired.as_of -= 1s;
  expired.expire_on = clock_->now() - 1us;
  put(expired);
  EXPECT_EQ(numbers().queued, 0U);
}

TEST_F(WriteBehind, WhatExpiresWhileItWaitsTakesTheOlderWithIt) {
  model_->put(make("k", 5ms, "older, lives longer"));
  model_->put(make("other", 1ms, "newer than what waits"));
  auto brief = make("k", 2ms, "brief");
  brief.expire_on = clock_->now() + 1s;
  put(brief);
  brief.key = "other";
  put(brief);
  clock_->advance(2s);
  EXPECT_EQ(payload("k"), "brief") << "a store also returns expired entries";
  executor_->run_all();
  EXPECT_EQ(stored("k"), "(none)") << "had it been written in time, the older one would be gone";
  EXPECT_EQ(stored("other"), "newer than what waits");
  EXPECT_EQ(payload("k"), "(none)");
  EXPECT_EQ(numbers().expired, 2U);
  EXPECT_EQ(numbers().skipped, 2U);
  EXPECT_TRUE(store().flush(now()).complete());
}

TEST_F(WriteBehind, TellsTheAgeOfWhatWaitsLongest) {
  put(make("k"));
  clock_->advance(3s);
  put(make("other"));
  put(make("k"));
  EXPECT_EQ(numbers().oldest, 3s) << "its key is unsaved since then, whatever replaced it";
  executor_->run_all();
  EXPECT_EQ(numbers().oldest, 0s);
}

class WriteBehindUnchanged : public WriteBehind {
 protected:
  WriteBehindUnchanged() { options_.refresh_after = 10s; }
  /// Time passes, and the same answer comes again.
  void again(std::chrono::microseconds after = 1s) {
    executor_->advance(after);
    put(make("k", 0ms, "same"));
    executor_->run_all();
  }
};

TEST_F(WriteBehindUnchanged, WaitsAndIsReplacedByTheNext) {
  for (int i = 0; i < 5; ++i) again();
  EXPECT_EQ(sizes_, (std::vector<std::size_t>{1}));
  EXPECT_EQ(numbers().written, 1U);
  EXPECT_EQ(numbers().skipped, 3U);
  EXPECT_EQ(numbers().held, 1U);
  EXPECT_EQ(store().find("n", "k")->as_of, clock_->now()) << "reads see the newest";
  EXPECT_EQ(model_->find("n", "k")->as_of, clock_->now() - 4s);
}

TEST_F(WriteBehindUnchanged, IsRefreshedInTimeEvenWhenNobodyCallsAnyMore) {
  again();
  again();
  const auto newest = clock_->now();
  executor_->advance(8999ms);
  EXPECT_EQ(sizes_.size(), 1U);
  executor_->advance(1ms);
  EXPECT_EQ(sizes_.size(), 2U) << "ten seconds after it was written";
  EXPECT_EQ(model_->find("n", "k")->as_of, newest);
  EXPECT_EQ(numbers().held, 0U);
  EXPECT_EQ(executor_->size(), 0U);
}

TEST_F(WriteBehindUnchanged, IsWrittenEveryTenSeconds) {
  for (int i = 0; i < 100; ++i) again();
  EXPECT_GE(sizes_.size(), 9U);
  EXPECT_LE(sizes_.size(), 11U);
  EXPECT_GE(model_->find("n", "k")->as_of, clock_->now() - 10s);
}

TEST_F(WriteBehindUnchanged, AChangeIsWrittenAtOnce) {
  again();
  again();
  put(make("k", 0ms, "changed"));
  executor_->run_all();
  EXPECT_EQ(stored("k"), "changed");
  auto other_class = make("k", 0ms, "changed");
  other_class.payload_class = "d";
  put(other_class);
  executor_->run_all();
  EXPECT_EQ(model_->find("n", "k")->payload_class, "d");
  auto gone = make("k");
  gone.payload.reset();
  put(gone);
  executor_->run_all();
  EXPECT_EQ(stored("k"), "(tombstone)");
  EXPECT_EQ(numbers().held, 0U);
}

TEST_F(WriteBehindUnchanged, AFlushWritesIt) {
  again();
  again();
  const auto newest = clock_->now();
  EXPECT_FALSE(store().flush(now()).complete());
  executor_->run_all();
  EXPECT_TRUE(store().flush(now()).complete());
  EXPECT_EQ(model_->find("n", "k")->as_of, newest);
}

TEST_F(WriteBehindUnchanged, AnOlderWriteOfAnotherMachineDoesNotStay) {
  again();
  const auto between = make("k", 0ms, "of another machine");
  again();
  model_->put(between);
  EXPECT_EQ(payload("k"), "same");
  executor_->advance(10s);
  EXPECT_EQ(stored("k"), "same") << "the newer one is written within refresh_after";
}

TEST_F(WriteBehindUnchanged, NeverLetsWhatIsStoredExpire) {
  const auto brief = [this] {
    auto one = make("k", 0ms, "same");
    one.expire_on = clock_->now() + 15s;
    put(one);
    executor_->run_all();
  };
  brief();
  executor_->advance(1s);
  brief();
  EXPECT_EQ(sizes_.size(), 2U) << "it would expire before its refresh is done";
}

TEST_F(WriteBehindUnchanged, WakesTheWriterOnceAndIsWrittenInItsNewestVersion) {
  again();
  again();
  const auto before = numbers();
  const auto tasks = executor_->size();
  for (int i = 0; i < 100; ++i) {
    executor_->advance(10ms);
    put(make("k", 0ms, "same"));
    EXPECT_EQ(executor_->size(), tasks) << "only the timer";
  }
  const auto newest = clock_->now();
  EXPECT_EQ(store().find("n", "k")->as_of, newest);
  EXPECT_EQ(numbers().batches, before.batches);
  EXPECT_EQ(numbers().held, 1U);
  EXPECT_EQ(numbers().skipped, before.skipped + 100);
  executor_->advance(8s);
  EXPECT_EQ(model_->find("n", "k")->as_of, newest);
  EXPECT_EQ(numbers().pending, 0U);
}

TEST_F(WriteBehindUnchanged, IsNotReplacedWithoutItsTimer) {
  again();
  again();
  executor_->clear();
  put(make("k", 0ms, "same"));
  EXPECT_GT(executor_->size(), 0U) << "a lost timer is set again";
}

TEST_F(WriteBehindUnchanged, AnOlderVersionDoesNotReplaceIt) {
  again();
  again();
  const auto tasks = executor_->size();
  const auto newest = clock_->now();
  put(make("k", 500ms, "same"));
  put(make("k", 500ms, "another"));
  EXPECT_EQ(executor_->size(), tasks);
  EXPECT_EQ(numbers().coalesced, 2U);
  EXPECT_EQ(store().find("n", "k")->as_of, newest);
  executor_->advance(10s);
  EXPECT_EQ(stored("k"), "same");
}

TEST_F(WriteBehindUnchanged, AnEraseComesAfterIt) {
  again();
  again();
  EXPECT_TRUE(store().erase("n", "k", clock_->now()));
  EXPECT_EQ(payload("k"), "(none)");
  executor_->run_all();
  EXPECT_EQ(stored("k"), "(none)");
  EXPECT_EQ(numbers().pending, 0U);
  put(make("k", 0ms, "same"));
  executor_->run_all();
  EXPECT_EQ(stored("k"), "same") << "what was erased is not known as written";
}

TEST_F(WriteBehindUnchanged, OnlySoManyWait) {
  options_.max_held = 3;
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 10; ++i) put(make("k" + std::to_string(i), 0ms, "same"));
    executor_->run_all();
  }
  EXPECT_EQ(numbers().held, 3U);
  EXPECT_EQ(numbers().written, 17U);
}

}  // namespace
}  // namespace holdfast::test
