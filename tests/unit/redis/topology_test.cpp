// When the slot map is asked for, of whom, and for how long. Without a server.

#include "redis/topology.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace {

using namespace holdfast;
using namespace holdfast::redis;
using namespace std::chrono_literals;

reply one_master() {
  reply::list master{reply(std::string("127.0.0.1")), reply(std::int64_t{7000}), reply(std::string("id"))};
  reply::list range{reply(std::int64_t{0}), reply(std::int64_t{16383}), reply(std::move(master))};
  return reply(reply::list{reply(std::move(range))});
}

const error silent(errc::timeout, "it did not answer", {.transient = true});

TEST(RedisTopology, SlowNodesHaveAllTheTimeThatTheCallHas) {
  const settings from = read_settings("redis+cluster://a:1,b:2", {});
  counters count(nullptr);
  steady::duration given{};
  topology made(
      from,
      [&](std::span<const std::string> nodes, steady::time_point deadline, const topology::listener& take) {
        EXPECT_EQ(nodes.size(), 2U);
        given = deadline - steady::now();
        EXPECT_FALSE(take(nodes[0], reply(silent)));
        EXPECT_TRUE(take(nodes[1], one_master()));
      },
      count);
  EXPECT_EQ(made.current(steady::now() + 1h)->covered(), slot_map::slots);
  EXPECT_GT(given, 59min);
  EXPECT_EQ(count.refreshes.read(), 1U);
}

TEST(RedisTopology, ThoseWhoWaitedForAFailedQuestionDoNotAskAgainAtOnce) {
  const settings from = read_settings("redis+cluster://a:1", {});
  counters count(nullptr);
  std::atomic<int> asked = 0;
  std::atomic<bool> dead = false;
  std::atomic<bool> answer = false;
  topology made(
      from,
      [&](std::span<const std::string> nodes, steady::time_point, const topology::listener& take) {
        ++asked;
        if (!dead && take(nodes.front(), one_master())) return;
        while (!answer) std::this_thread::yield();
        for (const auto& each : nodes) EXPECT_FALSE(take(each, reply(silent)));
      },
      count);
  (void)made.current(steady::now() + 1h);
  std::this_thread::sleep_for(110ms);  // longer than two questions are apart
  dead = true;
  made.set_stale();
  const int before = asked;
  {
    std::vector<std::jthread> threads;
    threads.reserve(8);
    std::atomic<int> started = 0;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&] {
        ++started;
        EXPECT_EQ(made.current(steady::now() + 1h)->covered(), slot_map::slots);
      });
    }
    while (started < 8 || asked == before) std::this_thread::yield();
    answer = true;
  }
  EXPECT_LT(asked - before, 8);  // not each of them
}

}  // namespace
