// A Cluster that changes under load: masters die, freeze and step down, slots move. No reply is
// ever taken for another's, errors are classed right, and the client is back when the Cluster is.

#include <holdfast/key/redis.hpp>
#include <holdfast/redis.hpp>

#include "support/eventually.hpp"
#include "support/redis_cluster.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <iostream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace holdfast;
using namespace holdfast::test;
using namespace std::chrono_literals;
using redis::client;
using redis::command;
using steady = std::chrono::steady_clock;

constexpr std::uint16_t slot = 12182;  // of foo
const std::string tag = "{foo}";

/// A key in a slot of each third of the Cluster.
const std::vector<std::string> keys{tag, "{bar}", "{a}"};

/// Threads that write to all masters without pause, and check every reply.
class load {
 public:
  load(const client& with, bool exact) : with_(with), exact_(exact) {
    for (std::size_t t = 0; t < keys.size(); ++t) {
      threads_.emplace_back(
          [this, t](const std::stop_token& stop) { count(stop, keys[t] + ":n"); });
      threads_.emplace_back([this, t](const std::stop_token& stop) { echo(stop, t); });
    }
  }

  /// Ends it. Nothing may have been wrong.
  void finish() {
    for (auto& each : threads_) each.request_stop();
    threads_.clear();
    EXPECT_EQ(wrong, 0);
    const std::scoped_lock lock(mutex_);
    EXPECT_TRUE(strange_.empty()) << strange_.front();
  }

  std::atomic<int> wrong = 0;     ///< replies that belong to something else
  std::atomic<int> done = 0;      ///< right ones
  std::atomic<int> failed = 0;    ///< errors, all of those that may be
  std::atomic<int> in_doubt = 0;  ///< of these

 private:
  void note(const error& problem) {
    ++failed;
    if (problem.in_doubt()) ++in_doubt;
    if (problem.transient() &&
        (problem.code() == errc::unavailable || problem.code() == errc::timeout))
      return;
    const std::scoped_lock lock(mutex_);
    strange_.emplace_back(problem.what());
  }

  /// Not idempotent: one thread, one key, so the numbers are known. After a doubt they may be one
  /// higher.
  void count(const std::stop_token& stop, const std::string& key) {
    std::int64_t least = 0;
    std::int64_t most = 0;
    while (!stop.stop_requested()) {
      try {
        const auto now = with_.call(command("INCR").key(key), {.timeout = limit_}).integer();
        // A failover without WAIT may lose writes that were acknowledged: then the number may be
        // lower, never higher.
        if (now > most + 1 || (exact_ && now <= least)) ++wrong;
        least = most = now;
        ++done;
      } catch (const error& problem) {
        note(problem);
        if (problem.in_doubt()) ++most;
      }
    }
  }

  /// Idempotent, through all masters: each reply names its own command.
  void echo(const std::stop_token& stop, std::size_t thread) {
    const redis::script set("redis.call('SET', KEYS[1], ARGV[1]) return {KEYS[1], ARGV[1]}");
    for (int i = 0; !stop.stop_requested(); ++i) {
      std::vector<command> commands;
      std::vector<std::string> names;
      for (int k = 0; k < 12; ++k) {
        names.push_back(keys[static_cast<std::size_t>(k) % keys.size()] + ':' +
                        std::to_string(thread) + ':' + std::to_string(k));
        commands.push_back(command(set)
                               .key(names.back())
                               .arg(std::to_string(i) + '/' + std::to_string(k))
                               .idempotent());
      }
      const auto replies = with_.pipeline(commands, {.timeout = limit_});
      for (std::size_t k = 0; k < replies.size(); ++k) {
        if (replies[k].is_error()) {
          note(replies[k].problem());
        } else {
          const auto& pair = replies[k].elements();
          if (pair.at(0).text() != names[k] ||
              pair.at(1).text() != std::to_string(i) + '/' + std::to_string(k))
            ++wrong;
          else ++done;
        }
      }
    }
  }

  const client& with_;
  const bool exact_;
  // Where nothing may fail, a busy machine gets its time
  const std::chrono::milliseconds limit_ = exact_ ? 30s : 1s;
  std::mutex mutex_;
  std::vector<std::string> strange_{};
  std::vector<std::jthread> threads_{};
};

std::string text_of(steady::duration time) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(time).count()) +
         " ms";
}

class RedisClusterFault : public testing::Test {
 protected:
  redis_cluster cluster{{.node_timeout = 3'000ms}};
  client redis{cluster.url_of_all(), {.connect_timeout = 500ms}};

  bool promoted(std::size_t old) {
    try {
      return cluster.master_of(slot) != old;
    } catch (const std::runtime_error&) {
      return false;
    }
  }

  /// Waits until the Cluster has a new master, and until the client writes to it. The client is
  /// back within twice the node timeout, or, when the Cluster itself took longer than that to
  /// agree, soon after it.
  void expect_recovery(steady::time_point began, std::size_t old) {
    std::atomic<steady::time_point> healed = steady::time_point::max();
    std::jthread watch([&] {
      if (eventually([&] { return promoted(old); }, 60s)) healed = steady::now();
    });
    const auto writes = [&] {
      try {
        redis.call(command("SET").key(tag + ":recovered").arg("1"), {.timeout = 500ms});
        return true;
      } catch (const error& problem) {
        EXPECT_TRUE(problem.transient()) << problem.what();
        return false;
      }
    };
    ASSERT_TRUE(eventually(writes, 60s));
    const auto back = steady::now();
    watch.join();
    const auto limit =
        std::max(began + 2 * cluster.node_timeout(), std::min(healed.load(), back) + 5s);
    EXPECT_LE(back, limit) << "the client was back after " << text_of(back - began)
                           << ", the Cluster after " << text_of(healed.load() - began);
    std::cout << "back after " << text_of(back - began) << ", the Cluster after "
              << text_of(healed.load() - began) << '\n';
  }

  void expect_work(const load& under, int more = 500) {
    EXPECT_TRUE(
        eventually([&, before = under.done.load()] { return under.done > before + more; }, 60s));
  }
};

TEST_F(RedisClusterFault, MasterKilled) {
  load under(redis, false);
  expect_work(under);
  const auto old = cluster.master_of(slot);
  const auto began = steady::now();
  cluster.node(old).kill9();
  expect_recovery(began, old);
  expect_work(under);
  under.finish();
  EXPECT_GT(under.failed, 0);
}

TEST_F(RedisClusterFault, MasterKilledWithItsReplicaFrozen) {
  load under(redis, false);
  expect_work(under);
  const auto old = cluster.master_of(slot);
  const auto heir = cluster.replica_of(old);
  cluster.node(heir).pause();
  cluster.node(old).kill9();
  // Nobody can take over. Everything that is asked of that slot fails, in time, with an error that
  // can pass.
  ASSERT_TRUE(
      eventually([&, before = under.failed.load()] { return under.failed > before + 30; }, 60s));
  try {
    redis.call(command("INCR").key(tag), {.timeout = 300ms});
    ADD_FAILURE() << "nobody serves that slot";
  } catch (const error& problem) {
    EXPECT_TRUE(problem.transient());
    EXPECT_FALSE(problem.in_doubt());
  }
  const auto began = steady::now();
  cluster.node(heir).resume();
  expect_recovery(began, old);
  expect_work(under);
  under.finish();
}

TEST_F(RedisClusterFault, MasterFrozen) {
  load under(redis, false);
  expect_work(under);
  const auto old = cluster.master_of(slot);
  const auto began = steady::now();
  cluster.node(old).pause();
  expect_recovery(began, old);
  expect_work(under);
  // The old master comes back and is told that it is none any more: nothing of what was sent to it
  // then may be taken for an answer.
  cluster.node(old).resume();
  cluster.wait_until_well();
  expect_work(under);
  under.finish();
  EXPECT_GT(under.in_doubt, 0);
}

TEST_F(RedisClusterFault, ManualFailoverFailsNothing) {
  load under(redis, true);
  expect_work(under);
  for (int round = 0; round < 2; ++round) {
    const auto old = cluster.master_of(slot);
    EXPECT_NE(cluster.fail_over(old), old);
    expect_work(under);
    cluster.wait_until_well();
  }
  under.finish();
  EXPECT_EQ(under.in_doubt, 0);
  EXPECT_GT(redis.count().moved, 0U);
}

TEST_F(RedisClusterFault, SlotMigrationFailsNothing) {
  std::vector<command> fill;
  for (int i = 0; i < 300; ++i)
    fill.push_back(command("SET").key(tag + ":fill:" + std::to_string(i)).arg(i));
  for (const auto& each : redis.pipeline(fill)) each.checked();
  load under(redis, true);
  // Two keys at a time: while they are on different nodes, neither of these can answer.
  std::jthread pairs([&](const std::stop_token& stop) {
    for (int i = 0; !stop.stop_requested(); i = (i + 1) % 299) {
      const auto two = redis.call(command("MGET")
                                      .key(tag + ":fill:" + std::to_string(i))
                                      .key(tag + ":fill:" + std::to_string(i + 1))
                                      .idempotent(),
                                  {.timeout = 30s});
      EXPECT_EQ(two.elements().at(0).text(), std::to_string(i));
      EXPECT_EQ(two.elements().at(1).text(), std::to_string(i + 1));
    }
  });
  expect_work(under);
  for (int round = 0; round < 2; ++round) {
    const auto from = cluster.master_of(slot);
    const auto to = cluster.master_of(round == 0 ? 0 : 8'000);
    ASSERT_NE(from, to);
    cluster.begin_migration(slot, to);
    expect_work(under, 100);
    while (cluster.migrate_keys(slot, from, to, 25) > 0) expect_work(under, 20);
    expect_work(under, 100);
    cluster.end_migration(slot, to);
    expect_work(under, 100);
  }
  pairs.request_stop();
  pairs.join();
  under.finish();
  EXPECT_EQ(under.failed, 0);
  const auto numbers = redis.count();
  EXPECT_GT(numbers.asked, 0U);
  EXPECT_GT(numbers.moved, 0U);
  for (int i = 0; i < 300; ++i)
    ASSERT_EQ(redis.call(command("GET").key(tag + ":fill:" + std::to_string(i))).text(),
              std::to_string(i));
}

}  // namespace
