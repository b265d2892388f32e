// The client behind Sentinels, and with several addresses of one server.

#include <holdfast/redis.hpp>

#include "support/eventually.hpp"
#include "support/failure_of.hpp"
#include "support/redis_sentinels.hpp"
#include "support/redis_server.hpp"
#include "support/temporary_directory.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
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

TEST(RedisSentinel, FindsTheMasterAndFollowsIt) {
  redis_sentinels servers;
  // One Sentinel is enough: it names the others.
  const client redis(servers.url_of(0), {.timeout = 30s});
  EXPECT_FALSE(redis.is_cluster());
  EXPECT_EQ(redis.call(command("SET").key("a").arg("1")).text(), "OK");
  const auto old = servers.master();
  ASSERT_TRUE(old.has_value());
  EXPECT_EQ(servers.node(*old).run({"GET", "a"}), "1");
  EXPECT_EQ(redis.nodes().at(0).address, servers.node(*old).address());
  ASSERT_EQ(redis.probe().size(), 1U);
  EXPECT_EQ(redis.probe()[0].role, "master");

  const auto heir = servers.fail_over();
  // The Sentinel of the URL is gone. The others were learned.
  servers.sentinel(0).kill9();
  // The old master still answers, and is asked about after a second.
  const auto heir_address = servers.node(heir).address();
  EXPECT_TRUE(eventually([&] { return redis.nodes().at(0).address == heir_address; }));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(redis.call(command("INCR").key("n")).integer(), i + 1);
  EXPECT_EQ(servers.node(heir).run({"GET", "n"}), "20");
  EXPECT_EQ(redis.count().in_doubt, 0U);

  // Without any Sentinel the master that is known still serves.
  for (std::size_t i = 1; i < servers.sentinel_count(); ++i) servers.sentinel(i).kill9();
  EXPECT_EQ(redis.call(command("INCR").key("n")).integer(), 21);
  const client late(servers.url(), {.timeout = 500ms});
  const auto unknown = failure_of([&] { late.call(command("PING")); });
  EXPECT_TRUE(unknown.transient());
  EXPECT_FALSE(unknown.in_doubt());
}

TEST(RedisSentinel, SentinelThatHangsIsNotWaitedFor) {
  redis_sentinels servers;
  servers.sentinel(1).pause();
  for (int i = 0; i < 3; ++i) {
    const client redis(servers.url(), {.timeout = 20s});
    EXPECT_EQ(redis.call(command("PING")).text(), "PONG");
  }
  const client only_hanging(servers.url_of(1), {.timeout = 300ms});
  const auto silent = failure_of([&] { only_hanging.call(command("INCR").key("n")); });
  EXPECT_TRUE(silent.transient());
  EXPECT_FALSE(silent.in_doubt());
}

TEST(RedisSentinel, MistakesInTheUrlAreNamed) {
  redis_sentinels servers;
  const auto sentinel = servers.sentinel(0).address();
  const auto message_of = [](const std::string& url) {
    const auto refused = failure_of([&] { client(url).call(command("GET").key("a")); });
    EXPECT_EQ(refused.code(), errc::invalid_argument) << refused.what();
    EXPECT_FALSE(refused.transient() || refused.in_doubt());
    return refused.message();
  };
  for (const auto& url : {"redis://" + sentinel, "redis://" + sentinel + "/3",
                          "redis://" + sentinel + "," + sentinel}) {
    const auto message = message_of(url);
    EXPECT_NE(message.find("is a Sentinel: write redis+sentinel://" + sentinel), std::string::npos)
        << message;
  }
  EXPECT_NE(message_of("redis+sentinel://" + servers.node(0).address() + "/main")
                .find("is not a Sentinel"),
            std::string::npos);
  EXPECT_NE(message_of("redis+sentinel://" + sentinel + "/another").find("'another'"),
            std::string::npos);
}

TEST(RedisSentinel, PasswordsOfSentinelsAndServersDiffer) {
  redis_sentinels servers;
  for (std::size_t i = 0; i < servers.size(); ++i)
    servers.node(i).run({"ACL", "SETUSER", "app", "on", ">data", "~*", "+@all"});
  for (std::size_t i = 0; i < servers.sentinel_count(); ++i)
    servers.sentinel(i).run({"ACL", "SETUSER", "watcher", "on", ">watch", "+@all"});
  const auto url = "redis+sentinel://app:data@" + servers.sentinel(0).address() + "/main";
  EXPECT_EQ(client(url).call(command("ACL").arg("WHOAMI")).text(), "app");
  const client both(url, {.sentinel_user = "watcher", .sentinel_password = "watch"});
  EXPECT_EQ(both.call(command("ACL").arg("WHOAMI")).text(), "app");
  EXPECT_NE(servers.sentinel(0).run({"CLIENT", "LIST"}).find("user=watcher"), std::string::npos);
  const client wrong(url, {.sentinel_user = "watcher", .sentinel_password = "wrong"});
  const auto refused = failure_of([&] { wrong.call(command("PING")); });
  EXPECT_EQ(refused.code(), errc::permission) << refused.what();
  EXPECT_FALSE(refused.transient());
}

TEST(RedisAddresses, UsesTheOneThatIsAMaster) {
  redis_server first({.durable = false});
  redis_server second({.durable = false});
  first.run({"REPLICAOF", "127.0.0.1", std::to_string(second.port())});
  const client redis("redis://" + first.address() + "," + second.address(), {.timeout = 30s});
  EXPECT_EQ(redis.call(command("SET").key("a").arg("1")).text(), "OK");
  EXPECT_EQ(second.run({"GET", "a"}), "1");
  EXPECT_EQ(redis.nodes().at(0).address, second.address());

  const auto swap = [](redis_server& old_master, redis_server& new_master) {
    new_master.run({"REPLICAOF", "NO", "ONE"});
    old_master.run({"REPLICAOF", "127.0.0.1", std::to_string(new_master.port())});
  };
  swap(second, first);
  EXPECT_TRUE(eventually([&] {
    try {
      redis.call(command("SET").key("b").arg("1"));
      return true;
    } catch (const error& problem) {
      EXPECT_TRUE(problem.transient()) << problem.what();
      EXPECT_FALSE(problem.in_doubt()) << problem.what();
      return false;
    }
  }));
  EXPECT_EQ(first.run({"GET", "b"}), "1");

  first.kill9();
  second.run({"REPLICAOF", "NO", "ONE"});
  EXPECT_TRUE(eventually([&] { return !redis.health(); }));
  EXPECT_EQ(redis.nodes().at(0).address, second.address());

  second.kill9();
  const auto dead = failure_of([&] { redis.call(command("INCR").key("n")); });
  EXPECT_EQ(dead.code(), errc::unavailable);
  EXPECT_TRUE(dead.transient());
  EXPECT_FALSE(dead.in_doubt());
}

}  // namespace
