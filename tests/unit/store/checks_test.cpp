// Rules that hold for entries in every store.

#include "store/checks.hpp"

#include <holdfast/store/memory.hpp>

#include "failover/engine_core.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using detail::store::skew_horizon;

TEST(SkewHorizon, IsNowPlusTheSkewWithinTheRangeOfATimestamp) {
  EXPECT_EQ(skew_horizon(timestamp(0s), 5min), timestamp(5min));
  EXPECT_EQ(skew_horizon(timestamp(-10min), 5min), timestamp(-5min)) << "before 1970";
  EXPECT_EQ(skew_horizon(timestamp::min(), 5min), timestamp::min() + 5min);
  EXPECT_EQ(skew_horizon(timestamp::max(), 5min), timestamp::max());
  EXPECT_EQ(skew_horizon(timestamp(1us), std::chrono::microseconds::max()), timestamp::max());
  EXPECT_EQ(skew_horizon(timestamp(0us), std::chrono::microseconds::max()), timestamp::max());
}

TEST(SkewHorizon, IsTheSameForAnEngine) {
  const detail::failover::engine_core engine(make_memory_store({}),
                                             {.storage = {.max_skew = 5min}});
  EXPECT_EQ(engine.horizon(timestamp(-10min)), timestamp(-5min));
  EXPECT_EQ(engine.horizon(timestamp::max()), timestamp::max());
}

}  // namespace
}  // namespace holdfast::test
