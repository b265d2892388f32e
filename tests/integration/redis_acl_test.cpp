// The permissions that docs/redis.md lists are enough for sequences and outboxes: a user with
// exactly these runs both, and the server has refused nothing.

#include <holdfast/holdfast.hpp>

#include "support/eventually.hpp"
#include "support/redis_sentinels.hpp"
#include "support/redis_server.hpp"
#include "support/running_worker.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace holdfast;
using namespace holdfast::test;
using namespace std::chrono_literals;

/// The words of the command in docs/redis.md.
std::vector<std::string> documented_user() {
  std::ifstream page(HOLDFAST_TEST_REDIS_PAGE);
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("ACL SETUSER holdfast ")) continue;
    std::istringstream in(line);
    std::vector<std::string> words;
    for (std::string word; in >> word;) words.push_back(word);
    return words;
  }
  throw std::runtime_error("docs/redis.md has no line that begins with ACL SETUSER holdfast");
}

void use_sequences(const std::string& url, const std::string& name, const sequence_fence& fence) {
  const auto db = open(url);
  const auto counters = db.block_store({.fence = fence});
  EXPECT_TRUE(counters->unsafe_settings().empty());
  auto ids = db.sequence(name, {.store = {.fence = fence}});
  std::set<std::int64_t> drawn;
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(drawn.insert(ids.next()).second);
  EXPECT_TRUE(ids.peek().has_value());
  const block_request request{.name = name, .count = 5};
  EXPECT_FALSE(counters->allocate({&request, 1}).at(0).problem.has_value());
  EXPECT_FALSE(counters->list(10, {}).empty());
}

void use_outbox(const std::string& url, outbox_options options) {
  const auto events = open(url).outbox(std::move(options));
  std::atomic<int> delivered = 0;
  worker_options settings;
  settings.handling.backoff = {.first = 10ms, .longest = 100ms};
  worker deliverer{events,
                   [&](const delivery&) -> outcome {
                     // The first attempt fails, so that the event is delivered again.
                     return ++delivered == 1 ? outcome::retry("not yet") : outcome::done();
                   },
                   settings};
  for (int i = 0; i < 20; ++i)
    events.publish(
        {.type = "order.placed", .key = "order-" + std::to_string(i % 3), .payload = "{}"});
  static_cast<void>(events.schedule("reminder", 1ms, {.type = "order.late", .key = "order-1"}));
  EXPECT_EQ(events.cancel("nothing", "order-1"), cancel_status::unknown);
  EXPECT_EQ(events.recur("nightly", "0 3 * * *", {}, {.type = "t"}), recur_status::added);
  running_worker running(deliverer);
  EXPECT_TRUE(eventually([&] { return events.admin().stats().events == 0; }, 60s));
  EXPECT_GE(delivered, 21);
  running.stop();
  events.admin().pause();
  events.admin().resume();
  EXPECT_TRUE(events.admin().scan().records.empty());
  EXPECT_EQ(events.admin().recurring().size(), 1U);
  EXPECT_TRUE(events.cancel_recurring("nightly"));
  EXPECT_FALSE(events.admin().health().has_value());
}

TEST(RedisAcl, DocumentedPermissionsAreEnough) {
  redis_server master({.settings = {"repl-diskless-sync-delay 0"}});
  redis_server replica({.settings = {"repl-ping-replica-period 1"}});
  replica.run({"REPLICAOF", "127.0.0.1", std::to_string(master.port())});
  ASSERT_TRUE(eventually([&] {
    return master.run({"INFO", "replication"}).find("state=online") != std::string::npos;
  }));
  EXPECT_EQ(master.run(documented_user()), "OK");
  const auto url = "redis://holdfast:password@" + master.address();
  const auto below = open("memory:").block_store();
  use_sequences(url, "super.id", super_blocks{.source = below, .size = 1'000});
  use_sequences(url, "clock.id", clock_fence{});
  use_sequences(url, "wait.id", wait_fence{.replicas = 1, .longest = 4s});
  use_outbox(url, {.prefix = "{holdfast}"});
  use_outbox(url, {.prefix = "{holdfast-in-lanes}", .lanes = 4});
  EXPECT_EQ(master.run({"ACL", "LOG"}), "") << "the server refused something";
}

// Behind Sentinels, over a failover: no id twice, no event lost.
TEST(RedisAcl, SequencesAndOutboxesFollowSentinels) {
  redis_sentinels servers({.settings = {"appendonly yes"}});
  const auto user = documented_user();
  for (std::size_t i = 0; i < servers.size(); ++i) EXPECT_EQ(servers.node(i).run(user), "OK");
  std::string url = servers.url();
  url.insert(url.find("://") + 3, "holdfast:password@");
  const auto db = open(url, {.statement_timeout = 30s});
  const auto below = open("memory:").block_store();
  auto ids = db.sequence(
      "order.id", {.wait = 60s, .store = {.fence = super_blocks{.source = below, .size = 1'000}}});
  const auto events = db.outbox();
  std::atomic<int> delivered = 0;
  worker deliverer{events,
                   [&](const delivery&) -> outcome {
                     ++delivered;
                     return outcome::done();
                   },
                   worker_options{}};
  running_worker running(deliverer);
  std::set<std::int64_t> drawn;
  const auto use = [&] {
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(drawn.insert(ids.next()).second);
    for (int i = 0; i < 20; ++i)
      EXPECT_TRUE(eventually([&] {
        try {
          events.publish({.type = "order.placed", .key = "order-1", .payload = "{}"});
          return true;
        } catch (const error& problem) {
          EXPECT_TRUE(problem.transient()) << problem.what();
          return false;
        }
      }));
  };
  use();
  static_cast<void>(servers.fail_over());
  servers.wait_until_well();
  use();
  EXPECT_TRUE(eventually([&] { return delivered >= 40; }, 60s));
  running.stop();
}

}  // namespace
