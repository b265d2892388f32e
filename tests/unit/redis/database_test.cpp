#include "database/database.hpp"

#include <holdfast/store/probe.hpp>

#include "support/failure_of.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>

namespace {

using namespace holdfast;
using holdfast::test::failure_of;
using namespace std::chrono_literals;

TEST(RedisDatabase, OpensEveryRedisUrlWithoutConnecting) {
  for (const auto* url :
       {"redis://127.0.0.1:1/3", "rediss://127.0.0.1:1?tls_verify=0",
        "redis+unix:///nowhere/redis.sock", "redis+cluster://127.0.0.1:1,127.0.0.1:2"}) {
    const auto db = open(url);
    ASSERT_NE(db.shared()->redis, nullptr) << url;
    EXPECT_EQ(db.shared()->redis->is_cluster(), std::string(url).starts_with("redis+cluster"))
        << url;
    EXPECT_EQ(db.shared()->sql, nullptr) << url;
    EXPECT_FALSE(db.shared()->in_memory()) << url;
    EXPECT_EQ(db.dialect(), sql::dialect_id::unknown) << url;
    EXPECT_EQ(db.shared()->redis->count().connected, 0U) << url;
  }
}

TEST(RedisDatabase, CopiesShareOneClient) {
  const auto db = open("redis://127.0.0.1:1");
  const auto copy = db;
  EXPECT_EQ(copy.shared()->redis.get(), db.shared()->redis.get());
}

TEST(RedisDatabase, RefusesToBeAStore) {
  const auto db = open("redis://127.0.0.1:1");
  const auto refused = failure_of([&] { (void)db.store(); });
  EXPECT_EQ(refused.code(), errc::invalid_argument);
  EXPECT_STREQ(refused.what(),
               "url: the store of entries cannot live on Redis, which keeps sequences and "
               "outboxes; open memory:, sqlite:, postgresql:// "
               "or mysql://");
  EXPECT_EQ(failure_of([&] { (void)probe(db); }).code(), errc::invalid_argument);
  EXPECT_TRUE(open("memory:").shared()->in_memory());
}

TEST(RedisDatabase, ErrorsOfInvalidUrlsDoNotContainThePassword) {
  for (const auto* url : {"redis+sentinel://:secret@h", "redis://:secret@h/nonsense",
                          "redis:nowhere", "redis+cluster://h/3", "redisx://h"}) {
    const auto refused = failure_of([&] { (void)open(url); });
    EXPECT_EQ(refused.code(), errc::invalid_argument) << url;
    EXPECT_EQ(std::string(refused.what()).find("secret"), std::string::npos) << refused.what();
  }
  EXPECT_EQ(failure_of([] { (void)open("redis://h", {.pool = {.maximum = 0}}); }).code(),
            errc::invalid_argument);
}

TEST(RedisDatabase, PassesLogMetricsAndTimeoutsToTheClient) {
  const auto registry = make_prometheus_registry();
  std::atomic<int> lines{0};
  const auto db = open("redis://127.0.0.1:1", {.connect_timeout = 200ms,
                                               .statement_timeout = 300ms,
                                               .log = [&lines](const log_record&) { ++lines; },
                                               .metrics = registry});
  const auto began = std::chrono::steady_clock::now();
  EXPECT_TRUE(
      failure_of([&] { (void)db.shared()->redis->call(redis::command("PING")); }).transient());
  EXPECT_LT(std::chrono::steady_clock::now() - began, 30s);
  EXPECT_GT(lines.load(), 0);
  EXPECT_NE(registry->text().find("holdfast_redis_"), std::string::npos);
}

}  // namespace
