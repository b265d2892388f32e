// The sizes of adaptive blocks, on stores from fast to slow, in virtual time.

#include "sequence/block_sizing.hpp"

#include <holdfast/sequence.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using detail::sequence::block_sizing;
using seconds = std::chrono::duration<double>;

constexpr auto many = std::numeric_limits<std::uint64_t>::max();

/// A caller that draws `rate` ids a second whenever there are some, and a store that needs
/// `latency` for a block.
class simulated_sequence {
 public:
  simulated_sequence(const adaptive_blocks& policy, double rate, seconds latency)
      : sizing_(policy), rate_(rate), latency_(latency) {}

  /// Draws until the next block is requested, and waits for it.
  void refill() {
    draw(static_cast<double>(lease_ - std::min(lease_, margin_)));
    const auto size = static_cast<std::uint64_t>(
        sizing_.next_size(at(now_), drawn_, at(starved_) - at({}), many));
    const seconds arrival = now_ + latency_;
    draw(rate_ * latency_.count());
    at_risk_ = std::max(at_risk_, lease_ + size);
    if (now_ < arrival) {
      starved_ += arrival - now_;
      now_ = arrival;
    }
    lease_ += size;
    sizing_.record_latency(std::chrono::duration_cast<std::chrono::microseconds>(latency_));
    margin_ = sizing_.margin(lease_);
  }

  void set_latency(seconds latency) { latency_ = latency; }

  [[nodiscard]] std::uint64_t drawn() const { return drawn_; }
  [[nodiscard]] seconds now() const { return now_; }
  [[nodiscard]] seconds starved() const { return starved_; }
  /// The most ids that a crash could have cost.
  [[nodiscard]] std::uint64_t at_risk() const { return at_risk_; }
  [[nodiscard]] std::int64_t size() const { return sizing_.size(); }

 private:
  static block_sizing::time_point at(seconds time) {
    return block_sizing::time_point(
        std::chrono::duration_cast<std::chrono::steady_clock::duration>(time + 1s));
  }
  void draw(double wanted) {
    const auto count = std::min(lease_, static_cast<std::uint64_t>(wanted));
    lease_ -= count;
    drawn_ += count;
    now_ += seconds(static_cast<double>(count) / rate_);
  }

  block_sizing sizing_;
  const double rate_;
  seconds latency_;
  seconds now_{0};
  seconds starved_{0};
  std::uint64_t lease_ = 0;
  std::uint64_t margin_ = 0;
  std::uint64_t drawn_ = 0;
  std::uint64_t at_risk_ = 0;
};

TEST(SequenceBlockSizing, BlocksGrowOnEveryStore) {
  for (const auto target : {100ms, 1000ms}) {
    for (const auto latency : {1ms, 50ms, 120ms, 500ms, 1050ms}) {
      simulated_sequence ids({.target = target}, 20e6, latency);
      for (int i = 0; i < 10; ++i) ids.refill();
      const auto drawn_before = ids.drawn();
      const auto start = ids.now();
      for (int i = 0; i < 10; ++i) ids.refill();
      const double rate =
          static_cast<double>(ids.drawn() - drawn_before) / (ids.now() - start).count();
      EXPECT_GE(rate, 100'000) << latency.count() << " ms, target " << target.count() << " ms";
    }
  }
}

TEST(SequenceBlockSizing, AModerateRateIsServedWithoutWaiting) {
  for (const auto latency : {1ms, 50ms, 120ms, 500ms, 1050ms}) {
    simulated_sequence ids({}, 10'000, latency);
    for (int i = 0; i < 20; ++i) ids.refill();
    const auto starved_before = ids.starved();
    for (int i = 0; i < 20; ++i) ids.refill();
    EXPECT_EQ(ids.starved(), starved_before) << latency.count() << " ms";
  }
}

TEST(SequenceBlockSizing, AProcessHoldsAtMostTwoBlocks) {
  for (const double rate : {1e3, 1e5, 1e6, 20e6}) {
    for (const auto latency : {1ms, 120ms, 1050ms}) {
      const adaptive_blocks policy{.largest = 1000};
      simulated_sequence ids(policy, rate, latency);
      for (int i = 0; i < 50; ++i) ids.refill();
      // The store is fast again, and the margin is still that for a slow one.
      ids.set_latency(100us);
      for (int i = 0; i < 50; ++i) ids.refill();
      EXPECT_LE(ids.at_risk(), 2U * static_cast<std::uint64_t>(policy.largest))
          << rate << " a second, " << latency.count() << " ms";
    }
  }
}

TEST(SequenceBlockSizing, FewIdsNeedSmallBlocks) {
  simulated_sequence ids({}, 5, 50ms);
  for (int i = 0; i < 50; ++i) ids.refill();
  EXPECT_EQ(ids.size(), adaptive_blocks{}.smallest);
}

}  // namespace
}  // namespace holdfast::test
