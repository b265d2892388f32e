#include <holdfast/log.hpp>

#include "support/virtual_clock.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace holdfast;
using namespace std::chrono_literals;

struct Logger : ::testing::Test {
  log_sink keep() {
    return [this](const log_record& record) {
      std::string line = std::string(to_string(record.level)) + " " + std::string(record.message);
      for (const auto& [name, value] : record.fields)
        line.append(" ").append(name).append("=").append(value);
      lines.push_back(line);
    };
  }
  std::shared_ptr<test::virtual_clock> clock = std::make_shared<test::virtual_clock>();
  std::vector<std::string> lines{};
};

TEST_F(Logger, HandsRecordsToTheSink) {
  const logger log(keep());
  log.write(log_level::warning, "look", {{.name = "a", .value = "1"}, {.name = "b", .value = "2"}});
  log.write(log_level::info, "fine");
  EXPECT_EQ(lines, (std::vector<std::string>{"warning look a=1 b=2", "info fine"}));
}

TEST_F(Logger, WithoutASinkNothingIsSaid) {
  const logger log;
  EXPECT_FALSE(log.listened());
  log.write(log_level::error, "nobody hears this");
  log.write_limited("x", log_level::error, "nor this");
}

TEST_F(Logger, AThrowingSinkCostsACount) {
  const logger log([](const log_record&) { throw std::runtime_error("disk full"); });
  log.write(log_level::error, "one");
  log.write_limited("id", log_level::error, "two");
  EXPECT_EQ(log.failures(), 2U);
}

TEST_F(Logger, SaysAMessageOnceAPeriodAndHowManyItHeldBack) {
  const logger log(keep(), {.period = 60s, .clock = clock});
  for (int i = 0; i < 5; ++i) log.write_limited("slow", log_level::warning, "slow");
  log.write_limited("other", log_level::warning, "other");
  EXPECT_EQ(lines, (std::vector<std::string>{"warning slow", "warning other"}));
  clock->advance(59s);
  log.write_limited("slow", log_level::warning, "slow");
  EXPECT_EQ(lines.size(), 2U);
  clock->advance(1s);
  log.write_limited("slow", log_level::warning, "slow", {{.name = "ms", .value = "7"}});
  EXPECT_EQ(lines.back(), "warning slow ms=7 suppressed=5");
}

TEST_F(Logger, TheTableOfIdsIsBounded) {
  log_limiter limiter({.period = 60s, .ids = 2, .clock = clock});
  EXPECT_TRUE(limiter.admit("a"));
  EXPECT_TRUE(limiter.admit("b"));
  EXPECT_TRUE(limiter.admit("c")) << "the first of those that share a place";
  EXPECT_FALSE(limiter.admit("d")) << "no place of its own: it shares c's";
  EXPECT_FALSE(limiter.admit("a"));
  clock->advance(60s);
  EXPECT_EQ(limiter.admit("e"), 0U) << "takes the place of b, which owes nobody a count";
  EXPECT_FALSE(limiter.admit("e")) << "and it is its own";
  EXPECT_EQ(limiter.admit("a"), 1U) << "a kept its count";
}

TEST(LogLevel, HasStableNames) {
  EXPECT_EQ(to_string(log_level::debug), "debug");
  EXPECT_EQ(to_string(log_level::error), "error");
}

}  // namespace
