#include "base/backoff.hpp"

#include <gtest/gtest.h>

namespace holdfast::test {
namespace {

using detail::doubled_pause;
using detail::random_duration;
using detail::thread_random;
using detail::with_jitter;
using namespace std::chrono_literals;
using std::chrono::microseconds;

TEST(Backoff, DoublesUpToTheLimit) {
  EXPECT_EQ(doubled_pause(10ms, 0, 250ms), 10ms);
  EXPECT_EQ(doubled_pause(10ms, 1, 250ms), 20ms);
  EXPECT_EQ(doubled_pause(10ms, 4, 250ms), 160ms);
  EXPECT_EQ(doubled_pause(10ms, 5, 250ms), 250ms);
  EXPECT_EQ(doubled_pause(500ms, 0, 250ms), 250ms);
  EXPECT_EQ(doubled_pause(0ms, 1'000'000'000, 250ms), 0ms);
}

TEST(Backoff, DoesNotOverflow) {
  EXPECT_EQ(doubled_pause(1us, 1'000'000'000, microseconds::max()), microseconds::max());
}

TEST(Backoff, JitterStaysBetweenHalfOfThePauseAndAllOfIt) {
  std::minstd_rand random(1);
  auto shortest = microseconds::max();
  auto longest = microseconds::min();
  for (int i = 0; i < 1000; ++i) {
    const auto pause = with_jitter(microseconds(1000), random);
    shortest = std::min(shortest, pause);
    longest = std::max(longest, pause);
  }
  EXPECT_GE(shortest, 500us);
  EXPECT_LT(shortest, 520us);
  EXPECT_GT(longest, 980us);
  EXPECT_LE(longest, 1000us);
}

TEST(Backoff, AnEmptyRangeHasOneDuration) {
  EXPECT_EQ(random_duration(5ms, 5ms, thread_random()), 5ms);
  EXPECT_EQ(random_duration(5ms, 3ms, thread_random()), 5ms);
  EXPECT_EQ(with_jitter(0ms, thread_random()), 0ms);
}

}  // namespace
}  // namespace holdfast::test
