#include "base/duration_limit.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace holdfast::test {
namespace {

using detail::limit_duration;
using detail::longest_duration;
using detail::positive_duration;
using namespace std::chrono_literals;

TEST(DurationLimit, ShortensDurationsThatWouldOverflow) {
  EXPECT_EQ(limit_duration(5ms), 5ms);
  EXPECT_EQ(limit_duration(std::chrono::milliseconds::max()), longest_duration);
  EXPECT_EQ(limit_duration(std::chrono::microseconds::max()), longest_duration);
  EXPECT_EQ(limit_duration(5ms, 3ms), 3ms);
  EXPECT_EQ(limit_duration(-5ms), -5ms);
  const auto now = std::chrono::steady_clock::now();
  EXPECT_GT(now + limit_duration(std::chrono::milliseconds::max()), now);
}

TEST(DurationLimit, RequiresAPositiveDurationWhereThatIsNeeded) {
  EXPECT_EQ(positive_duration("timeout", 5ms), 5ms);
  EXPECT_EQ(positive_duration("timeout", 5h, 1h), 1h);
  try {
    (void)positive_duration("timeout", 0ms);
    FAIL();
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::invalid_argument);
    EXPECT_EQ(e.message(), "timeout must be positive");
  }
  EXPECT_THROW((void)positive_duration("timeout", -1ms), error);
}

}  // namespace
}  // namespace holdfast::test
