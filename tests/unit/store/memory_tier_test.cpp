// Overlapping operations on the memory in front of a durable store, step by step.

#include "store/tiered/memory_tier.hpp"

#include "support/virtual_clock.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

class MemoryTier : public ::testing::Test {
 protected:
  [[nodiscard]] entry make_entry(std::string payload, std::chrono::microseconds age = {}) const {
    return {.name = "n",
            .key = "k",
            .as_of = clock_->now() - age,
            .expire_on = clock_->now() + 1h,
            .payload = std::move(payload),
            .payload_class = "test.payload"};
  }
  [[nodiscard]] std::string cached_payload() {
    const auto cached = tier_.find(location_, "k");
    return cached ? cached->value.payload.value_or("(tombstone)") : "(none)";
  }
  [[nodiscard]] auto begin_read() { return tier_.begin_read(location_, "k"); }
  bool end_read(const detail::store::memory_tier::pending_read& read,
                const std::optional<entry>& answer) {
    return tier_.end_read(read, location_, "k", answer);
  }

  const place location_{"n"};
  std::shared_ptr<virtual_clock> clock_ = std::make_shared<virtual_clock>();
  detail::store::memory_tier tier_{{}, 10s, clock_};
};

TEST_F(MemoryTier, AReadThatMayNotCacheKeepsOverlappingReadsFromCachingAnOlderAnswer) {
  const auto first = begin_read();
  EXPECT_TRUE(end_read(begin_read(), make_entry("v1", 1s)));
  const auto second = begin_read();
  const auto answer_of_second = make_entry("v1", 1s);
  EXPECT_FALSE(end_read(first, make_entry("v2"))) << "another read ended since it began";
  EXPECT_EQ(cached_payload(), "(none)") << "the caller of the first read has seen v2";
  EXPECT_FALSE(end_read(second, answer_of_second));
  EXPECT_EQ(cached_payload(), "(none)") << "v1 is older than what was seen";
}

TEST_F(MemoryTier, AReadThatFoundNothingKeepsOverlappingReadsFromCachingWhatWasErased) {
  const auto first = begin_read();
  EXPECT_TRUE(end_read(begin_read(), make_entry("v1", 1s)));
  const auto second = begin_read();
  EXPECT_FALSE(end_read(first, std::nullopt)) << "another process has erased v1";
  EXPECT_FALSE(end_read(second, make_entry("v1", 1s)));
}

TEST_F(MemoryTier, APutDoesNotCacheWhatIsOlderThanAnAnswerThatWasReadMeanwhile) {
  const entry put_entry = make_entry("v1", 1s);
  detail::store::memory_tier::pending_put put(tier_, {&put_entry, 1});
  EXPECT_FALSE(end_read(begin_read(), make_entry("v2"))) << "a put is in progress";
  put.commit();
  EXPECT_EQ(cached_payload(), "(none)") << "v1 is older than what was seen";
}

TEST_F(MemoryTier, APutCachesItsEntryAlthoughAnOlderVersionWasReadMeanwhile) {
  const entry put_entry = make_entry("v2");
  detail::store::memory_tier::pending_put put(tier_, {&put_entry, 1});
  EXPECT_FALSE(end_read(begin_read(), make_entry("v1", 1s)));
  put.commit();
  EXPECT_EQ(cached_payload(), "v2");
}

}  // namespace
}  // namespace holdfast::test
