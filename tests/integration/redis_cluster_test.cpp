// The client against a real Cluster that stays as it is. What happens while it changes:
// tests/fault.

#include "support/redis_cluster.hpp"

#include <holdfast/key/redis.hpp>
#include <holdfast/redis.hpp>

#include "support/shared_server.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace holdfast;
using namespace holdfast::test;
using namespace std::chrono_literals;
using redis::client;
using redis::command;

class RedisCluster : public testing::Test {
 protected:
  const redis_cluster_endpoint& server = shared_server<redis_cluster>();
  const std::string prefix = server.unique_prefix("cluster");
  client redis{server.url(), {.timeout = 30s}};

  std::string key(std::string_view name) const { return prefix + std::string(name); }
};

TEST_F(RedisCluster, SendsEachCommandToTheNodeOfItsSlot) {
  for (int i = 0; i < 200; ++i) redis.call(command("SET").key(key(std::to_string(i))).arg(i));
  for (int i = 0; i < 200; ++i)
    EXPECT_EQ(redis.call(command("GET").key(key(std::to_string(i)))).text(), std::to_string(i));
  EXPECT_EQ(redis.count().moved, 0U);
  EXPECT_EQ(redis.count().refreshes, 1U);
  EXPECT_EQ(redis.count().connected, 3U);  // one to each master
}

TEST_F(RedisCluster, SplitsPipelinesAndAnswersInOrder) {
  const redis::script echo("return {KEYS[1], ARGV[1]}");
  std::vector<command> commands;
  for (int i = 0; i < 3'000; ++i) {
    if (i % 3 == 0) commands.push_back(command("ECHO").arg(i));
    else commands.push_back(command(echo).key(key(std::to_string(i))).arg(i));
  }
  const auto replies = redis.pipeline(commands);
  for (int i = 0; i < 3'000; ++i) {
    const auto& each = replies[static_cast<std::size_t>(i)];
    if (i % 3 == 0) {
      ASSERT_EQ(each.text(), std::to_string(i));
    } else {
      ASSERT_EQ(each.elements()[0].text(), key(std::to_string(i)));
      ASSERT_EQ(each.elements()[1].text(), std::to_string(i));
    }
  }
  EXPECT_LE(redis.count().whole_scripts, 3U);  // once over each connection
}

TEST_F(RedisCluster, KeysInDifferentSlotsAreRefusedBeforeAnythingIsSent) {
  const std::vector<command> commands{command("SET").key(key("first")).arg("1"),
                                      command("MGET").key("a").key("b")};
  try {
    redis.pipeline(commands);
    FAIL();
  } catch (const error& refused) {
    EXPECT_EQ(refused.code(), errc::invalid_argument);
    EXPECT_NE(refused.message().find("'a'"), std::string::npos);
    EXPECT_NE(refused.message().find("'b'"), std::string::npos);
  }
  EXPECT_TRUE(redis.call(command("GET").key(key("first"))).is_nil());
  EXPECT_EQ(redis.call(command("MGET").key("{" + prefix + "}a").key("{" + prefix + "}b"))
                .elements()
                .size(),
            2U);
}

TEST_F(RedisCluster, WaitIsAnsweredByTheNodeThatWrote) {
  std::vector<command> commands;
  for (int i = 0; i < 30; ++i) {
    commands.push_back(command("SET").key(key(std::to_string(i))).arg(i));
    commands.push_back(redis::wait_for_replicas(1, 20s));
  }
  const auto replies = redis.pipeline(commands);
  for (std::size_t i = 0; i < replies.size(); i += 2) {
    EXPECT_EQ(replies[i].text(), "OK");
    EXPECT_EQ(replies[i + 1].integer(), 1);
  }
}

TEST_F(RedisCluster, SlotFunctionAgreesWithTheServerOnAMillionKeys) {
  std::mt19937_64 random(20261115);
  constexpr std::string_view rich = "{}{}{}ab\0\xff:";
  constexpr std::size_t total = 1'000'000;
  constexpr std::size_t at_once = 10'000;
  std::vector<std::uint16_t> slots(at_once);
  for (std::size_t done = 0; done < total; done += at_once) {
    std::vector<command> commands;
    commands.reserve(at_once);
    for (std::size_t i = 0; i < at_once; ++i) {
      std::string each(random() % 24, '\0');
      for (auto& c : each)
        c = random() % 2 == 0 ? rich[random() % rich.size()] : static_cast<char>(random());
      slots[i] = key::redis_slot(each);
      commands.push_back(command("CLUSTER").arg("KEYSLOT").arg(each));
    }
    const auto replies = redis.pipeline(commands, {.timeout = 60s});
    for (std::size_t i = 0; i < at_once; ++i) ASSERT_EQ(replies[i].integer(), slots[i]);
  }
}

TEST_F(RedisCluster, ProbeSeesEveryNode) {
  const auto reports = redis.probe();
  ASSERT_EQ(reports.size(), 6U);
  std::size_t masters = 0;
  for (const auto& each : reports) {
    EXPECT_EQ(each.mode, "cluster");
    EXPECT_TRUE(each.cluster_ok);
    EXPECT_EQ(each.slots_covered, 16384U);
    if (each.role != "master") continue;
    ++masters;
    EXPECT_EQ(each.replicas, 1U);
  }
  EXPECT_EQ(masters, 3U);
}

TEST_F(RedisCluster, OneSeedThatAnswersIsEnough) {
  const client some("redis+cluster://127.0.0.1:1," + server.address() + ",127.0.0.1:2");
  some.call(command("SET").key(key("a")).arg("1"));
  EXPECT_EQ(some.call(command("GET").key(key("a"))).text(), "1");
  const client none("redis+cluster://127.0.0.1:1,127.0.0.1:2", {.timeout = 300ms});
  try {
    none.call(command("GET").key("a"));
    FAIL();
  } catch (const error& failed) {
    EXPECT_TRUE(failed.transient());
    EXPECT_FALSE(failed.in_doubt());
  }
}

TEST_F(RedisCluster, PlainClientIsToldToUseTheClusterUrl) {
  const client plain(server.redis_endpoint::url());
  bool told = false;
  for (int i = 0; i < 50 && !told; ++i) {
    try {
      plain.call(command("GET").key(key(std::to_string(i))));
    } catch (const error& moved) {
      EXPECT_EQ(moved.backend_code(), "MOVED");
      told = moved.message().find("redis+cluster://") != std::string::npos;
    }
  }
  EXPECT_TRUE(told);
}

TEST_F(RedisCluster, ManyThreadsSplitPipelinesWithFewConnections) {
  // Each pipeline needs a connection to all three masters at once, and there is one to each.
  const client few(server.url(), {.timeout = 60s, .connections = 1});
  std::atomic<int> wrong = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 6; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 50; ++i) {
          std::vector<command> commands;
          for (int k = 0; k < 12; ++k) {
            commands.push_back(command("SET")
                                   .key(key(std::to_string(t) + '.' + std::to_string(k)))
                                   .arg(std::to_string(i))
                                   .idempotent());
            commands.push_back(
                command("GET").key(key(std::to_string(t) + '.' + std::to_string(k))).idempotent());
          }
          const auto replies = few.pipeline(commands);
          for (std::size_t k = 1; k < replies.size(); k += 2) {
            if (!replies[k].is_text() || replies[k].text() != std::to_string(i)) ++wrong;
          }
        }
      });
    }
  }
  EXPECT_EQ(wrong, 0);
}

}  // namespace
