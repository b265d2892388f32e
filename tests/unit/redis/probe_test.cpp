#include "redis/probe.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace {

using namespace holdfast;
using namespace holdfast::detail::redis;

TEST(RedisProbe, ReadsInfo) {
  const std::vector<reply> replies{
      reply(std::string("# "
                        "Server\r\nredis_version:7.2.4\r\nredis_mode:cluster\r\nrole:"
                        "master\r\nslave0:ip=1,state=online,lag=0\r\n"
                        "slave1:ip=1,state=wait_bgsave\r\nloading:0\r\naof_enabled:1\r\nmaxmemory:"
                        "1000\r\nmaxmemory_policy:noeviction\r\n"
                        "used_memory:77\r\nevicted_keys:3\r\n")),
      reply(reply::list{reply(std::string("appendfsync")), reply(std::string("everysec"))}),
      reply(std::string("cluster_state:fail\r\ncluster_slots_ok:16000\r\n"))};
  const auto report = read_probe(replies);
  EXPECT_EQ(report.version, "7.2.4");
  EXPECT_EQ(report.mode, "cluster");
  EXPECT_EQ(report.replicas, 1U);
  EXPECT_TRUE(report.aof && report.can_wait_disk);
  EXPECT_EQ(report.appendfsync, "everysec");
  EXPECT_EQ(report.eviction, "noeviction");
  EXPECT_EQ(report.max_memory, 1000U);
  EXPECT_EQ(report.evicted, 3U);
  EXPECT_FALSE(report.cluster_ok);
  EXPECT_EQ(report.slots_covered, 16000U);
  const std::vector<reply> old_replica{
      reply(std::string("redis_version:7.0.15\r\nrole:slave\r\nmaster_link_status:down\r\n"))};
  EXPECT_FALSE(read_probe(old_replica).can_wait_disk);
  EXPECT_FALSE(read_probe(old_replica).master_link);
}

}  // namespace
