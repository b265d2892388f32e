#include "redis/settings.hpp"

#include "redis/connection.hpp"
#include "redis/probe.hpp"
#include "redis/server_error.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

namespace {

using namespace holdfast;
using namespace holdfast::redis;

std::string refusal(const std::string& url, options how = {}) {
  try {
    (void)read_settings(url, std::move(how));
  } catch (const error& refused) {
    EXPECT_EQ(refused.code(), errc::invalid_argument);
    EXPECT_EQ(std::string(refused.what()).find("secret"), std::string::npos) << refused.what();
    return refused.what();
  }
  ADD_FAILURE() << "was not refused: " << url;
  return {};
}

TEST(RedisUrl, IsTakenApart) {
  const auto one = read_settings("redis://user:p%40ss@host:7000/3", {});
  EXPECT_EQ(one.seeds, std::vector<std::string>{"host:7000"});
  EXPECT_EQ(one.how.user, "user");
  EXPECT_EQ(one.how.password, "p@ss");
  EXPECT_EQ(one.database, 3U);
  EXPECT_FALSE(one.cluster || one.tls);
  EXPECT_EQ(read_settings("redis://", {}).seeds.front(), "127.0.0.1:6379");
  EXPECT_EQ(read_settings("redis://:secret@h", {}).how.password, "secret");
  EXPECT_EQ(read_settings("redis://[::1]:7/0", {}).seeds.front(), "::1:7");

  const auto tls = read_settings("rediss://h?tls_ca=/a&tls_cert=/b&tls_key=/c&tls_name=n&tls_verify=0&db=2", {});
  EXPECT_TRUE(tls.tls);
  EXPECT_EQ(tls.how.tls.ca, "/a");
  EXPECT_EQ(tls.how.tls.certificate, "/b");
  EXPECT_EQ(tls.how.tls.key, "/c");
  EXPECT_EQ(tls.how.tls.server_name, "n");
  EXPECT_FALSE(tls.how.tls.verify);
  EXPECT_EQ(tls.database, 2U);
  EXPECT_TRUE(read_settings("rediss://h", {}).how.tls.verify);

  const auto path = read_settings("redis+unix:///run/redis%20x.sock?db=1", {});
  EXPECT_EQ(path.seeds.front(), "/run/redis x.sock");
  EXPECT_EQ(path.database, 1U);

  const auto many = read_settings("rediss+cluster://u:p@a:1,b,[::1]:3/", {});
  EXPECT_TRUE(many.cluster && many.tls);
  EXPECT_EQ(many.seeds, (std::vector<std::string>{"a:1", "b:6379", "::1:3"}));
}

TEST(RedisUrl, RefusesWhatCannotBeMeant) {
  EXPECT_NE(refusal("redis+sentinel://h:26379/mymaster").find("Sentinel is not supported"), std::string::npos);
  EXPECT_NE(refusal("rediss+sentinel://u:secret@h").find("Sentinel"), std::string::npos);
  EXPECT_NE(refusal("http://h").find("redis+cluster://"), std::string::npos);
  refusal("redis:h");
  refusal("redis://u:secret@a:1,b:2");
  refusal("redis://u:secret@h/x");
  refusal("redis://h:0");
  refusal("redis://h?db=1&x=secret");
  refusal("redis://h/1?db=1");
  refusal("redis://h?tls_ca=/x");
  refusal("rediss://h?tls_verify=maybe");
  refusal("rediss://h?tls_nonsense=1");
  refusal("redis+cluster://h/1");
  refusal("redis+unix://run/redis.sock");
  refusal("redis+unix://");
  refusal("redis://user@h");
  refusal("redis://h", {.connections = 0});
  refusal("redis://h", {.timeout = std::chrono::milliseconds(0)});
  refusal("redis://h", {.attempts = 0});
  refusal("redis://h", {.connections = std::numeric_limits<std::size_t>::max()});
  refusal("redis+cluster://a:1,,b:2");
  refusal("redis+cluster://a:1,");
  EXPECT_NE(refusal("redis://::1").find("[::1]"), std::string::npos);
  refusal("redis+cluster://a:1,fe80::1:7000");
}

TEST(RedisGreeting, LogsInAndSelects) {
  const auto words = [](const std::string& url) {
    std::string bytes;
    for (const auto& each : greeting(read_settings(url, {})).commands) each.write(bytes);
    return bytes;
  };
  EXPECT_EQ(words("redis://h"), "*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$8\r\nholdfast\r\n");
  EXPECT_TRUE(words("redis://u:p@h/5").starts_with("*3\r\n$4\r\nAUTH\r\n$1\r\nu\r\n$1\r\np\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n5\r\n"));
  EXPECT_TRUE(words("redis://:p@h").starts_with("*2\r\n$4\r\nAUTH\r\n$1\r\np\r\n"));
}

// As redis-cli -u does: for a user that the server lets in with any password.
TEST(RedisGreeting, LogsInWithAnEmptyPasswordThatTheUrlNames) {
  const auto words = [](const std::string& url, options how = {}) {
    std::string bytes;
    for (const auto& each : greeting(read_settings(url, std::move(how))).commands) each.write(bytes);
    return bytes;
  };
  EXPECT_TRUE(words("redis://user:@h").starts_with("*3\r\n$4\r\nAUTH\r\n$4\r\nuser\r\n$0\r\n\r\n"));
  EXPECT_TRUE(words("redis://:@h", {.user = "user"}).starts_with("*3\r\n$4\r\nAUTH\r\n$4\r\nuser\r\n$0\r\n\r\n"));
  EXPECT_TRUE(words("redis+cluster://user:@a,b").starts_with("*3\r\n$4\r\nAUTH\r\n$4\r\nuser\r\n$0\r\n\r\n"));
  EXPECT_TRUE(words("redis://:@h").starts_with("*3\r\n$6\r\nCLIENT\r\n"));  // nobody to log in
  EXPECT_NE(refusal("redis://user@h").find("user:@host"), std::string::npos);
}

TEST(RedisGreeting, RefusalsAreClear) {
  const greeting hello(read_settings("redis://u:p@h/5", {}));
  const auto ok = reply(std::string("OK"));
  const auto code = [&](std::string_view auth, std::string_view select, std::string_view name) {
    const auto each = [&](std::string_view text) { return text == "OK" ? ok : reply(server_error(text)); };
    const std::vector<reply> replies{each(auth), each(select), each(name)};
    try {
      hello.check(replies, "h:6379");
    } catch (const error& refused) {
      EXPECT_NE(std::string(refused.what()).find("h:6379"), std::string::npos);
      return refused.code();
    }
    return errc::internal;
  };
  EXPECT_EQ(code("OK", "OK", "OK"), errc::internal);
  EXPECT_EQ(code("WRONGPASS invalid", "NOAUTH", "NOAUTH"), errc::permission);
  EXPECT_EQ(code("OK", "ERR DB index is out of range", "OK"), errc::invalid_argument);
  EXPECT_EQ(code("OK", "OK", "NOPERM no"), errc::internal);  // a name is a courtesy
  EXPECT_EQ(code("OK", "OK", "ERR unknown command"), errc::internal);
  EXPECT_EQ(code("OK", "OK", "NOAUTH Authentication required."), errc::permission);
  EXPECT_EQ(code("OK", "LOADING Redis is loading the dataset in memory", "OK"), errc::unavailable);
}

// Whoever sends back what comes in is no server, and must not be given a command.
TEST(RedisGreeting, AnEchoIsNoAnswer) {
  const greeting hello(read_settings("redis://:secret@h", {}));
  const auto ok = reply(std::string("OK"));
  const auto echo = reply(reply::list{reply(std::string("AUTH")), reply(std::string("secret"))});
  for (const auto& replies : {std::vector<reply>{echo, ok}, std::vector<reply>{ok, echo}, std::vector<reply>{ok, reply(std::int64_t{1})},
                              std::vector<reply>{ok, reply()}, std::vector<reply>{reply(std::string("QUEUED")), ok}}) {
    try {
      hello.check(replies, "h:6379");
      FAIL();
    } catch (const error& refused) {
      EXPECT_EQ(refused.code(), errc::malformed);
      EXPECT_STREQ(refused.what(), "what answers at h:6379 does not speak as Redis does; check that a Redis server listens there");
    }
  }
}

TEST(RedisGreeting, NoRefusalRepeatsThePassword) {
  const greeting hello(read_settings("redis://u:secret@h", {}));
  // A server without AUTH repeats what it was told.
  const std::vector<reply> replies{reply(server_error("ERR unknown command 'AUTH', with args beginning with: 'u' 'secret' ")),
                                   reply(std::string("OK"))};
  try {
    hello.check(replies, "h:6379");
    FAIL();
  } catch (const error& refused) {
    EXPECT_EQ(std::string(refused.what()).find("secret"), std::string::npos) << refused.what();
    EXPECT_NE(std::string(refused.what()).find("AUTH"), std::string::npos) << refused.what();
  }
}

TEST(RedisProbe, ReadsInfo) {
  const std::vector<reply> replies{
      reply(std::string("# Server\r\nredis_version:7.2.4\r\nredis_mode:cluster\r\nrole:master\r\nslave0:ip=1,state=online,lag=0\r\n"
                        "slave1:ip=1,state=wait_bgsave\r\nloading:0\r\naof_enabled:1\r\nmaxmemory:1000\r\nmaxmemory_policy:noeviction\r\n"
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
  const std::vector<reply> old{reply(std::string("redis_version:7.0.15\r\nrole:slave\r\nmaster_link_status:down\r\n"))};
  EXPECT_FALSE(read_probe(old).can_wait_disk);
  EXPECT_FALSE(read_probe(old).master_link);
}

}  // namespace
