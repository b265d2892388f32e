#include "base/deadline.hpp"

#include <gtest/gtest.h>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using moment = std::chrono::steady_clock::time_point;

TEST(Deadline, AMomentAfterAnotherDoesNotOverflow) {
  const moment start(10s);
  EXPECT_EQ(detail::moment_after(start, 5s), moment(15s));
  EXPECT_EQ(detail::moment_after(start, 0s), start);
  EXPECT_EQ(detail::moment_after(start, -1s), start);
  EXPECT_EQ(detail::moment_after(start, moment::duration::min()), start);
  EXPECT_EQ(detail::moment_after(start, moment::duration::max()), moment::max());
  EXPECT_EQ(detail::moment_after(moment(), moment::duration::max()), moment::max());
  EXPECT_EQ(detail::moment_after(moment::max(), 1s), moment::max());
  EXPECT_EQ(detail::moment_after(moment::min(), 1s), moment::min() + 1s);
}

TEST(Deadline, TheTimeUntilADeadlineDoesNotOverflow) {
  const moment now(10s);
  EXPECT_EQ(detail::time_until(moment(15s), now), 5s);
  EXPECT_EQ(detail::time_until(now, now), 0s);
  EXPECT_EQ(detail::time_until(moment(5s), now), 0s);
  EXPECT_EQ(detail::time_until(moment::min(), now), 0s);
  EXPECT_EQ(detail::time_until(moment::max(), now), moment::duration::max() - 10s);
  EXPECT_EQ(detail::time_until(moment::max(), moment(-10s)), moment::duration::max());
  EXPECT_EQ(detail::time_until(moment::max(), moment::min()), moment::duration::max());
  EXPECT_EQ(detail::time_until(moment(1s), moment(-1s)), 2s);
}

}  // namespace
}  // namespace holdfast::test
