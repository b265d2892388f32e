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

TEST(RedisTopology, SlowNodeGetsMoreTimeWithEachTry) {
  const settings from = read_settings("redis+cluster://a:1", {});
  counters count(nullptr);
  // A far Cluster through TLS: four round trips take more than half a second.
  std::vector<steady::duration> given;
  topology made(
      from,
      [&](const std::string&, steady::time_point deadline) -> reply {
        given.push_back(deadline - steady::now());
        if (given.back() < 900ms) throw error(silent);
        return one_master();
      },
      count);
  for (int i = 0; i < 4; ++i) {
    try {
      EXPECT_EQ(made.current(steady::now() + 1h)->covered(), slot_map::slots);
      EXPECT_GT(given.size(), 1U);
      return;
    } catch (const error& failed) {
      EXPECT_TRUE(failed.transient());
    }
  }
  FAIL() << "it never waited long enough";
}

TEST(RedisTopology, ThoseWhoWaitedForAFailedQuestionDoNotAskAgainAtOnce) {
  const settings from = read_settings("redis+cluster://a:1", {});
  counters count(nullptr);
  std::atomic<int> asked = 0;
  std::atomic<bool> dead = false;
  std::atomic<bool> answer = false;
  topology made(
      from,
      [&](const std::string&, steady::time_point) -> reply {
        ++asked;
        if (!dead) return one_master();
        while (!answer) std::this_thread::yield();
        throw error(silent);
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
  // Two nodes are known, the seed and the one of the map: had each thread asked both, it would be 16.
  EXPECT_LT(asked - before, 16);
}

}  // namespace
