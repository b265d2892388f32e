#include "redis/settings.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

namespace {

using namespace holdfast;
using namespace holdfast::detail::redis;

std::string settings_error(const std::string& url, redis::options options = {}) {
  try {
    (void)read_settings(url, std::move(options));
  } catch (const error& refused) {
    EXPECT_EQ(refused.code(), errc::invalid_argument);
    EXPECT_EQ(std::string(refused.what()).find("secret"), std::string::npos) << refused.what();
    return refused.what();
  }
  ADD_FAILURE() << "was not refused: " << url;
  return {};
}

TEST(RedisUrl, IsParsed) {
  const auto single = read_settings("redis://user:p%40ss@host:7000/3", {});
  EXPECT_EQ(single.addresses, std::vector<std::string>{"host:7000"});
  EXPECT_EQ(single.options.user, "user");
  EXPECT_EQ(single.options.password, "p@ss");
  EXPECT_EQ(single.database, 3U);
  EXPECT_FALSE(single.cluster || single.tls);
  EXPECT_EQ(read_settings("redis://", {}).addresses.front(), "127.0.0.1:6379");
  EXPECT_EQ(read_settings("redis://:secret@h", {}).options.password, "secret");
  EXPECT_EQ(read_settings("redis://[::1]:7/0", {}).addresses.front(), "::1:7");

  const auto tls =
      read_settings("rediss://h?tls_ca=/a&tls_cert=/b&tls_key=/c&tls_name=n&tls_verify=0&db=2", {});
  EXPECT_TRUE(tls.tls);
  EXPECT_EQ(tls.options.tls.ca, "/a");
  EXPECT_EQ(tls.options.tls.certificate, "/b");
  EXPECT_EQ(tls.options.tls.key, "/c");
  EXPECT_EQ(tls.options.tls.server_name, "n");
  EXPECT_FALSE(tls.options.tls.verify);
  EXPECT_EQ(tls.database, 2U);
  EXPECT_TRUE(read_settings("rediss://h", {}).options.tls.verify);

  const auto unix_socket = read_settings("redis+unix:///run/redis%20x.sock?db=1", {});
  EXPECT_EQ(unix_socket.addresses.front(), "/run/redis x.sock");
  EXPECT_EQ(unix_socket.database, 1U);

  const auto cluster = read_settings("rediss+cluster://u:p@a:1,b,[::1]:3/", {});
  EXPECT_TRUE(cluster.cluster && cluster.tls);
  EXPECT_EQ(cluster.addresses, (std::vector<std::string>{"a:1", "b:6379", "::1:3"}));
}

TEST(RedisUrl, NamesSentinelsAndTheirMaster) {
  const auto sentinels = read_settings("redis+sentinel://u:p@a,b:1,[::1]/my%20master?db=2", {});
  EXPECT_EQ(sentinels.addresses, (std::vector<std::string>{"a:26379", "b:1", "::1:26379"}));
  EXPECT_EQ(sentinels.master_name, "my master");
  EXPECT_EQ(sentinels.database, 2U);
  EXPECT_EQ(sentinels.role, expected_role::master);
  EXPECT_FALSE(sentinels.tls || sentinels.cluster);
  EXPECT_TRUE(read_settings("rediss+sentinel://a/main?tls_ca=/x", {}).tls);
  // The user of the URL is that of the master. The Sentinels have their own, or none.
  EXPECT_EQ(sentinels.options.password, "p");
  EXPECT_EQ(sentinel_settings(sentinels).options.password, "");
  EXPECT_EQ(sentinel_settings(sentinels).database, 0U);
  EXPECT_EQ(sentinel_settings(sentinels).role, expected_role::sentinel);
  const auto guarded = read_settings("redis+sentinel://a/main",
                                     {.sentinel_user = "watcher", .sentinel_password = "s"});
  EXPECT_EQ(sentinel_settings(guarded).options.user, "watcher");
  EXPECT_EQ(sentinel_settings(guarded).options.password, "s");
  EXPECT_EQ(guarded.options.user, "");
}

TEST(RedisUrl, NamesSeveralAddressesOfAServer) {
  const auto several = read_settings("redis://u:p@a:1,b,[::1]:3/4", {});
  EXPECT_EQ(several.addresses, (std::vector<std::string>{"a:1", "b:6379", "::1:3"}));
  EXPECT_EQ(several.database, 4U);
  EXPECT_EQ(several.role, expected_role::master);
  EXPECT_EQ(read_settings("redis://a", {}).role, expected_role::data);
  EXPECT_EQ(read_settings("redis+cluster://a,b", {}).role, expected_role::any);
}

TEST(RedisUrl, InvalidUrlsAndOptionsAreRefused) {
  EXPECT_NE(settings_error("redis+sentinel://h:26379").find("/mymaster"), std::string::npos);
  EXPECT_NE(settings_error("rediss+sentinel://u:secret@h/").find("/mymaster"), std::string::npos);
  EXPECT_NE(settings_error("redis+sentinel://h/main/1").find("?db=1"), std::string::npos);
  settings_error("redis+sentinel://a,,b/main");
  settings_error("redis+sentinel://h/main?tls_ca=/x");
  settings_error("sentinel://h/main");
  EXPECT_NE(settings_error("http://h").find("redis+cluster://"), std::string::npos);
  settings_error("redis:h");
  settings_error("redis+sentinel:h/main");
  settings_error("redis://u:secret@a:1,,b:2");
  settings_error("redis://u:secret@h/x");
  settings_error("redis://h:0");
  settings_error("redis://h?db=1&x=secret");
  settings_error("redis://h/1?db=1");
  settings_error("redis://h?tls_ca=/x");
  settings_error("rediss://h?tls_verify=maybe");
  settings_error("rediss://h?tls_nonsense=1");
  settings_error("redis+cluster://h/1");
  settings_error("redis+unix://run/redis.sock");
  settings_error("redis+unix://");
  settings_error("redis://user@h");
  settings_error("redis://h", {.connections = 0});
  settings_error("redis://h", {.timeout = std::chrono::milliseconds(0)});
  settings_error("redis://h", {.attempts = 0});
  settings_error("redis://h", {.connections = std::numeric_limits<std::size_t>::max()});
  settings_error("redis+cluster://a:1,,b:2");
  settings_error("redis+cluster://a:1,");
  EXPECT_NE(settings_error("redis://::1").find("[::1]"), std::string::npos);
  settings_error("redis+cluster://a:1,fe80::1:7000");
}

}  // namespace
