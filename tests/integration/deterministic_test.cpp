// The clock and the executor that stand still.

#include "support/manual_executor.hpp"
#include "support/virtual_clock.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace holdfast::test;
using namespace std::chrono_literals;

TEST(VirtualClock, MovesOnlyByHand) {
  virtual_clock clock;
  const auto wall = clock.now();
  const auto steady = clock.steady();
  std::this_thread::sleep_for(2ms);
  EXPECT_EQ(clock.now(), wall);
  EXPECT_EQ(clock.steady(), steady);
  clock.advance(5s);
  EXPECT_EQ(clock.now(), wall + 5s);
  EXPECT_EQ(clock.steady(), steady + 5s);
}

TEST(VirtualClock, JumpsTheWallClockAlone) {
  virtual_clock clock;
  const auto wall = clock.now();
  const auto steady = clock.steady();
  clock.jump(-24h);
  EXPECT_EQ(clock.now(), wall - 24h);
  EXPECT_EQ(clock.steady(), steady);
  EXPECT_THROW(clock.advance(-1us), std::invalid_argument);
}

TEST(ManualExecutor, RunsInOrderAndOnlyWhenTold) {
  manual_executor executor;
  std::string order;
  executor.post([&] {
    order += 'a';
    executor.post([&] { order += 'c'; });
  });
  executor.post([&] { order += 'b'; });
  EXPECT_EQ(order, "");
  EXPECT_EQ(executor.size(), 2U);
  EXPECT_TRUE(executor.run_one());
  EXPECT_EQ(order, "a");
  EXPECT_EQ(executor.run_all(), 2U);
  EXPECT_EQ(order, "abc");
  EXPECT_FALSE(executor.run_one());
}

std::string shuffled(std::uint64_t seed) {
  manual_executor executor;
  std::string order;
  for (char c = 'a'; c <= 'z'; ++c) executor.post([&order, c] { order += c; });
  EXPECT_EQ(executor.run_all_shuffled(seed), 26U);
  return order;
}

TEST(ManualExecutor, RepeatsTheOrderOfASeed) {
  EXPECT_EQ(shuffled(7), shuffled(7));
  EXPECT_NE(shuffled(7), shuffled(8));
  EXPECT_EQ(shuffled(1).size(), 26U);
}

TEST(ManualExecutor, RunsTimersAtTheirOwnTime) {
  const auto clock = std::make_shared<virtual_clock>();
  manual_executor executor(clock);
  const auto begin = clock->steady();
  std::vector<std::chrono::milliseconds> seen;
  const auto note = [&] {
    seen.push_back(std::chrono::duration_cast<std::chrono::milliseconds>(clock->steady() - begin));
  };
  executor.post_after(20ms, note);
  executor.post_after(10ms, [&] {
    note();
    executor.post_after(5ms, note);
  });
  executor.post_after(1h, note);
  EXPECT_EQ(executor.ready(), 0U);
  EXPECT_EQ(executor.run_all(), 0U);
  EXPECT_EQ(executor.advance(30ms), 3U);
  EXPECT_EQ(seen, (std::vector{10ms, 15ms, 20ms}));
  EXPECT_EQ(clock->steady(), begin + 30ms);
  EXPECT_EQ(executor.clear(), 1U);
}

TEST(ManualExecutor, StopsTasksThatNeverEnd) {
  manual_executor executor;
  std::function<void()> again = [&] { executor.post(again); };
  executor.post(again);
  EXPECT_THROW(executor.run_all(100), std::runtime_error);
}

TEST(ManualExecutor, LetsAnExceptionOutAndKeepsTheRest) {
  manual_executor executor;
  executor.post([] { throw std::runtime_error("task"); });
  executor.post([] {});
  EXPECT_THROW(executor.run_all(), std::runtime_error);
  EXPECT_EQ(executor.size(), 1U);
}

}  // namespace
