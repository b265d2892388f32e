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
#include <memory>
#include <string>
#include <thread>
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

TYPED_TEST_P(StoreContract, SaysThatItIsWell) {
  const auto health = this->store_->health();
  EXPECT_TRUE(health.available) << health.problem;
  EXPECT_EQ(health.problem, "");
}

REGISTER_TYPED_TEST_SUITE_P(StoreContract, KeepsWhatItIsGiven, TellsEmptyFromNothing, NewerWins,
                            ATombstoneHoldsItsPlace, AFutureStampDoesNotFreezeItsKey, ManyAtOnce,
                            PagesInByteOrder, ErasesOneVersionAndNoOther, ExpiresInBoundedSteps,
                            NeverWritesWhatHasExpired, RefusesWhatDoesNotFit, KeepsLargePayloads,
                            KeepsMomentsExactly, ManyThreadsOnTheSameKeysLeaveTheNewest,
                            SaysThatItIsWell);

}  // namespace holdfast::test
