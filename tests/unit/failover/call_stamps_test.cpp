// The versions of answers when the clock goes on, stands still and is set back.

#include "failover/call_stamps.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using detail::failover::call_stamps;

constexpr timestamp noon = timestamp(std::chrono::hours(12));

TEST(CallStamps, DoNotDecreaseUnlessTheClockIsSetBackByMoreThanTheSkew) {
  call_stamps stamps(1s, 0us);
  EXPECT_EQ(stamps.next(noon).time, noon);
  EXPECT_EQ(stamps.next(noon + 1us).time, noon + 1us);
  EXPECT_EQ(stamps.next(noon).time, noon + 1us);
  EXPECT_EQ(stamps.next(noon - 900ms).time, noon + 1us);
  const auto followed = stamps.next(noon - 2s);
  EXPECT_EQ(followed.time, noon - 2s);
  EXPECT_TRUE(followed.set_back);
  EXPECT_FALSE(stamps.next(noon - 2s).set_back);
}

TEST(CallStamps, SmallStepsAreNotShared) {
  call_stamps stamps(1s, 64us);
  EXPECT_EQ(stamps.next(noon).time, noon);
  EXPECT_EQ(stamps.next(noon + 63us).time, noon + 63us);
  EXPECT_EQ(stamps.next(noon + 1us).time, noon + 1us) << "less than 64 us older";
  EXPECT_EQ(stamps.next(noon - 1us).time, noon);
  EXPECT_EQ(stamps.next(noon + 64us).time, noon + 64us);
  EXPECT_EQ(stamps.next(noon).time, noon + 64us) << "this one was shared";
}

}  // namespace
}  // namespace holdfast::test
