// When the slot map is refreshed, from which nodes, and how long that may take. Without a server.

#include "redis/topology.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace {

using namespace holdfast;
using namespace holdfast::detail::redis;
using namespace std::chrono_literals;

reply slots_of_one_master() {
  reply::list master{reply(std::string("127.0.0.1")), reply(std::int64_t{7000}),
                     reply(std::string("id"))};
  reply::list range{reply(std::int64_t{0}), reply(std::int64_t{16383}), reply(std::move(master))};
  return reply(reply::list{reply(std::move(range))});
}

const error no_answer(errc::timeout, "it did not answer", {.transient = true});

TEST(RedisTopology, FirstRefreshMayTakeTheWholeTimeOfTheCall) {
  const settings configured = read_settings("redis+cluster://a:1,b:2", {});
  counters counted(nullptr);
  steady::duration granted_time{};
  topology cluster(
      configured,
      [&](std::span<const std::string> nodes, steady::time_point deadline,
          const topology::reply_handler& handler) {
        EXPECT_EQ(nodes.size(), 2U);
        granted_time = deadline - steady::now();
        EXPECT_FALSE(handler(nodes[0], reply(no_answer)));
        EXPECT_TRUE(handler(nodes[1], slots_of_one_master()));
      },
      counted);
  EXPECT_EQ(cluster.current(steady::now() + 1h)->covered(), slot_map::slots);
  EXPECT_GT(granted_time, 59min);
  EXPECT_EQ(counted.refreshes.read(), 1U);
}

TEST(RedisTopology, ThreadsThatWaitedForAFailedRefreshDoNotRefreshAtOnce) {
  const settings configured = read_settings("redis+cluster://a:1", {});
  counters counted(nullptr);
  std::atomic<int> asked = 0;
  std::atomic<bool> dead = false;
  std::atomic<bool> answer = false;
  topology cluster(
      configured,
      [&](std::span<const std::string> nodes, steady::time_point,
          const topology::reply_handler& handler) {
        ++asked;
        if (!dead && handler(nodes.front(), slots_of_one_master())) return;
        while (!answer) std::this_thread::yield();
        for (const auto& node : nodes) EXPECT_FALSE(handler(node, reply(no_answer)));
      },
      counted);
  (void)cluster.current(steady::now() + 1h);
  std::this_thread::sleep_for(110ms);  // longer than the delay between refreshes
  dead = true;
  cluster.mark_stale();
  const int before = asked;
  {
    std::vector<std::jthread> threads;
    threads.reserve(8);
    std::atomic<int> started = 0;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&] {
        ++started;
        EXPECT_EQ(cluster.current(steady::now() + 1h)->covered(), slot_map::slots);
      });
    }
    while (started < 8 || asked == before) std::this_thread::yield();
    answer = true;
  }
  EXPECT_LT(asked - before, 8);  // not one query for each thread
}

}  // namespace
