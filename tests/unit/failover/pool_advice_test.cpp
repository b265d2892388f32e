#include "failover/config/plan.hpp"

#include <gtest/gtest.h>

#include <string>

namespace {

namespace config = holdfast::detail::failover::config;
using namespace std::chrono_literals;

TEST(PoolAdvice, SaysNothingWhenAllIsWell) {
  EXPECT_TRUE(config::advise({}, {}).empty()) << "no scatter, nothing to say";
  EXPECT_TRUE(config::advise({}, {.deadline = 8s, .widest = 19}).empty())
      << "the defaults just hold";
}

TEST(PoolAdvice, WarnsWhenACallerWaitsLongerThanItsScatterLives) {
  const auto warnings = config::advise({.acquire_timeout = 8s}, {.deadline = 7999ms, .widest = 1});
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings[0].find("acquire_timeout (8000 ms)"), std::string::npos) << warnings[0];
  EXPECT_NE(warnings[0].find("7999 ms"), std::string::npos) << warnings[0];
}

TEST(PoolAdvice, WarnsWhenAScatterIsWiderThanThePool) {
  const auto warnings = config::advise({.maximum = 20}, {.deadline = 1h, .widest = 20});
  ASSERT_EQ(warnings.size(), 1U) << "one of the twenty is the writer's";
  EXPECT_NE(warnings[0].find("raise pool.maximum to 21"), std::string::npos) << warnings[0];
  EXPECT_TRUE(config::advise({.maximum = 21}, {.deadline = 1h, .widest = 20}).empty());
}

TEST(PoolAdvice, SaysBoth) {
  EXPECT_EQ(config::advise({.maximum = 2}, {.deadline = 300ms, .widest = 6}).size(), 2U);
}

}  // namespace
