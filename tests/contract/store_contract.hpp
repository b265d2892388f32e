#pragma once

/// \file
/// What every store does, as tests. Write a fixture with `std::shared_ptr<holdfast::store>
/// make(std::shared_ptr<const holdfast::clock>)` that gives an empty store, and instantiate the
/// suite on it (`static constexpr std::size_t largest_payload` where a limit is documented):
///
///     INSTANTIATE_TYPED_TEST_SUITE_P(mine, StoreContract, my_fixture);

#include <holdfast/store.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::test {

/// A clock that stands still until it is moved.
class hand_clock final : public clock {
 public:
  [[nodiscard]] timestamp now() const noexcept override {
    return timestamp(std::chrono::microseconds(wall_.load()));
  }
  [[nodiscard]] std::chrono::steady_clock::time_point steady() const noexcept override {
    return std::chrono::steady_clock::time_point(std::chrono::microseconds(wall_.load()));
  }
  void move(std::chrono::microseconds by) { wall_ += by.count(); }

 private:
  std::atomic<std::int64_t> wall_{1'700'000'000'000'000};
};

template <class Fixture>
class StoreContract : public ::testing::Test {
 protected:
  void SetUp() override { store_ = fixture_.make(clock_); }

  /// An entry of the name `n`, `ago` old, that expires in an hour.
  [[nodiscard]] entry make(std::string key, std::chrono::microseconds ago = {},
                           std::string payload = "{}") const {
    return {.name = "n",
            .key = std::move(key),
            .as_of = clock_->now() - ago,
            .expire_on = clock_->now() + std::chrono::hours(1),
            .payload = std::move(payload),
            .payload_class = "test.payload"};
  }
  void put(const entry& e) { store_->put({&e, 1}); }
  [[nodiscard]] std::string payload(std::string_view key) {
    const auto result = store_->find("n", key);
    return !result ? "(none)" : result->tombstone() ? "(tombstone)" : *result->payload;
  }

  std::shared_ptr<hand_clock> clock_ = std::make_shared<hand_clock>();
  Fixture fixture_;
  std::shared_ptr<store> store_;
};

TYPED_TEST_SUITE_P(StoreContract);

TYPED_TEST_P(StoreContract, KeepsWhatItIsGiven) {
  auto e = this->make("k");
  e.payload = "{\"emoji\":\"\U0001F600\",\"quote\":\"'\\\\\"}";
  e.as_of += std::chrono::microseconds(123'457);
  this->put(e);
  EXPECT_EQ(this->store_->find("n", "k"), e);
  EXPECT_EQ(this->store_->find("n", "K"), std::nullopt) << "keys compare byte by byte";
  EXPECT_EQ(this->store_->find("n", "k "), std::nullopt) << "trailing spaces count";
  EXPECT_EQ(this->store_->find("N", "k"), std::nullopt);
}

TYPED_TEST_P(StoreContract, TellsEmptyFromNothing) {
  this->put(this->make("empty", {}, ""));
  entry gone = this->make("gone");
  gone.payload.reset();
  gone.payload_class.clear();
  this->put(gone);
  EXPECT_EQ(this->payload("empty"), "");
  EXPECT_EQ(this->payload("gone"), "(tombstone)");
  EXPECT_EQ(this->payload("never"), "(none)");
}

TYPED_TEST_P(StoreContract, NewerWins) {
  using namespace std::chrono_literals;
  this->put(this->make("k", 2s, "middle"));
  this->put(this->make("k", 3s, "old"));
  EXPECT_EQ(this->payload("k"), "middle") << "an older write never replaces a newer one";
  this->put(this->make("k", 1s, "new"));
  EXPECT_EQ(this->payload("k"), "new");
  this->put(this->make("k", 1s, "same moment, later"));
  EXPECT_EQ(this->payload("k"), "same moment, later")
      << "of two with the same as_of the later arrival stays";
  this->put(this->make("k", 1s - 1us, "a microsecond newer"));
  this->put(this->make("k", 1s, "a microsecond older"));
  EXPECT_EQ(this->payload("k"), "a microsecond newer");
}

TYPED_TEST_P(StoreContract, ATombstoneHoldsItsPlace) {
  using namespace std::chrono_literals;
  this->put(this->make("k", 3s, "value"));
  entry gone = this->make("k", 2s);
  gone.payload.reset();
  gone.payload_class.clear();
  this->put(gone);
  this->put(this->make("k", 3s, "a late write of what is gone"));
  EXPECT_EQ(this->payload("k"), "(tombstone)");
  this->put(this->make("k", 1s, "back"));
  EXPECT_EQ(this->payload("k"), "back");
}

TYPED_TEST_P(StoreContract, AFutureStampDoesNotFreezeItsKey) {
  using namespace std::chrono_literals;
  entry from_the_future = this->make("k", -10min, "future");
  from_the_future.expire_on = this->clock_->now() + 24h;
  this->put(from_the_future);
  EXPECT_EQ(this->payload("k"), "future");
  this->put(this->make("k", 0s, "now"));
  EXPECT_EQ(this->payload("k"), "now") << "beyond max_skew (5 minutes) the stamp is not believed";
  entry twin = this->make("twin", -10min, "future");
  twin.expire_on = this->clock_->now() + 24h;
  const std::vector<entry> twins{twin, this->make("twin", 0s, "now")};
  this->store_->put(twins);
  EXPECT_EQ(this->payload("twin"), "now") << "in one put as in two";
  this->put(this->make("k", -4min, "slightly ahead"));
  this->put(this->make("k", 0s, "now again"));
  EXPECT_EQ(this->payload("k"), "slightly ahead") << "within max_skew it is";
}

TYPED_TEST_P(StoreContract, ManyAtOnce) {
  using namespace std::chrono_literals;
  std::vector<entry> entries;
  for (int i = 0; i < 1500; ++i)
    entries.push_back(this->make("k" + std::to_string(i), 1s, std::to_string(i)));
  entries.push_back(this->make("k7", 2s, "older duplicate"));
  entries.push_back(this->make("k8", 0s, "newer duplicate"));
  this->store_->put(entries);
  EXPECT_EQ(this->store_->count("n"), 1500U);
  EXPECT_EQ(this->payload("k7"), "7");
  EXPECT_EQ(this->payload("k8"), "newer duplicate");
  EXPECT_EQ(this->payload("k1499"), "1499");
  this->store_->put(std::vector<entry>{});
  EXPECT_EQ(this->store_->count("other"), 0U);
}

TYPED_TEST_P(StoreContract, FindsManyAtOnce) {
  using many = std::vector<std::optional<entry>>;
  EXPECT_EQ(this->store_->find_many("n", std::vector<std::string>{}), many{});
  EXPECT_EQ(this->store_->find_many("n", std::vector<std::string>{"never"}), many(1));
  std::vector<entry> entries;
  std::vector<std::string> keys;
  for (int i = 0; i < 600; ++i) {
    entries.push_back(this->make("k" + std::to_string(i), {}, std::to_string(i)));
    keys.push_back("k" + std::to_string(599 - i));
    if (i % 100 == 0) keys.push_back("missing " + std::to_string(i));
  }
  entries[7].payload.reset();
  entries[7].payload_class.clear();
  this->store_->put(entries);
  entry other = this->make("missing 100");
  other.name = "m";
  this->put(other);
  keys.insert(keys.end(), {"k5", "K5", "k5 ", "k5"});
  const auto found = this->store_->find_many("n", keys);
  ASSERT_EQ(found.size(), keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i)
    EXPECT_EQ(found[i], this->store_->find("n", keys[i])) << keys[i];
  EXPECT_EQ(found[0], entries[599]) << "in the order of the keys";
  EXPECT_EQ(found[1], std::nullopt);
  EXPECT_TRUE(found[keys.size() - 4 - 8].value().tombstone()) << keys[keys.size() - 4 - 8];
  EXPECT_EQ(found[keys.size() - 4], entries[5]);
  EXPECT_EQ(found[keys.size() - 3], std::nullopt) << "keys compare byte by byte";
  EXPECT_EQ(found[keys.size() - 2], std::nullopt) << "trailing spaces count";
  EXPECT_EQ(found[keys.size() - 1], entries[5]) << "the same key twice";
  EXPECT_THROW((void)this->store_->find_many("n", std::vector<std::string>{"k1", ""}), error);
}

TYPED_TEST_P(StoreContract, FindsManyWithLargePayloads) {
  std::vector<std::string> keys;
  for (int i = 0; i < 40; ++i) {
    keys.push_back("large " + std::to_string(i));
    this->put(this->make(keys.back(), {}, std::string(50'000, static_cast<char>('a' + i % 26))));
  }
  const auto found = this->store_->find_many("n", keys);
  for (std::size_t i = 0; i < keys.size(); ++i)
    EXPECT_EQ(found.at(i).value().payload->at(1), static_cast<char>('a' + i % 26));
}

TYPED_TEST_P(StoreContract, PagesInByteOrder) {
  for (const char* key : {"b", "a", "B", "é", "a b", "a\u00ad", "~"}) this->put(this->make(key));
  entry other = this->make("zzz");
  other.name = "m";
  this->put(other);
  std::vector<std::string> keys;
  std::string after;
  for (int pages = 0; pages < 10; ++pages) {
    const auto page = this->store_->find_all("n", 2, after);
    EXPECT_LE(page.entries.size(), 2U);
    for (const auto& each : page.entries) keys.push_back(each.key);
    if (!page.next) break;
    after = *page.next;
  }
  EXPECT_EQ(keys, (std::vector<std::string>{"B", "a", "a b", "a\u00ad", "b", "~", "é"}));
  EXPECT_EQ(this->store_->find_all("n", 7).next, std::nullopt) << "exactly full is the last page";
  EXPECT_TRUE(this->store_->find_all("nobody", 10).entries.empty());
}

TYPED_TEST_P(StoreContract, ErasesOneVersionAndNoOther) {
  using namespace std::chrono_literals;
  const auto old = this->make("k", 2s, "old");
  const auto fresh = this->make("k", 1s, "fresh");
  this->put(old);
  this->put(fresh);
  EXPECT_FALSE(this->store_->erase("n", "k", old.as_of))
      << "a fresh row is not taken for the expired one";
  EXPECT_EQ(this->payload("k"), "fresh");
  EXPECT_TRUE(this->store_->erase("n", "k", fresh.as_of));
  EXPECT_EQ(this->payload("k"), "(none)");
  EXPECT_FALSE(this->store_->erase("n", "k", fresh.as_of));
}

TYPED_TEST_P(StoreContract, ExpiresInBoundedSteps) {
  using namespace std::chrono_literals;
  std::vector<entry> entries;
  for (int i = 0; i < 25; ++i) {
    auto e = this->make("k" + std::to_string(i));
    e.expire_on = this->clock_->now() + 1s * i;
    entries.push_back(e);
  }
  this->store_->put(entries);
  // 0..19 expired before it; the one at 20 s did not: strictly after
  const auto cutoff = this->clock_->now() + 20s;
  EXPECT_EQ(this->store_->expire(cutoff, 15), 15U);
  EXPECT_EQ(this->store_->expire(cutoff, 15), 5U);
  EXPECT_EQ(this->store_->expire(cutoff, 15), 0U);
  EXPECT_EQ(this->store_->count("n"), 5U);
  EXPECT_NE(this->store_->find("n", "k20"), std::nullopt);
}

TYPED_TEST_P(StoreContract, NeverWritesWhatHasExpired) {
  using namespace std::chrono_literals;
  auto e = this->make("k", 1s);
  e.expire_on = this->clock_->now() - 1us;
  this->put(e);
  EXPECT_EQ(this->payload("k"), "(none)");
  e.expire_on = this->clock_->now();
  this->put(e);
  EXPECT_EQ(this->payload("k"), "{}") << "at its very moment it is still good";
}

TYPED_TEST_P(StoreContract, RefusesWhatDoesNotFit) {
  const auto code_of = [this](entry e) {
    try {
      this->put(e);
    } catch (const error& refused) {
      return refused.code();
    }
    return errc::internal;
  };
  auto e = this->make("k");
  e.name = std::string(51, 'n');
  EXPECT_EQ(code_of(e), errc::too_large);
  EXPECT_EQ(code_of(this->make(std::string(257, 'k'))), errc::too_large);
  EXPECT_EQ(code_of(this->make("")), errc::invalid_argument);
  EXPECT_EQ(code_of(this->make(std::string("a\0b", 3))), errc::invalid_argument);
  EXPECT_EQ(code_of(this->make("\xff")), errc::ill_formed_text);
  auto forgotten = this->make("k");
  forgotten.expire_on = {};
  EXPECT_EQ(code_of(forgotten), errc::invalid_argument) << "an expiry that was never set";
  EXPECT_EQ(this->store_->count("n"), 0U) << "nothing of it was written";
  std::string longest;
  for (int i = 0; i < 256; ++i) longest += "é";
  this->put(this->make(longest));
  EXPECT_NE(this->store_->find("n", longest), std::nullopt) << "lengths are in characters";
}

TYPED_TEST_P(StoreContract, KeepsLargePayloads) {
  this->put(this->make("100k", {}, std::string(100'000, 'x')));
  EXPECT_EQ(this->payload("100k").size(), 100'000U);
  if constexpr (requires { TypeParam::largest_payload; }) {
    const std::string largest(TypeParam::largest_payload, 'z');
    this->put(this->make("largest", {}, largest));
    EXPECT_EQ(this->payload("largest"), largest);
    try {
      this->put(this->make("100k", -std::chrono::seconds(1), largest + "z"));
      ADD_FAILURE() << "it was taken";
    } catch (const error& refused) {
      EXPECT_EQ(refused.code(), errc::too_large) << refused.what();
    }
    EXPECT_EQ(this->payload("100k").size(), 100'000U) << "what was there stays";
    return;
  }
  this->put(this->make("5m", {}, std::string(5'000'000, 'y')));
  EXPECT_EQ(this->payload("5m").size(), 5'000'000U);
}

TYPED_TEST_P(StoreContract, KeepsMomentsExactly) {
  using namespace std::chrono;
  auto e = this->make("k");
  e.expire_on = timestamp(sys_days{9999y / December / 31} + 23h + 59min + 59s + 999'999us);
  this->put(e);
  EXPECT_EQ(this->store_->find("n", "k")->expire_on, e.expire_on);
  auto unlimited = this->make("unlimited");
  unlimited.expire_on = timestamp::max();
  this->put(unlimited);
  EXPECT_GE(this->store_->find("n", "unlimited")->expire_on, e.expire_on)
      << "at least as far as every database can count";
}

TYPED_TEST_P(StoreContract, ManyThreadsOnTheSameKeysLeaveTheNewest) {
  using namespace std::chrono_literals;
  constexpr int writers = 4;
  constexpr int rounds = 30;
  constexpr int keys = 5;
  std::atomic<int> failures{0};
  {
    std::vector<std::jthread> threads;
    for (int w = 0; w < writers; ++w) {
      threads.emplace_back([this, w, &failures] {
        for (int round = 0; round < rounds; ++round) {
          std::vector<entry> batch;
          for (int k = 0; k < keys; ++k) {
            const auto age = 1s - 1us * (round * writers + w);
            batch.push_back(
                this->make("k" + std::to_string(k), age, std::to_string(round * writers + w)));
          }
          try {
            this->store_->put(batch);
            (void)this->store_->find("n", "k0");
          } catch (const std::exception& e) {
            ++failures;
            ADD_FAILURE() << e.what();
          }
        }
      });
    }
    threads.emplace_back([this] {
      for (int i = 0; i < rounds; ++i) (void)this->store_->expire(this->clock_->now(), 100);
    });
  }
  EXPECT_EQ(failures, 0);
  for (int k = 0; k < keys; ++k)
    EXPECT_EQ(this->payload("k" + std::to_string(k)), std::to_string(writers * rounds - 1));
}

TYPED_TEST_P(StoreContract, MemoryGivesWhatFindGives) {
  using namespace std::chrono_literals;
  // A queue drops an entry that expires before it is written.
  bool has_expired = false;
  const auto agrees = [this, &has_expired](std::string_view key, const char* after) {
    const auto remembered = this->store_->find_in_memory("n", key);
    const auto found = this->store_->find("n", key);
    if ((remembered.current || remembered.entry) && (found || !has_expired)) {
      EXPECT_EQ(remembered.entry, found) << key << " after " << after;
    }
    EXPECT_TRUE(remembered.current || this->store_->waits())
        << key << " after " << after << ": memory is all there is";
    const auto again = this->store_->find_in_memory("n", key);
    if (again.entry || (again.current && !has_expired)) {
      EXPECT_EQ(again.entry, found) << key << " after a find";
    }
  };
  agrees("k", "nothing");
  this->put(this->make("k", 3s, "first"));
  agrees("k", "a put");
  agrees("other", "a put");
  this->put(this->make("k", 4s, "older"));
  agrees("k", "an older put");
  this->put(this->make("k", 3s, "same moment, later"));
  agrees("k", "a put of the same moment");
  this->put(this->make("k", 2s, "newer"));
  agrees("k", "a newer put");
  EXPECT_FALSE(this->store_->erase("n", "k", this->clock_->now() - 3s));
  agrees("k", "an erase of another version");
  EXPECT_TRUE(this->store_->erase("n", "k", this->clock_->now() - 2s));
  agrees("k", "an erase");
  entry gone = this->make("k", 1s);
  gone.payload.reset();
  gone.payload_class.clear();
  this->put(gone);
  agrees("k", "a tombstone");
  auto future = this->make("future", -10min, "future");
  future.expire_on = this->clock_->now() + 24h;
  this->put(future);
  agrees("future", "a put from the future");
  this->put(this->make("future", 0s, "now"));
  agrees("future", "a put");
  auto brief = this->make("brief");
  brief.expire_on = this->clock_->now() + 1s;
  this->put(brief);
  this->clock_->move(2s);
  has_expired = true;
  agrees("brief", "its expiry");
  EXPECT_LE(this->store_->expire(this->clock_->now(), 100), 1U);
  agrees("brief", "an expire");
  has_expired = false;
  this->clock_->move(1min);
  agrees("k", "a minute");
  this->put(this->make("k", 0s, "last"));
  agrees("k", "another put");
}

TYPED_TEST_P(StoreContract, MemoryHasNothingUnderAnInvalidName) {
  for (const auto& [name, key] : {std::pair<std::string, std::string>{std::string(51, 'n'), "k"},
                                  {"n", std::string(257, 'k')},
                                  {"n", ""},
                                  {"", "k"}}) {
    try {
      EXPECT_EQ(this->store_->find_in_memory(name, key).entry, std::nullopt);
    } catch (const error&) {  // as find
      continue;
    }
  }
}

TYPED_TEST_P(StoreContract, MemoryNeverGoesBackWhileOthersWrite) {
  using namespace std::chrono_literals;
  constexpr int rounds = 60;
  std::atomic<std::int64_t> acknowledged{0};
  const auto check = [this, &acknowledged](timestamp& seen, bool from_memory) {
    const timestamp least(std::chrono::microseconds(acknowledged.load()));
    std::optional<entry> found;
    if (from_memory) {
      auto remembered = this->store_->find_in_memory("n", "k");
      if (!remembered.current && !remembered.entry) return;
      EXPECT_TRUE(remembered.entry || least == timestamp()) << "it was put, and not erased";
      found = std::move(remembered.entry);
    } else {
      found = this->store_->find("n", "k");
    }
    if (!found) return;
    EXPECT_GE(found->as_of, least) << "older than what was acknowledged; memory: " << from_memory;
    EXPECT_GE(found->as_of, seen) << "older than what was seen; memory: " << from_memory;
    seen = found->as_of;
  };
  std::atomic<bool> done{false};
  std::vector<std::jthread> readers;
  for (int reader = 0; reader < 2; ++reader) {
    readers.emplace_back([&, reader] {
      timestamp seen{};
      try {
        for (int i = 0; !done; ++i) {
          check(seen, (i + reader) % 8 != 0);
          std::this_thread::yield();
        }
      } catch (const std::exception& e) {
        ADD_FAILURE() << e.what();
      }
    });
  }
  for (int round = 0; round < rounds; ++round) {
    const auto e = this->make("k", 1s - 1us * round, std::to_string(round));
    this->put(e);
    acknowledged = e.as_of.time_since_epoch().count();
    timestamp seen{};
    check(seen, true);
  }
  done = true;
}

TYPED_TEST_P(StoreContract, SaysThatItIsWell) {
  const auto health = this->store_->health();
  EXPECT_TRUE(health.available) << health.problem;
  EXPECT_TRUE(health.healthy()) << health.problem;
}

TYPED_TEST_P(StoreContract, CountsByExpiry) {
  using namespace std::chrono_literals;
  const auto now = this->clock_->now();
  for (int i = 0; i < 6; ++i) {
    auto e = this->make("k" + std::to_string(i));
    e.expire_on = now + std::chrono::minutes(10 * (i + 1));
    this->put(e);
  }
  entry gone = this->make("gone");
  gone.payload.reset();
  gone.payload_class.clear();
  this->put(gone);  // expires in an hour, as k5
  auto other = this->make("k0");
  other.name = "other";
  this->put(other);
  const std::vector<timestamp> times{now, now + 10min, now + 10min + 1us, now + 35min, now + 2h};
  const auto profile = this->store_->expiring("n", times);
  EXPECT_EQ(profile.counts, (std::vector<std::uint64_t>{0, 0, 1, 3, 7}))
      << "an entry may be served at the moment of its expiry";
  EXPECT_EQ(profile.entries, 7U);
  EXPECT_FALSE(profile.at_least);
  this->clock_->move(15min);
  EXPECT_EQ(this->store_->expiring("n", {&times[2], 1}).counts, std::vector<std::uint64_t>{1})
      << "what has expired counts until it is removed";
  EXPECT_EQ(this->store_->expiring("never", times).counts, std::vector<std::uint64_t>(5));
  EXPECT_EQ(this->store_->expiring("n", {}).entries, 7U);
  const std::vector<timestamp> many(store::max_expiry_times, now + 2h);
  EXPECT_EQ(this->store_->expiring("n", many).counts, std::vector<std::uint64_t>(many.size(), 7U));
  const std::vector<timestamp> too_many(store::max_expiry_times + 1, now);
  EXPECT_THROW((void)this->store_->expiring("n", too_many), error);
}

REGISTER_TYPED_TEST_SUITE_P(StoreContract, KeepsWhatItIsGiven, TellsEmptyFromNothing, NewerWins,
                            ATombstoneHoldsItsPlace, AFutureStampDoesNotFreezeItsKey, ManyAtOnce,
                            FindsManyAtOnce, FindsManyWithLargePayloads, PagesInByteOrder,
                            ErasesOneVersionAndNoOther, ExpiresInBoundedSteps,
                            NeverWritesWhatHasExpired, RefusesWhatDoesNotFit, KeepsLargePayloads,
                            KeepsMomentsExactly, ManyThreadsOnTheSameKeysLeaveTheNewest,
                            MemoryGivesWhatFindGives, MemoryHasNothingUnderAnInvalidName,
                            MemoryNeverGoesBackWhileOthersWrite, SaysThatItIsWell, CountsByExpiry);

}  // namespace holdfast::test
