// The servers that the Redis tests stand on: that they start, stop, die, freeze, and move slots.

#include "support/redis_cluster.hpp"
#include "support/redis_sentinels.hpp"
#include "support/redis_server.hpp"
#include "support/shared_server.hpp"

#include <gtest/gtest.h>

#include <string>

namespace {

using namespace holdfast::test;

TEST(RedisFixture, KeepsWhatItAcknowledgedOverKill9) {
  redis_server server;
  server.run({"SET", "a", "1"});
  server.kill9();
  EXPECT_FALSE(server.running());
  server.start();
  EXPECT_EQ(server.run({"GET", "a"}), "1");
  server.configure("maxmemory 50mb");
  server.restart();
  EXPECT_NE(server.run({"CONFIG", "GET", "maxmemory"}).find("52428800"), std::string::npos);
  EXPECT_THROW(server.run({"NOSUCH"}), std::runtime_error);
}

TEST(RedisFixture, ClusterFailsOverAndMovesSlots) {
  redis_cluster cluster;
  const auto owner = cluster.master_of(12182);  // foo
  cluster.node(owner).run({"SET", "foo", "bar"});
  const auto heir = cluster.fail_over(owner);
  EXPECT_EQ(heir, cluster.master_of(12182));
  cluster.wait_until_well();
  const auto from = cluster.master_of(12182);
  const std::size_t to =
      cluster.master_of(0) == from ? cluster.master_of(8000) : cluster.master_of(0);
  cluster.begin_migration(12182, to);
  EXPECT_EQ(cluster.migrate_keys(12182, from, to, 10), 1U);
  EXPECT_EQ(cluster.migrate_keys(12182, from, to, 10), 0U);
  cluster.end_migration(12182, to);
  EXPECT_EQ(cluster.master_of(12182), to);
  EXPECT_EQ(cluster.node(to).run({"GET", "foo"}), "bar");
}

TEST(RedisFixture, SharedServersAnswer) {
  EXPECT_EQ(shared_server<redis_server>().run({"PING"}), "PONG");
  EXPECT_NE(shared_server<redis_cluster>().run({"CLUSTER", "INFO"}).find("cluster_state:ok"),
            std::string::npos);
  EXPECT_NE(shared_server<redis_sentinels>().run({"SENTINEL", "MASTERS"}).find("main"),
            std::string::npos);
}

}  // namespace
