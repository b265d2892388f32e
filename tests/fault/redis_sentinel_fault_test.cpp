// Failovers of Sentinels under load: masters die, hang and step down. An independent ledger has
// every write with what the client said about it: what WAIT confirmed for both replicas is there,
// and what was reported as not done is not. One replica is not enough: a master that is replaced
// while it lives may still have the other one. HOLDFAST_SENTINEL_ROUNDS makes it longer: failovers
// for each test.

#include <holdfast/redis.hpp>

#include "support/eventually.hpp"
#include "support/redis_sentinels.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>
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

int failover_rounds() {
  const char* text = std::getenv("HOLDFAST_SENTINEL_ROUNDS");
  return text == nullptr ? 1 : std::max(1, std::atoi(text));
}

constexpr std::int64_t all_replicas = 2;

/// Threads that write unique tokens without pause.
class token_load {
 public:
  explicit token_load(const client& redis) : redis_(redis) {
    for (int t = 0; t < 4; ++t)
      threads_.emplace_back([this, t](const std::stop_token& stop) { write(stop, t); });
  }

  std::atomic<int> acknowledged = 0;  ///< all replicas have it
  std::atomic<int> unconfirmed = 0;   ///< done, and fewer replicas have it
  std::atomic<int> in_doubt = 0;
  std::atomic<int> refused = 0;

  [[nodiscard]] int done() const { return acknowledged + unconfirmed; }
  [[nodiscard]] bool goes_on(int additional = 50) const {
    return eventually([&, before = done()] { return done() > before + additional; }, 60s);
  }

  /// Ends the load and compares the ledger with the keys of the master.
  void check_against(redis_server& master) {
    for (auto& each : threads_) each.request_stop();
    threads_.clear();
    std::set<std::string> present;
    std::istringstream keys(master.run({"KEYS", "token:*"}));
    for (std::string key; std::getline(keys, key);) present.insert(key);
    for (const auto& token : acknowledged_tokens_)
      EXPECT_TRUE(present.contains(token)) << "acknowledged and lost: " << token;
    for (const auto& token : refused_tokens_)
      EXPECT_FALSE(present.contains(token)) << "reported as not done, and done: " << token;
    for (const auto& message : strange_) ADD_FAILURE() << message;
    std::cout << acknowledged << " acknowledged, " << unconfirmed << " not confirmed, " << in_doubt
              << " in doubt, " << refused << " not done\n";
  }

 private:
  void write(const std::stop_token& stop, int thread) {
    for (int i = 0; !stop.stop_requested(); ++i) {
      const auto token = "token:" + std::to_string(thread) + ':' + std::to_string(i);
      const std::vector<command> commands{command("SET").key(token).arg("1"),
                                          redis::wait_for_replicas(all_replicas, 100ms)};
      const auto replies = redis_.pipeline(commands);
      const std::scoped_lock lock(mutex_);
      if (!replies[0].is_error()) {
        const bool enough = replies[1].is_integer() && replies[1].integer() >= all_replicas;
        ++(enough ? acknowledged : unconfirmed);
        if (enough) acknowledged_tokens_.push_back(token);
        continue;
      }
      const error& problem = replies[0].problem();
      if (!problem.transient() ||
          (problem.code() != errc::unavailable && problem.code() != errc::timeout))
        strange_.emplace_back(problem.what());
      ++(problem.in_doubt() ? in_doubt : refused);
      if (!problem.in_doubt()) refused_tokens_.push_back(token);
    }
  }

  const client& redis_;
  std::mutex mutex_;
  std::vector<std::string> acknowledged_tokens_{};
  std::vector<std::string> refused_tokens_{};
  std::vector<std::string> strange_{};
  std::vector<std::jthread> threads_{};
};

std::string milliseconds_of(steady::duration time) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(time).count()) +
         " ms";
}

class RedisSentinelFault : public testing::Test {
 protected:
  void start(std::chrono::milliseconds down_after) {
    servers_.emplace(redis_sentinels::options{.down_after = down_after});
    redis_.emplace(servers_->url());
  }

  std::size_t current_master() {
    servers_->wait_until_well();
    return servers_->master().value();
  }
  redis_server& new_master(std::size_t old) {
    std::optional<std::size_t> heir;
    EXPECT_TRUE(eventually([&] { return (heir = servers_->promoted(old)).has_value(); }, 60s));
    return servers_->node(heir.value_or(old));
  }

  /// Waits for the new master, and until the client writes to it.
  void expect_recovery(const token_load& load, std::size_t old) {
    (void)new_master(old);
    const auto promoted = steady::now();
    EXPECT_TRUE(load.goes_on(1));
    const auto usable = steady::now() - promoted;
    EXPECT_LE(usable, 5s);
    std::cout << "usable " << milliseconds_of(usable) << " after the promotion\n";
    EXPECT_TRUE(load.goes_on());
  }

  std::optional<redis_sentinels> servers_{};
  std::optional<client> redis_{};
};

TEST_F(RedisSentinelFault, MasterKilled) {
  start(2'500ms);
  token_load load(*redis_);
  for (int round = 1;; ++round) {
    const auto old = current_master();
    ASSERT_TRUE(load.goes_on());
    servers_->node(old).kill9();
    expect_recovery(load, old);
    if (round >= failover_rounds()) return load.check_against(new_master(old));
    servers_->node(old).start();
  }
}

// A master that hangs keeps its connections, and believes that it is the master when it goes on.
TEST_F(RedisSentinelFault, MasterHangs) {
  start(2'500ms);
  token_load load(*redis_);
  for (int round = 1;; ++round) {
    const auto old = current_master();
    ASSERT_TRUE(load.goes_on());
    servers_->node(old).pause();
    expect_recovery(load, old);
    servers_->node(old).resume();
    ASSERT_TRUE(load.goes_on());
    if (round >= failover_rounds()) return load.check_against(new_master(old));
  }
}

// SENTINEL FAILOVER does not stop writes to the old master, which its other replica still confirms.
TEST_F(RedisSentinelFault, FailoverOnRequest) {
  start(60s);  // a busy machine is no reason for another one
  token_load load(*redis_);
  for (int round = 1;; ++round) {
    const auto old = current_master();
    ASSERT_TRUE(load.goes_on());
    const auto heir = servers_->fail_over();
    EXPECT_NE(heir, old);
    ASSERT_TRUE(load.goes_on());
    if (round >= failover_rounds()) return load.check_against(servers_->node(heir));
  }
}

}  // namespace
