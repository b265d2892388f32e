// Recurring events on Redis whose keys other programs have damaged.

#include <holdfast/database.hpp>
#include <holdfast/outbox.hpp>

#include "support/eventually.hpp"
#include "support/redis_server.hpp"
#include "support/shared_server.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

/// Two recurring events: `bad` is damaged, `good` must go on.
struct recurring_on_redis {
  const redis_endpoint& server = shared_server<redis_server>();
  std::string prefix = "{" + server.unique_prefix("recurring") + "}";
  outbox box = open(server.url()).outbox({.prefix = prefix});
  std::string texts = prefix + ":recurring";
  std::string due = prefix + ":recurring-due";

  recurring_on_redis() {
    define("good");
    define("bad");
  }
  recur_status define(const std::string& name) const {
    return box.recur(name, "* * * * * *", {.tolerance = 1h}, {.type = name});
  }
  /// Drains until an event of this type is published.
  [[nodiscard]] bool publishes(const std::string& type) const {
    return eventually(
        [&] {
          (void)box.drain(0);
          bool published = false;
          for (;;) {
            const auto got = box.claim();
            if (got.events.empty()) return published;
            for (const auto& one : got.events) {
              published |= one.event.type == type;
              EXPECT_TRUE(box.ack(got.fence, one));
            }
          }
        },
        60s);
  }
  [[nodiscard]] std::string problem() const {
    for (const auto& one : box.admin().recurring())
      if (one.name == "bad") return one.problem.empty() ? "none" : "shown";
    return "gone";
  }
};

TEST(OutboxRecurringDamage, ATimeThatIsGoneIsRestored) {
  const recurring_on_redis store;
  EXPECT_EQ(store.server.run({"ZREM", store.due, "bad"}), "1");
  EXPECT_TRUE(store.publishes("bad"));
  EXPECT_TRUE(store.publishes("good"));
  (void)store.server.run({"DEL", store.due});
  EXPECT_TRUE(store.publishes("bad"));
  EXPECT_TRUE(store.publishes("good"));
}

TEST(OutboxRecurringDamage, ATimeThatIsWrongIsReviewed) {
  for (const char* score : {"inf", "-inf", "0", "-5", "9e300", "1e18", "1.5"}) {
    SCOPED_TRACE(score);
    const recurring_on_redis store;
    (void)store.server.run({"ZADD", store.due, score, "bad"});
    EXPECT_EQ(store.box.admin().recurring().size(), 2U);
    EXPECT_TRUE(store.publishes("bad"));
    EXPECT_TRUE(store.publishes("good"));
  }
}

TEST(OutboxRecurringDamage, ATextThatIsWrongDoesNotStopTheOthers) {
  for (const char* text :
       {"", "x", "{}", "{\"v\":1}\n", "\n", "{\"v\":1,\"cron\":7}\n\"type\":\"t\""}) {
    SCOPED_TRACE(text);
    const recurring_on_redis store;
    (void)store.server.run({"HSET", store.texts, "bad", text});
    (void)store.server.run({"ZADD", store.due, "1", "bad"});
    EXPECT_TRUE(store.publishes("good"));
    EXPECT_EQ(store.problem(), "shown");
    EXPECT_EQ(store.define("bad"), recur_status::changed);
    EXPECT_TRUE(store.publishes("bad"));
  }
}

TEST(OutboxRecurringDamage, ATextThatIsGoneIsDefinedAgain) {
  const recurring_on_redis store;
  EXPECT_EQ(store.server.run({"HDEL", store.texts, "bad"}), "1");
  EXPECT_TRUE(store.publishes("good"));
  EXPECT_EQ(store.problem(), "gone");
  EXPECT_EQ(store.define("bad"), recur_status::added);
  EXPECT_TRUE(store.publishes("bad"));
}

}  // namespace
}  // namespace holdfast::test
