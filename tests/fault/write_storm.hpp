#pragma once

/// \file
/// Writers that keep writing whatever happens, and a ledger of what they were told.

#include <holdfast/store.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <random>
#include <stop_token>
#include <string>
#include <vector>

namespace holdfast::test {

inline entry make_entry(const std::string& key, timestamp as_of, const std::string& payload) {
  return {.name = "n",
          .key = key,
          .as_of = as_of,
          .expire_on = as_of + std::chrono::hours(1),
          .payload = payload,
          .payload_class = "c"};
}

/// What writers were told is durable: the newest version of each key.
class acknowledged {
 public:
  void note(const std::string& key, timestamp as_of) {
    const std::scoped_lock lock(mutex_);
    auto& newest = versions_[key];
    newest = std::max(newest, as_of);
    ++count_;
  }
  [[nodiscard]] std::size_t count() const {
    const std::scoped_lock lock(mutex_);
    return count_;
  }
  /// Every key has at least the version that was acknowledged, and the payload of the version it
  /// has.
  void check(store& in) const {
    const std::scoped_lock lock(mutex_);
    for (const auto& [key, as_of] : versions_) {
      const auto found = in.find("n", key);
      ASSERT_TRUE(found) << key << " is lost";
      EXPECT_GE(found->as_of, as_of) << key;
      EXPECT_EQ(*found->payload,
                key + "@" + std::to_string(found->as_of.time_since_epoch().count()));
    }
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, timestamp> versions_;
  std::size_t count_ = 0;
};

/// Writes a few keys over and over until told to stop; failures are expected, lies are not.
inline void write_storm(store& to, acknowledged& ledger, std::stop_token stop, unsigned seed) {
  std::mt19937 random(seed);
  while (!stop.stop_requested()) {
    std::vector<entry> batch;
    for (int i = 0; i < 5; ++i) {
      const auto key = "k" + std::to_string(random() % 40);
      const auto as_of = system_clock()->now();
      batch.push_back(
          make_entry(key, as_of, key + "@" + std::to_string(as_of.time_since_epoch().count())));
    }
    try {
      to.put(batch);
      for (const auto& each : batch) ledger.note(each.key, each.as_of);
    } catch (const error& e) {
      EXPECT_TRUE(e.transient()) << e.what();
    }
  }
}

}  // namespace holdfast::test
