// When callers may connect to a server that cannot be reached. Without a server, and on given
// times.

#include "redis/connect_gate.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace {

using namespace holdfast;
using namespace holdfast::detail::redis;
using namespace std::chrono_literals;

const error refused(errc::unavailable, "Connection refused", {.transient = true});

bool may_enter(connect_gate& gate, steady::time_point now) {
  try {
    gate.enter(now);
    return true;
  } catch (const error& problem) {
    EXPECT_EQ(problem.message(), "Connection refused");
    EXPECT_TRUE(problem.transient());
    EXPECT_FALSE(problem.in_doubt());
    return false;
  }
}

/// Fails at `now`, and returns when the next caller may try.
steady::time_point fail_and_wait(connect_gate& gate, steady::time_point now) {
  gate.failed(refused, now, now);
  auto later = now;
  while (!may_enter(gate, later)) later += 1ms;
  return later;
}

TEST(RedisConnectGate, LetsAllPassUntilAFailure) {
  connect_gate gate;
  const auto now = steady::now();
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(may_enter(gate, now));
  gate.failed(refused, now, now + 1ms);
  EXPECT_FALSE(may_enter(gate, now + 2ms));
}

TEST(RedisConnectGate, OneCallerTriesAtATime) {
  connect_gate gate;
  auto now = steady::now();
  EXPECT_TRUE(may_enter(gate, now));
  now = fail_and_wait(gate, now);  // this caller tries
  EXPECT_FALSE(may_enter(gate, now));
  EXPECT_FALSE(may_enter(gate, now + 1h));
  gate.succeeded();
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(may_enter(gate, now));
}

TEST(RedisConnectGate, PausesGrowToHalfASecond) {
  connect_gate gate;
  auto now = steady::now();
  EXPECT_TRUE(may_enter(gate, now));
  steady::duration total{};
  int attempts = 0;
  for (; total < 10s; ++attempts) {
    const auto next = fail_and_wait(gate, now);
    EXPECT_LE(next - now, 500ms);
    EXPECT_GE(next - now, attempts > 6 ? 250ms : 10ms);
    total += next - now;
    now = next;
  }
  EXPECT_LE(attempts, 50);
  gate.succeeded();
  EXPECT_TRUE(may_enter(gate, now));
  EXPECT_LE(fail_and_wait(gate, now) - now, 20ms);  // from the beginning
}

// Sixteen threads that failed together are one failure.
TEST(RedisConnectGate, AttemptsAtTheSameTimeCountOnce) {
  connect_gate gate;
  const auto now = steady::now();
  for (int i = 0; i < 16; ++i) EXPECT_TRUE(may_enter(gate, now));
  for (int i = 0; i < 16; ++i) gate.failed(refused, now, now + std::chrono::milliseconds(i));
  EXPECT_TRUE(may_enter(gate, now + 20ms));
  // One of them that is late does not end the attempt of another caller.
  gate.failed(refused, now, now + 21ms);
  gate.cancelled(now, now + 21ms);
  EXPECT_FALSE(may_enter(gate, now + 1h));
}

TEST(RedisConnectGate, CallerThatGivesUpSaysNothing) {
  connect_gate gate;
  auto now = steady::now();
  EXPECT_TRUE(may_enter(gate, now));
  gate.cancelled(now, now);
  EXPECT_TRUE(may_enter(gate, now));
  now = fail_and_wait(gate, now);
  gate.cancelled(now, now + 1ms);
  EXPECT_TRUE(may_enter(gate, now + 1ms));  // the next caller may try at once
}

}  // namespace
