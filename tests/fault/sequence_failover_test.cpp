// Databases that die, freeze, are cut off, lose power, or are replaced by a lagging copy: no id
// comes twice. Each test also runs without the protection, to show that it can fail.

#include <holdfast/database.hpp>
#include <holdfast/key/redis.hpp>
#include <holdfast/sequence.hpp>

#include "fault/sequence_ids.hpp"
#include "support/cutting_proxy.hpp"
#include "support/eventually.hpp"
#include "support/failure_of.hpp"
#include "support/mariadb_server.hpp"
#include "support/postgres_server.hpp"
#include "support/redis_cluster.hpp"
#include "support/redis_server.hpp"
#include "support/shared_server.hpp"
#include "support/temporary_directory.hpp"
#include "support/unsynced_vfs.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <iostream>
#include <random>
#include <string>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

// ---- The server is killed.

/// How many ids came twice when a server was killed and started a few times under load.
template <class Server>
std::size_t duplicates_after_server_kills(Server& server, const drawing::opener& open, int kills) {
  drawing load(3, open);
  for (int i = 0; i < kills; ++i) {
    wait_for_more(load);
    server.kill9();
    server.start();
  }
  wait_for_more(load);
  return count_duplicates(load.finish());
}

TEST(SequenceServerKill, NoIdTwiceOnPostgres) {
  postgres_server server;
  prepare(server.url());
  EXPECT_EQ(duplicates_after_server_kills(server, drawer_of(server.url()), 4), 0U);
}

TEST(SequenceServerKill, NoIdTwiceOnMariadb) {
  mariadb_server server;
  prepare(server.url());
  EXPECT_EQ(duplicates_after_server_kills(server, drawer_of(server.url()), 2), 0U);
}

TEST(SequenceServerKill, NoIdTwiceOnRedisThatSyncs) {
  redis_server server;
  EXPECT_EQ(
      duplicates_after_server_kills(server, drawer_of(server.url(), {.fence = no_fence{}}), 4), 0U);
}

TEST(SequenceServerKill, WithoutSynchronousCommitPostgresIsRefusedOrRepeatsIds) {
  postgres_server server({.settings = {"synchronous_commit=off", "wal_writer_delay=10s"}});
  prepare(server.url());
  const auto refused = failure_of([&] { (void)drawer_of(server.url())().next(); });
  EXPECT_NE(std::string(refused.what()).find("synchronous_commit"), std::string::npos)
      << refused.what();
  EXPECT_GT(
      duplicates_after_server_kills(server, drawer_of(server.url(), {.allow_unsafe = true}), 4),
      0U);
}

// ---- A lagging copy is promoted.

/// Draws from a primary, cuts its standby off, draws more, kills the primary, and continues with
/// the standby: one sequence with failover_skip, one without.
TEST(SequenceFailover, ALaggingPostgresStandbyGrantsNothingTwiceWithFailoverSkip) {
  postgres_server primary;
  prepare(primary.url());
  cutting_proxy link(primary.port());
  postgres_server standby(primary, link.port());
  cutting_proxy front(primary.port());
  const auto url = primary.url_through(front.port());
  const auto bare_url =
      url + (url.find('?') == std::string::npos ? "?" : "&") + "application_name=bare";
  drawing careful(2, [&] {
    return open(url).sequence(
        "careful.id", {.blocks = fixed_blocks{.size = 20}, .store = {.failover_skip = 10'000'000}});
  });
  drawing bare(
      2, [&] { return open(bare_url).sequence("bare.id", {.blocks = fixed_blocks{.size = 20}}); });
  wait_for_more(careful);
  wait_for_more(bare);
  ASSERT_TRUE(eventually([&] { return standby.run("SELECT count(*) FROM sequences") == "2\n"; }));
  link.drop(flow::to_client);
  wait_for_more(careful);
  wait_for_more(bare);
  primary.kill9();
  standby.promote();
  front.retarget(standby.port());
  front.cut();
  wait_for_more(careful);
  wait_for_more(bare);
  EXPECT_EQ(count_duplicates(careful.finish()), 0U);
  EXPECT_EQ(careful.alarms(), 0U);
  EXPECT_GT(count_duplicates(bare.finish()), 0U) << "the standby did not lag, so nothing is proved";
}

/// The same with a master of a Redis Cluster. Both sequences are in one slot.
TEST(SequenceFailover, ARedisClusterThatLostItsMasterGrantsNothingTwiceWithAFence) {
  redis_cluster cluster({.node_timeout = 2'000ms});
  const temporary_directory directory;
  const auto super_block_url = "sqlite://" + (directory.path() / "ids.db").string();
  prepare(super_block_url);
  const auto url = cluster.url_of_all();
  const auto fenced_store = [&] {
    return sequence_store_options{
        .prefix = "fenced:",
        .fence = super_blocks{.source = open(super_block_url).block_store(), .size = 10'000}};
  };
  drawing fenced(2, [&] { return drawer_of(url, fenced_store())(); });
  drawing bare(2, drawer_of(url, {.prefix = "bare:", .allow_unsafe = true, .fence = no_fence{}}));
  wait_for_more(fenced);
  wait_for_more(bare);

  const auto master = cluster.master_of(key::redis_slot("{torture.id}"));
  const auto replica = cluster.replica_of(master);
  // The replica cannot log in any more, so it receives nothing from now on.
  cluster.node(replica).run({"CONFIG", "SET", "masteruser", "nobody"});
  cluster.node(replica).run({"CONFIG", "SET", "masterauth", "nothing"});
  cluster.node(master).run({"CLIENT", "KILL", "TYPE", "replica"});
  ASSERT_TRUE(eventually([&] {
    return cluster.node(replica).run({"INFO", "replication"}).find("master_link_status:down") !=
           std::string::npos;
  }));
  wait_for_more(fenced);
  wait_for_more(bare);
  cluster.node(master).kill9();
  ASSERT_TRUE(eventually(
      [&] {
        try {
          return cluster.master_of(key::redis_slot("{torture.id}")) == replica;
        } catch (const std::runtime_error&) {
          return false;
        }
      },
      60s));
  wait_for_more(fenced);
  wait_for_more(bare);
  EXPECT_EQ(count_duplicates(fenced.finish()), 0U);
  EXPECT_EQ(fenced.alarms(), 0U);
  EXPECT_GT(count_duplicates(bare.finish()), 0U) << "the replica did not lag, so nothing is proved";
}

// ---- The network.

/// Replies are cut off in the middle, again and again. The blocks of these replies are gaps.
void cut_replies(const std::string& url, cutting_proxy& link, const sequence_store_options& store) {
  drawing load(2, drawer_of(url, store, 2));
  std::mt19937 random(std::random_device{}());
  for (int i = 0; i < 25; ++i) {
    wait_for_more(load, 20);
    link.cut_after(flow::to_client, random() % 150, i % 2 == 0 ? ending::reset : ending::finish);
    ASSERT_TRUE(eventually([&] { return link.cut_done(); }, 60s));
  }
  wait_for_more(load, 20);
  EXPECT_EQ(count_duplicates(load.finish()), 0U);
}

TEST(SequenceNetwork, ALostReplyFromPostgresIsAGap) {
  const auto& server = shared_server<postgres_server>();
  const auto name = server.create_database("cut");
  prepare(server.url(name));
  cutting_proxy link(server.port());
  cut_replies(server.url_through(link.port(), name), link, {});
}

TEST(SequenceNetwork, ALostReplyFromMariadbIsAGap) {
  const auto& server = shared_server<mariadb_server>();
  const auto name = server.create_database("cut");
  prepare(server.url(name));
  cutting_proxy link(server.port());
  cut_replies(server.url_through(link.port(), name), link, {});
}

TEST(SequenceNetwork, ALostReplyFromRedisIsAGap) {
  const auto& server = shared_server<redis_server>();
  cutting_proxy link(server.port());
  cut_replies(redis_endpoint::url_through(link.port()), link,
              {.prefix = server.unique_prefix("cut"), .fence = no_fence{}});
}

/// A frozen server: the lease serves callers, then they get an error in time, and later it
/// continues.
template <class Server>
void freeze(Server& server, const std::string& url, const sequence_store_options& store) {
  auto ids = open(url, {.statement_timeout = 2s})
                 .sequence("frozen.id", {.blocks = fixed_blocks{.size = 100}, .store = store});
  std::vector<std::int64_t> drawn;
  drawn.push_back(ids.next());
  server.pause();
  for (int i = 0; i < 99; ++i) drawn.push_back(ids.next());
  const auto start = std::chrono::steady_clock::now();
  const auto failure =
      failure_of([&] { (void)ids.next(std::chrono::steady_clock::now() + 300ms); });
  EXPECT_TRUE(failure.transient()) << failure.what();
  EXPECT_LT(std::chrono::steady_clock::now() - start, 10s);
  EXPECT_EQ(ids.try_next(), std::nullopt);
  server.resume();
  for (int i = 0; i < 150; ++i) drawn.push_back(ids.next(std::chrono::steady_clock::now() + 60s));
  EXPECT_EQ(count_duplicates(drawn), 0U);
  EXPECT_TRUE(std::is_sorted(drawn.begin(), drawn.end()));
}

TEST(SequenceFreeze, TheLeaseServesWhilePostgresIsFrozen) {
  postgres_server server;
  prepare(server.url());
  freeze(server, server.url(), {});
}

TEST(SequenceFreeze, TheLeaseServesWhileRedisIsFrozen) {
  redis_server server;
  freeze(server, server.url(), {.fence = no_fence{}});
}

// ---- Power failures.

/// How many ids came twice when the power failed in the middle of a write, again and again.
std::size_t duplicates_after_power_losses(const std::string& parameters, bool allow_unsafe) {
  const temporary_directory directory;
  unsynced_vfs disk("sequence-disk", {.seed = std::random_device{}()});
  const auto url =
      "sqlite://" + (directory.path() / "ids.db").string() + "?vfs=" + disk.name() + parameters;
  prepare(url);
  std::mt19937 random(std::random_device{}());
  std::vector<std::int64_t> all;
  for (int i = 0; i < 30; ++i) {
    disk.crash_after(1 + random() % 40);
    try {
      auto ids = open(url).sequence(
          "power.id",
          {.blocks = fixed_blocks{.size = 3}, .wait = 1s, .store = {.allow_unsafe = allow_unsafe}});
      for (int k = 0; k < 300 && !disk.off(); ++k) all.push_back(ids.next());
    } catch (const error&) {  // NOLINT(bugprone-empty-catch): the power is off
    }
    disk.crash_after(0);
    EXPECT_TRUE(eventually([&] { return !disk.off(); }));
  }
  EXPECT_GT(all.size(), 100U);
  return count_duplicates(all);
}

TEST(SequencePower, NoIdTwiceOnSqlite) { EXPECT_EQ(duplicates_after_power_losses("", false), 0U); }

TEST(SequencePower, WithoutASyncForEachCommitSqliteRepeatsIds) {
  EXPECT_GT(duplicates_after_power_losses("&synchronous=normal", true), 0U);
}

}  // namespace
}  // namespace holdfast::test
