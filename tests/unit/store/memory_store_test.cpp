#include <holdfast/store/memory.hpp>

#include "support/virtual_clock.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

class MemoryStore : public ::testing::Test {
 protected:
  [[nodiscard]] std::shared_ptr<memory_store> make(memory_store_options options = {}) const {
    options.clock = clock_;
    return make_memory_store(std::move(options));
  }
  [[nodiscard]] entry make_entry(std::string key, std::string payload = "{}",
                                 std::chrono::microseconds ago = {}) const {
    return {.name = "n",
            .key = std::move(key),
            .as_of = clock_->now() - ago,
            .expire_on = clock_->now() + 1h,
            .payload = std::move(payload),
            .payload_class = "test.payload"};
  }
  static errc refusal(const memory_store_options& options) {
    try {
      (void)make_memory_store(options);
    } catch (const error& e) {
      return e.code();
    }
    return errc::internal;
  }

  std::shared_ptr<virtual_clock> clock_ = std::make_shared<virtual_clock>();
};

// With the system clock, which is not read for every entry.
TEST(MemoryStoreByTheMachine, WritesNothingThatHasExpiredAndBelievesNoFarFuture) {
  const auto clock = system_clock();
  const auto put = [&](store& target, std::chrono::microseconds stamp,
                       std::chrono::microseconds expiry, std::string payload) {
    const auto now = clock->now();
    const auto started = std::min(now + stamp, now + expiry);
    target.put({.name = "n",
                .key = "k",
                .as_of = started,
                .expire_on = now + expiry,
                .payload = std::move(payload),
                .payload_class = "c"});
  };
  const auto payload = [](store& of) {
    return of.find("n", "k").value_or(entry{}).payload.value_or("nothing");
  };
  for (const auto expiry : {-1us, -1000us, -100'000us, std::chrono::microseconds(-1h)}) {
    const auto store = make_memory_store();
    put(*store, 0us, expiry, "expired");
    EXPECT_EQ(payload(*store), "nothing") << expiry.count();
  }
  for (const auto skew : {0us, std::chrono::microseconds(1s), std::chrono::microseconds(1h)}) {
    const auto store = make_memory_store({.max_skew = skew});
    put(*store, 0us, 1h, "newer");
    put(*store, -1s, 1h, "older");
    EXPECT_EQ(payload(*store), "newer") << skew.count();
    put(*store, skew + 1min, 2h, "future");
    put(*store, 0us, 1h, "now");
    EXPECT_EQ(payload(*store), "now") << "a stamp beyond max_skew freezes nothing";
  }
}

TEST_F(MemoryStore, RefusesABadCharacterWhereverItIs) {
  const auto store = make();
  for (std::size_t length = 1; length <= 20; ++length) {
    EXPECT_NO_THROW(store->put(make_entry(std::string(length, '\x7f'))));
    for (std::size_t position = 0; position < length; ++position) {
      for (const char bad : {'\0', '\x80', '\xff'}) {
        std::string key(length, 'k');
        key[position] = bad;
        EXPECT_THROW(store->put(make_entry(key)), error) << length << " " << position;
      }
    }
  }
  EXPECT_EQ(store->count("n"), 20U);
}

TEST_F(MemoryStore, HoldsAsManyEntriesAsItMayAndNotOneMore) {
  for (const std::size_t bound : {1UL, 2UL, 7UL, 100UL, 5000UL}) {
    const auto store = make({.max_entries = bound});
    for (std::size_t i = 0; i < bound; ++i) store->put(make_entry(std::to_string(i)));
    EXPECT_EQ(store->count("n"), bound);
    EXPECT_EQ(store->stats().evicted, 0U)
        << "what fits does not leave, whichever shards it falls into";
    for (std::size_t i = 0; i < 50; ++i) {
      store->put(make_entry("more" + std::to_string(i)));
      ASSERT_EQ(store->count("n"), bound);
      ASSERT_NE(store->find("n", "more" + std::to_string(i)), std::nullopt)
          << "what was just written is there";
    }
    EXPECT_EQ(store->stats().evicted, 50U);
    EXPECT_EQ(store->stats().entries, bound);
  }
}

TEST_F(MemoryStore, IsBoundedByBytes) {
  constexpr std::size_t bound = 1'000'000;
  const auto store = make({.max_entries = 1'000'000, .max_bytes = bound});
  for (int i = 0; i < 3000; ++i) {
    store->put(
        make_entry(std::to_string(i), std::string(static_cast<std::size_t>(i % 10) * 500, 'x')));
    ASSERT_LE(store->stats().bytes, bound);
  }
  const auto numbers = store->stats();
  EXPECT_GT(numbers.bytes, bound * 9 / 10) << "the room is used";
  EXPECT_EQ(numbers.entries + numbers.evicted, 3000U)
      << "every entry is stored or counted as evicted";
  EXPECT_EQ(store->count("n"), numbers.entries);
}

TEST_F(MemoryStore, OneEntryMayTakeAlmostAllAndIsRefusedBeyond) {
  const auto store = make({.max_bytes = 100'000});
  for (int i = 0; i < 50; ++i) store->put(make_entry(std::to_string(i)));
  store->put(make_entry("large", std::string(99'000, 'x')));
  EXPECT_NE(store->find("n", "large"), std::nullopt);
  EXPECT_LE(store->stats().bytes, 100'000U);
  const std::vector<entry> two{make_entry("small"),
                               make_entry("larger", std::string(100'001, 'x'))};
  try {
    store->put(two);
    FAIL() << "does not fit";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::too_large);
    EXPECT_NE(std::string(e.what()).find("n/larger"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("max_bytes"), std::string::npos) << e.what();
  }
  EXPECT_EQ(store->find("n", "small"), std::nullopt) << "nothing of it was written";
}

TEST_F(MemoryStore, GivesBackWhatReplacedAndErasedEntriesTook) {
  const auto store = make();
  store->put(make_entry("k"));
  const auto small = store->stats().bytes;
  store->put(make_entry("k", std::string(1'000'000, 'x')));
  EXPECT_GT(store->stats().bytes, 1'000'000U);
  store->put(make_entry("k"));
  EXPECT_LT(store->stats().bytes, small + 200);
  EXPECT_TRUE(store->erase("n", "k", clock_->now()));
  EXPECT_EQ(store->stats(), (memory_store::numbers{}));
}

TEST_F(MemoryStore, AScanDoesNotDriveOutWhatIsAskedForAgain) {
  for (const std::size_t shards : {1UL, 16UL}) {
    const auto store = make({.max_entries = 1000, .shards = shards});
    for (int i = 0; i < 500; ++i) store->put(make_entry("hot" + std::to_string(i)));
    for (int i = 0; i < 500; ++i) (void)store->find("n", "hot" + std::to_string(i));
    for (int i = 0; i < 20'000; ++i) store->put(make_entry("scanned" + std::to_string(i)));
    int remaining = 0;
    for (int i = 0; i < 500; ++i) remaining += store->find("n", "hot" + std::to_string(i)) ? 1 : 0;
    EXPECT_EQ(remaining, 500) << "LRU would have none of them";
    EXPECT_EQ(store->stats().entries, 1000U);
  }
}

TEST_F(MemoryStore, WhoComesBackSoonIsTakenForGood) {
  const auto store = make({.max_entries = 100, .shards = 1});
  for (int i = 0; i < 101; ++i) store->put(make_entry(std::to_string(i)));
  ASSERT_EQ(store->find("n", "0"), std::nullopt) << "the first newcomer left";
  store->put(make_entry("0"));
  for (int i = 0; i < 85; ++i) store->put(make_entry("later" + std::to_string(i)));
  EXPECT_NE(store->find("n", "0"), std::nullopt)
      << "it left and came back: newcomers leave before it";
}

TEST_F(MemoryStore, WhatExpiredLeavesFirst) {
  const auto store = make({.max_entries = 100, .shards = 1});
  for (int i = 0; i < 50; ++i) {
    auto e = make_entry("short" + std::to_string(i));
    e.expire_on = clock_->now() + 10s;
    store->put(e);
    (void)store->find("n", e.key);
  }
  for (int i = 0; i < 50; ++i) store->put(make_entry("long" + std::to_string(i)));
  clock_->advance(1min);
  for (int i = 0; i < 50; ++i) store->put(make_entry("new" + std::to_string(i)));
  EXPECT_EQ(store->stats().expired, 50U);
  EXPECT_EQ(store->stats().evicted, 0U);
  for (int i = 0; i < 50; ++i)
    EXPECT_NE(store->find("n", "long" + std::to_string(i)), std::nullopt);
}

TEST_F(MemoryStore, NeverAliases) {
  const auto store = make();
  auto original = make_entry("k", "original");
  store->put(original);
  original.payload = "changed by the writer";
  auto first = store->find("n", "k");
  ASSERT_TRUE(first && first->payload);
  first->payload->replace(0, 3, "bad");
  auto page = store->find_all("n", 10);
  page.entries.at(0).payload->clear();
  EXPECT_EQ(store->find("n", "k").value_or(entry{}).payload, "original");
}

TEST_F(MemoryStore, ATombstoneHoldsWhileItIsThereAndNoLonger) {
  const auto store = make({.max_entries = 10, .shards = 1});
  auto gone = make_entry("k", "", 1s);
  gone.payload.reset();
  gone.payload_class.clear();
  store->put(gone);
  store->put(make_entry("k", "late", 2s));
  const auto held = store->find("n", "k");
  ASSERT_TRUE(held && held->tombstone());
  for (int i = 0; i < 100; ++i) {
    store->put(make_entry(std::to_string(i)));
    (void)store->find("n", std::to_string(i));
  }
  ASSERT_EQ(store->find("n", "k"), std::nullopt) << "memory is bounded";
  store->put(make_entry("k", "late", 2s));
  EXPECT_EQ(store->find("n", "k").value_or(entry{}).payload, "late")
      << "nothing is left that could refuse it; the documentation says so";
}

TEST_F(MemoryStore, KeepsRealmsAndNamesApart) {
  const auto store = make({.shards = 4});
  std::vector<entry> all;
  for (const char* realm : {"", "acme", "globex"}) {
    for (const char* name : {"a", "b"}) {
      for (int i = 0; i < 20; ++i) {
        auto e = make_entry(std::to_string(i), std::string(realm) + "/" + name);
        e.name = name;
        e.realm = realm;
        all.push_back(e);
      }
    }
  }
  store->put(all);
  for (const entry& each : all) EXPECT_EQ(store->find(place(each), each.key), each);
  EXPECT_EQ(store->count({"a", "acme"}), 20U);
  EXPECT_EQ(store->count({"a", "nobody"}), 0U);
  EXPECT_EQ(store->find({"c", "acme"}, "1"), std::nullopt);
  const auto page = store->find_all({"b", "globex"}, 100);
  EXPECT_EQ(page.entries.size(), 20U);
  EXPECT_TRUE(std::ranges::all_of(
      page.entries, [](const entry& e) { return e.realm == "globex" && e.name == "b"; }));
}

TEST_F(MemoryStore, PagesWhileOthersComeAndGo) {
  const auto store = make({.shards = 8});
  for (int i = 1000; i < 2000; ++i) store->put(make_entry(std::to_string(i)));
  std::vector<std::string> seen;
  std::string after;
  for (int step = 0;; ++step) {
    const auto page = store->find_all("n", 30, after);
    for (const entry& each : page.entries) seen.push_back(each.key);
    if (!page.next) break;
    after = *page.next;
    // Behind us and before us: neither is repeated, what stays is seen.
    store->put(make_entry("0" + std::to_string(step)));
    (void)store->erase("n", seen.front(), clock_->now());
    store->put(make_entry("3" + std::to_string(step)));
  }
  EXPECT_TRUE(std::ranges::is_sorted(seen));
  EXPECT_EQ(std::ranges::count_if(
                seen, [](const std::string& key) { return key.size() == 4 && key[0] == '1'; }),
            1000);
  EXPECT_EQ(std::ranges::adjacent_find(seen), seen.end());
}

TEST_F(MemoryStore, CountsExactly) {
  const auto store = make({.max_entries = 5, .shards = 1});
  for (int i = 0; i < 7; ++i) store->put(make_entry(std::to_string(i)));
  (void)store->find("n", "6");
  (void)store->find("n", "nobody");
  (void)store->find("n", "nobody");
  EXPECT_EQ(store->expire(clock_->now() + 2h, 3), 3U);
  const auto numbers = store->stats();
  EXPECT_EQ(numbers.entries, 2U);
  EXPECT_EQ(numbers.hits, 1U);
  EXPECT_EQ(numbers.misses, 2U);
  EXPECT_EQ(numbers.evicted, 2U);
  EXPECT_EQ(numbers.expired, 3U);
  EXPECT_FALSE(store->waits());
}

TEST_F(MemoryStore, RefusesOptionsThatCannotBeMeant) {
  EXPECT_EQ(refusal({.max_entries = 0}), errc::invalid_argument);
  EXPECT_EQ(refusal({.max_bytes = 0}), errc::invalid_argument);
  EXPECT_EQ(refusal({.shards = 3}), errc::invalid_argument);
  EXPECT_EQ(refusal({.shards = 2048}), errc::invalid_argument);
  EXPECT_EQ(refusal({.max_skew = -1us}), errc::invalid_argument);
}

TEST_F(MemoryStore, ManyThreadsStayWithinTheBoundsAndNeverGoBack) {
  constexpr int threads = 4;
  constexpr int rounds = 3000;
  constexpr std::uint64_t bound = 200;
  const auto store = make({.max_entries = bound, .max_bytes = 200'000, .shards = 4});
  std::atomic<int> wrong{0};
  {
    std::vector<std::jthread> running;
    for (int t = 0; t < threads; ++t) {
      running.emplace_back([&, t] {
        for (int i = 0; i < rounds; ++i) {
          // Its own keys, each newer than the one before; found later, it is that one or has left.
          const std::string key = std::to_string(t) + "/" + std::to_string(i % 100);
          const auto e = make_entry(key, std::string(static_cast<std::size_t>(i % 7) * 100, 'x'),
                                    1h - 1us * i);
          store->put(e);
          const auto result = store->find("n", key);
          if (result && *result != e) ++wrong;
          if (i % 50 == 0) (void)store->find_all("n", 20, std::to_string(t));
          if (i % 70 == 0) (void)store->expire(clock_->now() + 30min, 5);
          if (i % 90 == 0) (void)store->erase("n", key, e.as_of);
          if (store->stats().entries > bound + threads) ++wrong;
        }
      });
    }
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(store->stats().entries, bound);
  EXPECT_LE(store->stats().bytes, 200'000U);
  EXPECT_EQ(store->count("n"), store->stats().entries);
}

}  // namespace
}  // namespace holdfast::test
