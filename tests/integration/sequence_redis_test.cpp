// The fences of sequences on Redis, when Redis forgets: a lagging replica is promoted, a server
// restarts without its file, keys vanish. Each test also runs without a fence, to show that ids
// then come twice.

#include <holdfast/database.hpp>
#include <holdfast/key/redis.hpp>
#include <holdfast/redis.hpp>

#include "contract/sequence_fork.hpp"
#include "sequence/redis/block_store.hpp"
#include "sequence/redis/unsafe_settings.hpp"
#include "support/cutting_proxy.hpp"
#include "support/eventually.hpp"
#include "support/failure_of.hpp"
#include "support/redis_cluster.hpp"
#include "support/redis_server.hpp"
#include "support/shared_server.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::test {
namespace {

using detail::sequence::make_redis_block_store;
using detail::sequence::unsafe_redis_settings;
using namespace std::chrono_literals;

std::shared_ptr<const redis::client> client_of(const std::string& url) {
  return std::make_shared<const redis::client>(url, redis::options{.timeout = 20s});
}

std::shared_ptr<block_store> store_on(const std::string& url, sequence_fence fence) {
  return make_redis_block_store({.client = client_of(url), .fence = std::move(fence)});
}

/// All ordinals that were granted, and how many came twice.
class granted_ids {
 public:
  /// Takes blocks of ten from a store. A fence may make it wait.
  void take(block_store& store, int blocks = 1) {
    for (int i = 0; i < blocks; ++i) {
      const block_request request{.name = "order.id", .count = 10};
      std::vector<block_grant> grants;
      const bool granted = eventually([&] {
        try {
          grants = store.allocate({&request, 1});
          return true;
        } catch (const error& problem) {
          EXPECT_TRUE(problem.transient()) << problem.what();
          return false;
        }
      });
      ASSERT_TRUE(granted);
      auto& block = grants.front().block;
      ASSERT_EQ(block.size(), 10U);
      while (block.has_next()) duplicates_ += ids_.insert(block.next()).second ? 0U : 1U;
    }
  }
  [[nodiscard]] std::size_t duplicates() const { return duplicates_; }
  [[nodiscard]] std::size_t size() const { return ids_.size(); }

 private:
  std::set<std::int64_t> ids_{};
  std::size_t duplicates_ = 0;
};

/// The fences that promise no duplicates, and none.
enum class promise { super, clock, none };

sequence_fence fence_of(promise kind, const std::shared_ptr<block_store>& database) {
  if (kind == promise::super) return super_blocks{.source = database, .size = 1000};
  if (kind == promise::clock) return clock_fence{.max_skew = 300ms};
  return no_fence{};
}

class SequenceFence : public testing::TestWithParam<promise> {
 protected:
  [[nodiscard]] std::shared_ptr<block_store> store(const std::string& url) const {
    return store_on(url, fence_of(GetParam(), database_));
  }
  void expect_promise() const {
    if (GetParam() == promise::none)
      EXPECT_GT(ids.duplicates(), 0U) << "this loss does no harm, so it proves nothing";
    else EXPECT_EQ(ids.duplicates(), 0U);
  }

  granted_ids ids{};

 private:
  std::shared_ptr<block_store> database_ = make_memory_block_store();  // in place of SQL
};

TEST_P(SequenceFence, HoldsWhenALaggingReplicaIsPromoted) {
  redis_server master({.settings = {"repl-diskless-sync-delay 0"}});
  cutting_proxy link(master.port());
  redis_server replica({.settings = {"replicaof 127.0.0.1 " + std::to_string(link.port())}});
  const auto old_master = store(master.url());
  ids.take(*old_master, 3);
  ASSERT_TRUE(eventually([&] {
    return replica.run({"INFO", "replication"}).find("master_link_status:up") !=
               std::string::npos &&
           !replica.run({"HGET", "holdfast:seq:{order.id}", "last"}).empty();
  }));
  link.drop(flow::to_client);
  ids.take(*old_master, 5);
  replica.run({"REPLICAOF", "NO", "ONE"});
  const auto new_master = store(replica.url());
  ids.take(*new_master, 8);
  // The old master still runs, and clients that do not know the new one still use it. clock_fence
  // needs that this ends within max_skew.
  if (GetParam() != promise::clock) ids.take(*old_master, 3);
  ids.take(*new_master, 3);
  expect_promise();
}

TEST_P(SequenceFence, HoldsWhenAServerForgetsEverything) {
  redis_server server({.durable = false});
  const auto blocks = store(server.url());
  ids.take(*blocks, 3);
  server.kill9();
  server.start();
  ids.take(*store(server.url()), 3);
  server.run({"FLUSHALL"});
  ids.take(*store(server.url()), 3);
  expect_promise();
}

TEST_P(SequenceFence, HoldsWhenAServerRestartsFromAnOldSnapshot) {
  redis_server server({.settings = {"save 3600 1"}, .durable = false});
  ids.take(*store(server.url()), 2);
  server.run({"SAVE"});
  ids.take(*store(server.url()), 3);
  server.kill9();
  server.start();
  ids.take(*store(server.url()), 4);
  expect_promise();
}

INSTANTIATE_TEST_SUITE_P(SuperBlocks, SequenceFence, testing::Values(promise::super));
INSTANTIATE_TEST_SUITE_P(Clock, SequenceFence, testing::Values(promise::clock));
INSTANTIATE_TEST_SUITE_P(WithoutIdsComeTwice, SequenceFence, testing::Values(promise::none));

class SequenceRedis : public testing::Test {
 protected:
  [[nodiscard]] std::shared_ptr<block_store> store(sequence_fence fence) const {
    return make_redis_block_store({.client = client, .prefix = prefix, .fence = std::move(fence)});
  }

  const redis_endpoint& server = shared_server<redis_server>();
  std::string prefix = server.unique_prefix("seq");
  std::shared_ptr<const redis::client> client = client_of(server.url());
};

TEST_F(SequenceRedis, GrantsManyInOneRoundTrip) {
  std::vector<std::string> names;
  for (int i = 0; i < 100; ++i) names.push_back("n" + std::to_string(i));
  std::vector<block_request> requests;
  for (const auto& name : names) requests.push_back({.name = name, .count = 20});
  const auto database = make_memory_block_store();
  for (const auto& fence :
       std::vector<sequence_fence>{no_fence{}, super_blocks{.source = database}}) {
    const auto blocks = store(fence);
    // Connects, and loads the scripts and the super-blocks
    (void)blocks->allocate(requests);
    const auto before = client->count();
    (void)blocks->allocate(requests);
    const auto after = client->count();
    EXPECT_EQ(after.calls - before.calls, 1U);
    EXPECT_EQ(after.commands - before.commands, 100U);
    EXPECT_EQ(after.connected, before.connected);
    EXPECT_EQ(after.whole_scripts, before.whole_scripts);
  }
}

TEST_F(SequenceRedis, WaitsForReplicasAndAbandonsWhatTheyDidNotConfirm) {
  redis_server master({.settings = {"repl-diskless-sync-delay 0"}});
  cutting_proxy link(master.port());
  redis_server replica({.settings = {"replicaof 127.0.0.1 " + std::to_string(link.port())}});
  ASSERT_TRUE(eventually([&] {
    return replica.run({"INFO", "replication"}).find("master_link_status:up") != std::string::npos;
  }));
  const auto blocks = store_on(master.url(), wait_fence{.longest = 20s});
  const block_request request{.name = "order.id", .count = 10};
  EXPECT_EQ(blocks->allocate({&request, 1}).front().block.first(), 1);
  EXPECT_EQ(replica.run({"HGET", "holdfast:seq:{order.id}", "last"}), "10");
  EXPECT_TRUE(blocks->unsafe_settings().empty()) << blocks->unsafe_settings().front();

  link.drop(flow::to_client);
  const auto hasty = store_on(master.url(), wait_fence{.longest = 100ms});
  const auto refused = failure_of([&] { (void)hasty->allocate({&request, 1}); });
  EXPECT_EQ(refused.code(), errc::unavailable);
  EXPECT_TRUE(refused.transient());
  EXPECT_STREQ(refused.what(),
               "0 of 1 replicas confirmed a block within 100 ms; it is abandoned, try again when "
               "they are connected");
  // The same for a counter that is raised.
  const auto unconfirmed = failure_of([&] { (void)hasty->ensure_at_least("order.id", 15); });
  EXPECT_EQ(unconfirmed.code(), errc::unavailable);
  EXPECT_TRUE(unconfirmed.transient());
  EXPECT_STREQ(unconfirmed.what(),
               "0 of 1 replicas confirmed within 100 ms that the counter was raised; a failover "
               "may forget it, so try again when they are "
               "connected");
  // Requests of one call share the time: they do not each wait for the whole of it.
  const std::vector<std::string> names{"a", "b", "c", "d", "e", "f", "g", "h"};
  std::vector<block_request> many;
  for (const auto& name : names) many.push_back({.name = name, .count = 1});
  const auto patient = store_on(master.url(), wait_fence{.longest = 800ms});
  for (const auto& grant : patient->allocate(many)) {
    ASSERT_TRUE(grant.problem.has_value());
    EXPECT_STREQ(grant.problem->what(),
                 "0 of 1 replicas confirmed a block within 100 ms; it is abandoned, try again when "
                 "they are connected");
  }
  link.drop(flow::to_client, false);
  link.cut();
  std::int64_t first = 0;
  EXPECT_TRUE(eventually([&] {
    try {
      first = blocks->allocate({&request, 1}).front().block.first();
      return true;
    } catch (const error&) {
      return false;
    }
  }));
  EXPECT_GE(first, 21) << "abandoned blocks are a gap";
}

TEST_F(SequenceRedis, NeverRunsAheadOfTheClock) {
  const auto blocks = store(clock_fence{.max_skew = 0ms, .rate = 1000});
  const block_request little{.name = "slow", .count = 1};
  std::int64_t first = 0;
  ASSERT_TRUE(eventually([&] {
    try {
      first = blocks->allocate({&little, 1}).front().block.first();
      return true;
    } catch (const error&) {
      return false;
    }
  }));
  EXPECT_GT(first, 1'000'000) << "a thousand ordinals per second since the origin";
  const block_request much{.name = "slow", .count = 3'600'000};
  const auto refused = failure_of([&] { (void)blocks->allocate({&much, 1}); });
  EXPECT_TRUE(refused.transient());
  EXPECT_NE(std::string(refused.what()).find("waits for the clock"), std::string::npos)
      << refused.what();
  const block_request round{.name = "slow", .count = 1, .cycle = true};
  EXPECT_EQ(failure_of([&] { (void)blocks->allocate({&round, 1}); }).code(),
            errc::invalid_argument);
}

TEST_F(SequenceRedis, AskingAgainAfterALostReplyCostsAGap) {
  cutting_proxy link(server.port());
  const auto blocks =
      make_redis_block_store({.client = client_of(redis_endpoint::url_through(link.port())),
                              .prefix = prefix,
                              .fence = no_fence{}});
  const block_request request{.name = "n", .count = 10};
  EXPECT_EQ(blocks->allocate({&request, 1}).front().block.first(), 1);
  link.cut_after(flow::to_client, 0);
  EXPECT_EQ(blocks->allocate({&request, 1}).front().block.first(), 21) << "11 to 20 are a gap";
  EXPECT_TRUE(link.cut_done());
}

TEST_F(SequenceRedis, ASuperBlockIsBroughtOnceAndNeverAgain) {
  cutting_proxy link(server.port());
  const auto database = make_memory_block_store();
  const auto blocks =
      make_redis_block_store({.client = client_of(redis_endpoint::url_through(link.port())),
                              .prefix = prefix,
                              .fence = super_blocks{.source = database, .size = 100}});
  const block_request request{.name = "n", .count = 100};
  EXPECT_EQ(blocks->allocate({&request, 1}).front().block.first(), 1);
  // Redis is asked three times: without a super-block, again under the lock, and with a new
  // super-block. The reply to the last one is lost.
  const auto forwarded = link.bytes(flow::to_client);
  (void)blocks->allocate({&request, 1});
  const auto whole = link.bytes(flow::to_client) - forwarded;
  link.cut_after(flow::to_client, whole - 10);
  const auto lost = failure_of([&] { (void)blocks->allocate({&request, 1}); });
  EXPECT_TRUE(lost.in_doubt()) << lost.what();
  EXPECT_EQ(database->peek("n")->last, 300);
  // The super-block arrived, so the next block comes after it.
  EXPECT_EQ(blocks->allocate({&request, 1}).front().block.first(), 301);
}

/// An SQL database that can be down.
class fallible_database final : public block_store {
 public:
  std::vector<block_grant> allocate(std::span<const block_request> requests) override {
    if (down) throw error(errc::unavailable, "the database is down", {.transient = true});
    return counters_->allocate(requests);
  }
  std::optional<counter_state> peek(std::string_view name) override {
    return counters_->peek(name);
  }
  counter_state ensure_at_least(std::string_view name, std::int64_t ordinal) override {
    return counters_->ensure_at_least(name, ordinal);
  }
  bool reset(std::string_view name, std::int64_t ordinal, counter_state expected) override {
    return counters_->reset(name, ordinal, expected);
  }
  bool give_back(std::string_view name, std::int64_t used, counter_state granted) override {
    return counters_->give_back(name, used, granted);
  }
  std::vector<named_counter> list(std::size_t limit, std::string_view after) override {
    return counters_->list(limit, after);
  }
  std::vector<std::string> unsafe_settings() override { return {}; }

  bool down = false;

 private:
  std::shared_ptr<block_store> counters_ = make_memory_block_store();
};

TEST_F(SequenceRedis, AMissingSuperBlockAffectsOnlyTheSequenceThatNeedsIt) {
  const auto database = std::make_shared<fallible_database>();
  const auto blocks = store(super_blocks{.source = database, .size = 1000});
  const std::vector<block_request> requests{{.name = "has", .count = 10},
                                            {.name = "needs", .count = 10}};
  EXPECT_EQ(blocks->allocate({requests.data(), 1}).front().block.first(), 1);
  database->down = true;
  const auto grants = blocks->allocate(requests);
  ASSERT_EQ(grants.size(), 2U);
  EXPECT_FALSE(grants[0].problem.has_value());
  EXPECT_EQ(grants[0].block.first(), 11);
  ASSERT_TRUE(grants[1].problem.has_value());
  EXPECT_STREQ(grants[1].problem->what(), "the database is down");
  EXPECT_TRUE(grants[1].problem->transient());
  const auto alone = failure_of([&] { (void)blocks->allocate({&requests[1], 1}); });
  EXPECT_STREQ(alone.what(), "the database is down");
  database->down = false;
  EXPECT_EQ(blocks->allocate({&requests[1], 1}).front().block.first(), 1);
}

TEST_F(SequenceRedis, AProcessNeverGetsALowerBlockThanBefore) {
  const auto database = make_memory_block_store();
  const super_blocks fence{.source = database, .size = 1000};
  const auto stayed = store(fence);
  const block_request request{.name = "n", .count = 10};
  EXPECT_EQ(stayed->allocate({&request, 1}).front().block.first(), 1);
  // Another process uses another Redis for a while, which has the next thousand.
  redis_server elsewhere({.durable = false});
  cutting_proxy link(elsewhere.port());
  const auto roamed =
      make_redis_block_store({.client = client_of(redis_endpoint::url_through(link.port())),
                              .prefix = prefix,
                              .fence = fence});
  EXPECT_EQ(roamed->allocate({&request, 1}).front().block.first(), 1001);
  link.retarget(server.port());
  link.cut();
  EXPECT_EQ(roamed->allocate({&request, 1}).front().block.first(), 2001)
      << "the rest of the first thousand is below what it was granted";
  EXPECT_EQ(database->peek("n")->last, 3000) << "one super-block was enough";
  EXPECT_EQ(stayed->allocate({&request, 1}).front().block.first(), 2011);
}

TEST_F(SequenceRedis, SuperBlocksOfManyProcessesDoNotOverlap) {
  const auto database = make_memory_block_store();
  granted_ids ids;
  std::vector<std::shared_ptr<block_store>> processes;
  for (int i = 0; i < 4; ++i)
    processes.push_back(store(super_blocks{.source = database, .size = 15}));
  for (int round = 0; round < 20; ++round) {
    for (const auto& process : processes) ids.take(*process);
  }
  EXPECT_EQ(ids.duplicates(), 0U);
  EXPECT_EQ(ids.size(), 800U);
}

TEST_F(SequenceRedis, AFenceMustBeChosenAndValid) {
  const auto refusal = [&](sequence_fence fence) {
    const auto refused = failure_of([&] { (void)store(std::move(fence)); });
    EXPECT_EQ(refused.code(), errc::invalid_argument);
    return std::string(refused.what());
  };
  EXPECT_NE(refusal({}).find("choose a fence: super_blocks"), std::string::npos);
  EXPECT_NE(refusal(super_blocks{}).find("super_blocks.source is null"), std::string::npos);
  EXPECT_NE(
      refusal(super_blocks{.source = make_memory_block_store(), .size = 0}).find("1 to 2147483648"),
      std::string::npos);
  EXPECT_NE(refusal(clock_fence{.rate = 0}).find("1 to 1000000"), std::string::npos);
  EXPECT_NE(refusal(clock_fence{.max_skew = -1ms}).find("max_skew"), std::string::npos);
  EXPECT_NE(refusal(wait_fence{.replicas = 0}).find("wait_fence.replicas is 0"), std::string::npos);
  EXPECT_NE(refusal(wait_fence{.longest = 0ms}).find("wait_fence.longest must be positive"),
            std::string::npos);
  prefix = "with{brace}";
  EXPECT_NE(refusal(no_fence{}).find("prefix"), std::string::npos);
}

TEST_F(SequenceRedis, ASequenceWithAnotherFenceThanAnOpenOneIsRefused) {
  const auto db = open(server.url());
  const auto opened = [&](const std::string& name, sequence_fence fence, bool unsafe = false) {
    return db.sequence(
        name, {.store = {.prefix = prefix, .allow_unsafe = unsafe, .fence = std::move(fence)}});
  };
  const auto refusal = [&](sequence_fence fence, bool unsafe = false) {
    const auto refused = failure_of([&] { (void)opened("b", std::move(fence), unsafe).next(); });
    EXPECT_EQ(refused.code(), errc::invalid_argument) << refused.what();
    return std::string(refused.what());
  };
  const auto database = make_memory_block_store();
  {
    auto first = opened("a", no_fence{});
    EXPECT_EQ(first.next(), 1);
    EXPECT_EQ(opened("a", no_fence{}).next(), 21) << "the same fence is accepted";
    EXPECT_NE(refusal(super_blocks{.source = database}).find("opened with another fence"),
              std::string::npos);
    EXPECT_NE(refusal(clock_fence{}).find("opened with another fence"), std::string::npos);
    EXPECT_NE(refusal(no_fence{}, true).find("opened with another allow_unsafe"),
              std::string::npos);
    EXPECT_NE(refusal({}).find("choose a fence"), std::string::npos);
    EXPECT_EQ(db.sequence("b", {.store = {.prefix = prefix + ".",
                                          .fence = super_blocks{.source = database}}})
                  .next(),
              1);
  }
  // When the first sequence is closed, another fence can be chosen.
  auto b = opened("b", super_blocks{.source = database, .size = 1000});
  EXPECT_EQ(b.next(), 1'000'001) << "the other prefix has the first million";
  EXPECT_EQ(database->peek("b")->last, 1'001'000);
  EXPECT_NE(
      refusal(super_blocks{.source = database, .size = 999}).find("opened with another fence"),
      std::string::npos);
  // Another block store may be another database, so it gets a source of its own.
  const auto other = make_memory_block_store();
  auto c = opened("c", super_blocks{.source = other, .size = 1000});
  EXPECT_EQ(c.next(), 1);
  EXPECT_EQ(other->peek("c")->last, 1000);
}

TEST_F(SequenceRedis, ReportsUnsafeSettings) {
  EXPECT_TRUE(store(no_fence{})->unsafe_settings().empty());
  redis_server careless({.settings = {"maxmemory-policy allkeys-lru"}, .durable = false});
  const auto reasons = store_on(careless.url(), no_fence{})->unsafe_settings();
  ASSERT_EQ(reasons.size(), 2U);
  EXPECT_NE(reasons[0].find("keeps no append-only file"), std::string::npos) << reasons[0];
  EXPECT_NE(reasons[1].find("maxmemory-policy allkeys-lru"), std::string::npos) << reasons[1];
  EXPECT_EQ(store_on(careless.url(), wait_fence{})->unsafe_settings().size(), 3U)
      << "and it has no replica";
  // These fences do not depend on what Redis remembers.
  EXPECT_TRUE(store_on(careless.url(), super_blocks{.source = make_memory_block_store()})
                  ->unsafe_settings()
                  .empty());
  EXPECT_TRUE(store_on(careless.url(), clock_fence{})->unsafe_settings().empty());

  redis::server_report report{.address = "a:1",
                              .role = "master",
                              .aof = true,
                              .appendfsync = "everysec",
                              .eviction = "noeviction"};
  EXPECT_EQ(unsafe_redis_settings(report, no_fence{}).size(), 1U)
      << "a power failure loses a second";
  report.appendfsync = "";  // CONFIG is forbidden: an unknown setting counts as unsafe
  ASSERT_EQ(unsafe_redis_settings(report, no_fence{}).size(), 1U);
  EXPECT_EQ(unsafe_redis_settings(report, no_fence{}).front(),
            "it does not tell when its file is synced; allow CONFIG GET appendfsync");
  report.appendfsync = "always";
  EXPECT_TRUE(unsafe_redis_settings(report, no_fence{}).empty());
}

TEST_F(SequenceRedis, AKeyThatIsNotACounterIsAnError) {
  const auto blocks = store(no_fence{});
  const block_request request{.name = "odd", .count = 1};
  server.run({"SET", prefix + "holdfast:seq:{odd}", "text"});
  EXPECT_NE(std::string(failure_of([&] { (void)blocks->allocate({&request, 1}); }).what())
                .find("WRONGTYPE"),
            std::string::npos);
  server.run({"DEL", prefix + "holdfast:seq:{odd}"});
  server.run({"HSET", prefix + "holdfast:seq:{odd}", "last", "many"});
  EXPECT_NE(std::string(failure_of([&] { (void)blocks->allocate({&request, 1}); }).what())
                .find("does not hold a sequence counter"),
            std::string::npos);
}

TEST_F(SequenceRedis, AForkedChildMustOpenTheDatabaseAgain) {
  const sequence_options options{.store = {.prefix = prefix, .fence = no_fence{}}};
  const auto db = open(server.url());
  auto ids = db.sequence("family", options);
  auto handle = ids.handle();
  const auto blocks = db.block_store(options.store);
  std::set<std::int64_t> all;
  for (int i = 0; i < 25; ++i) {
    all.insert(ids.next());
    all.insert(handle.next());
  }
  EXPECT_EQ(in_forked_child([&] {
              return not_refused("peek of a store", [&] { (void)blocks->peek("family"); }) +
                     use_in_child(ids, handle);
            }),
            "");
  std::istringstream child_ids(in_forked_child([&] {
    auto own = open(server.url()).sequence("family", options);
    std::string text;
    for (int i = 0; i < 30; ++i) text += std::to_string(own.next()) + "\n";
    return text;
  }));
  for (std::int64_t id = 0; child_ids >> id;) all.insert(id);
  for (int i = 0; i < 30; ++i) all.insert(ids.next());
  EXPECT_EQ(all.size(), 110U) << "an id came twice";
}

// ---- What a replica, another fence, a failover and a hung server do.

/// A replica that is writable has the replication id of its master, and grants the same ids.
TEST(SequenceReplica, AWritableReplicaGrantsNothing) {
  redis_server master({.settings = {"repl-diskless-sync-delay 0"}});
  redis_server replica({.settings = {"replicaof 127.0.0.1 " + std::to_string(master.port()),
                                     "replica-read-only no"}});
  const auto database = make_memory_block_store();
  for (const auto& fence :
       std::vector<sequence_fence>{super_blocks{.source = database, .size = 1000},
                                   clock_fence{.max_skew = 100ms}, no_fence{}}) {
    granted_ids ids;
    const auto on_master = make_redis_block_store({.client = client_of(master.url()),
                                                   .prefix = "f" + std::to_string(fence.index()),
                                                   .fence = fence});
    ids.take(*on_master, 3);
    ASSERT_TRUE(eventually([&] {
      return !replica
                  .run({"HGET", "f" + std::to_string(fence.index()) + "holdfast:seq:{order.id}",
                        "last"})
                  .empty();
    }));
    const auto on_replica = make_redis_block_store({.client = client_of(replica.url()),
                                                    .prefix = "f" + std::to_string(fence.index()),
                                                    .fence = fence});
    const block_request request{.name = "order.id", .count = 10};
    const auto refused = failure_of([&] { (void)on_replica->allocate({&request, 1}); });
    EXPECT_TRUE(refused.transient()) << refused.what();
    EXPECT_NE(std::string(refused.what()).find("replica"), std::string::npos) << refused.what();
    EXPECT_TRUE(failure_of([&] { (void)on_replica->ensure_at_least("order.id", 5); }).transient());
  }
}

/// A counter that lives under clock_fence is far beyond the first super-blocks. It is changed on
/// purpose, and costs one super-block, not millions.
TEST_F(SequenceRedis, TheFenceOfALivingCounterIsChanged) {
  const auto database = make_memory_block_store();
  const auto open_with = [&](sequence_fence fence) {
    return open(server.url(), {})
        .sequence("order.id",
                  {.blocks = fixed_blocks{20},
                   .wait = 30s,
                   .store = {.prefix = prefix, .allow_unsafe = true, .fence = std::move(fence)}});
  };
  auto by_clock = open_with(clock_fence{.max_skew = 100ms});
  std::set<std::int64_t> ids;
  for (int i = 0; i < 30; ++i) ids.insert(by_clock.next());
  auto other_rate = open_with(clock_fence{.max_skew = 100ms, .rate = 1000});
  EXPECT_EQ(failure_of([&] { (void)other_rate.next(); }).code(), errc::invalid_argument);
  auto super = open_with(super_blocks{.source = database, .size = 1000});
  EXPECT_EQ(failure_of([&] { (void)super.next(); }).code(), errc::invalid_argument);
  super.redefine(super.definition().value_or(""));
  const auto first = super.next();
  EXPECT_GT(first, *ids.rbegin());
  for (int i = 0; i < 2000; ++i) EXPECT_TRUE(ids.insert(super.next()).second);
  EXPECT_LT(*ids.rbegin(), first + 20'000) << "it does not burn ids";
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(ids.insert(by_clock.next()).second) << "what it leased";
  EXPECT_EQ(failure_of([&] { (void)by_clock.next(); }).code(), errc::invalid_argument);
}

/// The same without a definition: a counter of an earlier version.
TEST_F(SequenceRedis, ACounterBeyondItsSourceCostsOneSuperBlock) {
  const auto database = make_memory_block_store();
  const auto blocks = store(super_blocks{.source = database, .size = 1000});
  server.run({"HSET", prefix + "holdfast:seq:{old}", "last", "5000000000", "epoch", "1"});
  const block_request request{.name = "old", .count = 10};
  EXPECT_EQ(blocks->allocate({&request, 1}).front().block.first(), 5'000'000'001);
  EXPECT_EQ(blocks->allocate({&request, 1}).front().block.first(), 5'000'000'011);
  EXPECT_EQ(database->peek("old")->last, 5'000'001'000);
}

/// After a restart clock_fence continues above the time; peek and ensure_at_least know it.
TEST(SequenceClock, PeekAndRaiseAreAboveWhatAnotherServerMayHaveGranted) {
  redis_server server({.settings = {"save 3600 1"}, .durable = false});
  const auto blocks = store_on(server.url(), clock_fence{.max_skew = 100ms});
  granted_ids ids;
  ids.take(*blocks, 1);
  server.run({"SAVE"});
  std::int64_t highest = 0;
  for (int i = 0; i < 3; ++i) {
    const block_request request{.name = "order.id", .count = 10};
    ASSERT_TRUE(eventually([&] {
      try {
        highest = blocks->allocate({&request, 1}).front().block.last();
        return true;
      } catch (const error&) {
        return false;
      }
    }));
  }
  server.kill9();
  server.start();
  const auto again = store_on(server.url(), clock_fence{.max_skew = 100ms});
  ASSERT_TRUE(again->peek("order.id").has_value());
  EXPECT_GE(again->peek("order.id")->last, highest);
  EXPECT_GE(again->ensure_at_least("order.id", 1).last, highest);
  ids.take(*again, 1);
  EXPECT_GT(again->peek("order.id")->last, highest);
}

/// After a failover only the replicas know that the counter was raised beyond the time.
TEST(SequenceClock, ARaiseNeedsTheReplicas) {
  redis_server master({.settings = {"repl-diskless-sync-delay 0"}});
  redis_server replica({.settings = {"replicaof 127.0.0.1 " + std::to_string(master.port())}});
  const auto blocks = store_on(master.url(), clock_fence{.max_skew = 100ms});
  // The replica confirms when it is in step, within half a second each time.
  ASSERT_TRUE(eventually([&] {
    if (master.run({"INFO", "replication"}).find("state=online") == std::string::npos) return false;
    try {
      return blocks->ensure_at_least("order.id", 1000).last >= 1000;
    } catch (const error& late) {
      return !late.transient();
    }
  }));
  replica.pause();
  const auto refused = failure_of([&] { (void)blocks->ensure_at_least("order.id", 2000); });
  replica.resume();
  EXPECT_TRUE(refused.transient()) << refused.what();
  EXPECT_NE(std::string(refused.what()).find("0 of 1 replicas confirmed"), std::string::npos)
      << refused.what();
}

/// A node of a Cluster hangs: sequences on other nodes continue.
TEST(SequenceCluster, AHungNodeDoesNotStopTheOthers) {
  redis_cluster cluster({.node_timeout = 60'000ms});
  auto db = open(cluster.url_of_all());
  const sequence_options options{.blocks = fixed_blocks{20},
                                 .store = {.allow_unsafe = true, .fence = no_fence{}}};
  const auto hung_node = cluster.master_of(key::redis_slot("{n0}"));
  std::vector<sequence> on_hung;
  std::vector<sequence> on_others;
  for (int i = 0; on_hung.size() < 20 || on_others.size() < 4; ++i) {
    const std::string name = "n" + std::to_string(i);
    const bool hung = cluster.master_of(key::redis_slot("{" + name + "}")) == hung_node;
    auto& group = hung ? on_hung : on_others;
    group.push_back(db.sequence(name, options));
    EXPECT_EQ(group.back().next(), 1);
    for (int k = 0; k < 19; ++k) (void)group.back().next();
  }
  cluster.node(hung_node).pause();
  for (auto& ids : on_hung) EXPECT_EQ(ids.try_next(), std::nullopt);
  for (int k = 21; k <= 400; ++k) {
    for (auto& ids : on_others) ASSERT_EQ(ids.next(std::chrono::steady_clock::now() + 3s), k);
  }
  cluster.node(hung_node).resume();
  for (auto& ids : on_hung) EXPECT_GE(ids.next(std::chrono::steady_clock::now() + 60s), 21);
}

/// A database that hangs when it is asked for a super-block of "hung".
class hanging_database final : public block_store {
 public:
  std::vector<block_grant> allocate(std::span<const block_request> requests) override {
    if (requests.front().name == "hung") {
      std::unique_lock lock(mutex_);
      ++hung_calls_;
      changed_.notify_all();
      changed_.wait(lock, [this] { return released_; });
    }
    return counters_->allocate(requests);
  }
  std::optional<counter_state> peek(std::string_view name) override {
    return counters_->peek(name);
  }
  counter_state ensure_at_least(std::string_view name, std::int64_t ordinal) override {
    return counters_->ensure_at_least(name, ordinal);
  }
  bool reset(std::string_view name, std::int64_t ordinal, counter_state expected) override {
    return counters_->reset(name, ordinal, expected);
  }
  bool give_back(std::string_view name, std::int64_t used, counter_state granted) override {
    return counters_->give_back(name, used, granted);
  }
  std::vector<named_counter> list(std::size_t limit, std::string_view after) override {
    return counters_->list(limit, after);
  }
  std::vector<std::string> unsafe_settings() override { return {}; }

  void await_hung_call() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return hung_calls_ != 0; });
  }
  void release() {
    const std::scoped_lock lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }

 private:
  std::shared_ptr<block_store> counters_ = make_memory_block_store();
  std::mutex mutex_{};
  std::condition_variable changed_{};
  bool released_ = false;
  int hung_calls_ = 0;
};

/// A call with several requests does not lease a super-block: the source may be slow.
TEST_F(SequenceRedis, ARequestThatNeedsASuperBlockIsMadeAlone) {
  const auto blocks = store(super_blocks{.source = make_memory_block_store(), .size = 1000});
  const block_request first{.name = "first", .count = 10};
  EXPECT_EQ(blocks->allocate({&first, 1}).at(0).block.last(), 10);
  const std::vector<block_request> both{{.name = "first", .count = 10, .accepts_busy = true},
                                        {.name = "new", .count = 10, .accepts_busy = true}};
  const auto grants = blocks->allocate(both);
  EXPECT_EQ(grants.at(0).block.last(), 20);
  EXPECT_TRUE(grants.at(1).busy);
  EXPECT_FALSE(grants.at(1).block.has_next());
}

TEST_F(SequenceRedis, ASourceThatHangsStopsOnlyTheSequenceThatNeedsASuperBlock) {
  const auto database = std::make_shared<hanging_database>();
  auto db = open(server.url());
  const sequence_options options{
      .store = {.prefix = prefix, .fence = super_blocks{.source = database, .size = 100'000}}};
  auto other = db.sequence("other", options);
  EXPECT_EQ(other.next(), 1);
  auto hung = db.sequence("hung", options);
  EXPECT_EQ(hung.try_next(), std::nullopt);
  database->await_hung_call();
  for (int i = 2; i <= 2000; ++i) ASSERT_EQ(other.next(std::chrono::steady_clock::now() + 3s), i);
  // A third one gets its super-block meanwhile.
  EXPECT_EQ(db.sequence("third", options).next(std::chrono::steady_clock::now() + 3s), 1);
  database->release();
  EXPECT_EQ(hung.next(std::chrono::steady_clock::now() + 60s), 1);
}

}  // namespace
}  // namespace holdfast::test
