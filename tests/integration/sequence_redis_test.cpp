// What the fences of sequences on Redis keep when a Redis forgets: a replica that lags is promoted, a server restarts without its file, keys
// vanish. And, beside each, that without a fence ids do come twice.

#include <holdfast/database.hpp>
#include <holdfast/redis.hpp>

#include "sequence/redis_block_store.hpp"
#include "sequence/redis_fitness.hpp"
#include "support/cutting_proxy.hpp"
#include "support/eventually.hpp"
#include "support/failure_of.hpp"
#include "support/redis_server.hpp"
#include "support/shared_server.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

std::shared_ptr<const redis::client> client_of(const std::string& url) {
  return std::make_shared<const redis::client>(url, redis::options{.timeout = 20s});
}

std::shared_ptr<block_store> store_on(const std::string& url, sequence_fence fence) {
  return make_redis_block_store({.client = client_of(url), .fence = std::move(fence)});
}

/// Everything that anybody was granted, and how often an ordinal came again.
class granted_ids {
 public:
  /// A block of ten from this store. A fence may ask to wait.
  void take(block_store& from, int blocks = 1) {
    for (int i = 0; i < blocks; ++i) {
      const block_request wanted{.name = "order.id", .count = 10};
      std::vector<block_grant> grants;
      const bool came = eventually([&] {
        try {
          grants = from.allocate({&wanted, 1});
          return true;
        } catch (const error& problem) {
          EXPECT_TRUE(problem.transient()) << problem.what();
          return false;
        }
      });
      ASSERT_TRUE(came);
      auto& block = grants.front().block;
      ASSERT_EQ(block.size(), 10U);
      while (block.has_next()) again_ += ids_.insert(block.next()).second ? 0U : 1U;
    }
  }
  [[nodiscard]] std::size_t again() const { return again_; }
  [[nodiscard]] std::size_t size() const { return ids_.size(); }

 private:
  std::set<std::int64_t> ids_{};
  std::size_t again_ = 0;
};

/// The fences that promise no duplicates. The clock's is quick, for a test.
enum class promise { super, clock, none };

sequence_fence fence_of(promise which, const std::shared_ptr<block_store>& below) {
  if (which == promise::super) return super_blocks{.from = below, .size = 1000};
  if (which == promise::clock) return clock_fence{.max_skew = 300ms};
  return no_fence{};
}

class SequenceFence : public testing::TestWithParam<promise> {
 protected:
  [[nodiscard]] std::shared_ptr<block_store> store(const std::string& url) const { return store_on(url, fence_of(GetParam(), below_)); }
  void expect_promise() const {
    if (GetParam() == promise::none) EXPECT_GT(ids.again(), 0U) << "this loss does no harm, so it proves nothing";
    else EXPECT_EQ(ids.again(), 0U);
  }

  granted_ids ids{};

 private:
  std::shared_ptr<block_store> below_ = make_memory_block_store();  // stands for an SQL database
};

TEST_P(SequenceFence, HoldsWhenALaggingReplicaIsPromoted) {
  redis_server master({.settings = {"repl-diskless-sync-delay 0"}});
  cutting_proxy link(master.port());
  redis_server replica({.settings = {"replicaof 127.0.0.1 " + std::to_string(link.port())}});
  const auto old_one = store(master.url());
  ids.take(*old_one, 3);
  ASSERT_TRUE(eventually([&] {
    return replica.run({"INFO", "replication"}).find("master_link_status:up") != std::string::npos &&
           !replica.run({"HGET", "holdfast:seq:{order.id}", "last"}).empty();
  }));
  link.drop(flow::to_client);
  ids.take(*old_one, 5);
  replica.run({"REPLICAOF", "NO", "ONE"});
  const auto new_one = store(replica.url());
  ids.take(*new_one, 8);
  // The old master lives, and clients that have not heard of the new one still ask it. The clock's promise asks that this ends soon.
  if (GetParam() != promise::clock) ids.take(*old_one, 3);
  ids.take(*new_one, 3);
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
  const auto below = make_memory_block_store();
  for (const auto& fence : std::vector<sequence_fence>{no_fence{}, super_blocks{.from = below}}) {
    const auto blocks = store(fence);
    (void)blocks->allocate(requests);  // makes the connection, brings the scripts and the super-blocks
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
  ASSERT_TRUE(eventually([&] { return replica.run({"INFO", "replication"}).find("master_link_status:up") != std::string::npos; }));
  const auto blocks = store_on(master.url(), wait_fence{.longest = 20s});
  const block_request wanted{.name = "order.id", .count = 10};
  EXPECT_EQ(blocks->allocate({&wanted, 1}).front().block.first(), 1);
  EXPECT_EQ(replica.run({"HGET", "holdfast:seq:{order.id}", "last"}), "10");
  EXPECT_TRUE(blocks->unsafe_settings().empty()) << blocks->unsafe_settings().front();

  link.drop(flow::to_client);
  const auto hasty = store_on(master.url(), wait_fence{.longest = 100ms});
  const auto refused = failure_of([&] { (void)hasty->allocate({&wanted, 1}); });
  EXPECT_EQ(refused.code(), errc::unavailable);
  EXPECT_TRUE(refused.transient());
  EXPECT_STREQ(refused.what(), "0 of 1 replicas confirmed a block within 100 ms; it is abandoned, try again when they are connected");
  // So is what it shall never grant again.
  const auto unconfirmed = failure_of([&] { (void)hasty->ensure_at_least("order.id", 15); });
  EXPECT_EQ(unconfirmed.code(), errc::unavailable);
  EXPECT_TRUE(unconfirmed.transient());
  EXPECT_STREQ(unconfirmed.what(),
               "0 of 1 replicas confirmed within 100 ms that the counter was raised; a failover may forget it, so try again when they are "
               "connected");
  // Many at once do not wait one after the other for what one of them waited for in vain.
  const std::vector<std::string> names{"a", "b", "c", "d", "e", "f", "g", "h"};
  std::vector<block_request> many;
  for (const auto& name : names) many.push_back({.name = name, .count = 1});
  const auto patient = store_on(master.url(), wait_fence{.longest = 800ms});
  const auto shared = patient->allocate(many);
  for (const auto& each : shared) {
    ASSERT_TRUE(each.problem.has_value());
    EXPECT_STREQ(each.problem->what(),
                 "0 of 1 replicas confirmed a block within 100 ms; it is abandoned, try again when they are connected");
  }
  link.drop(flow::to_client, false);
  link.cut();
  std::int64_t first = 0;
  EXPECT_TRUE(eventually([&] {
    try {
      first = blocks->allocate({&wanted, 1}).front().block.first();
      return true;
    } catch (const error&) {
      return false;
    }
  }));
  EXPECT_GE(first, 21) << "what was abandoned is a gap";
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
  EXPECT_GT(first, 1'000'000) << "a thousand for each second since the origin";
  const block_request much{.name = "slow", .count = 3'600'000};
  const auto refused = failure_of([&] { (void)blocks->allocate({&much, 1}); });
  EXPECT_TRUE(refused.transient());
  EXPECT_NE(std::string(refused.what()).find("waits for the clock"), std::string::npos) << refused.what();
  const block_request round{.name = "slow", .count = 1, .cycle = true};
  EXPECT_EQ(failure_of([&] { (void)blocks->allocate({&round, 1}); }).code(), errc::invalid_argument);
}

TEST_F(SequenceRedis, AskingAgainAfterALostReplyCostsAGap) {
  cutting_proxy link(server.port());
  const auto blocks =
      make_redis_block_store({.client = client_of(redis_endpoint::url_through(link.port())), .prefix = prefix, .fence = no_fence{}});
  const block_request wanted{.name = "n", .count = 10};
  EXPECT_EQ(blocks->allocate({&wanted, 1}).front().block.first(), 1);
  link.cut_after(flow::to_client, 0);
  EXPECT_EQ(blocks->allocate({&wanted, 1}).front().block.first(), 21) << "11 to 20 were granted to nobody";
  EXPECT_TRUE(link.cut_done());
}

TEST_F(SequenceRedis, ASuperBlockIsBroughtOnceAndNeverAgain) {
  cutting_proxy link(server.port());
  const auto below = make_memory_block_store();
  const auto blocks = make_redis_block_store(
      {.client = client_of(redis_endpoint::url_through(link.port())), .prefix = prefix, .fence = super_blocks{.from = below, .size = 100}});
  const block_request wanted{.name = "n", .count = 100};
  EXPECT_EQ(blocks->allocate({&wanted, 1}).front().block.first(), 1);
  // Three questions: is there one, is there still none, here is one. The reply to the last is lost.
  const auto forwarded = link.bytes(flow::to_client);
  (void)blocks->allocate({&wanted, 1});
  const auto whole = link.bytes(flow::to_client) - forwarded;
  link.cut_after(flow::to_client, whole - 10);
  const auto lost = failure_of([&] { (void)blocks->allocate({&wanted, 1}); });
  EXPECT_TRUE(lost.in_doubt()) << lost.what();
  EXPECT_EQ(below->peek("n")->last, 300);
  // It may have arrived, and it has: the next ones come after it.
  EXPECT_EQ(blocks->allocate({&wanted, 1}).front().block.first(), 301);
}

/// An SQL database that can be gone.
class database_below final : public block_store {
 public:
  std::vector<block_grant> allocate(std::span<const block_request> requests) override {
    if (gone) throw error(errc::unavailable, "the database below is gone", {.transient = true});
    return held_->allocate(requests);
  }
  std::optional<counter_state> peek(std::string_view name) override { return held_->peek(name); }
  counter_state ensure_at_least(std::string_view name, std::int64_t ordinal) override { return held_->ensure_at_least(name, ordinal); }
  bool reset(std::string_view name, std::int64_t ordinal, counter_state expected) override { return held_->reset(name, ordinal, expected); }
  bool give_back(std::string_view name, std::int64_t used, counter_state granted) override { return held_->give_back(name, used, granted); }
  std::vector<named_counter> list(std::size_t limit, std::string_view after) override { return held_->list(limit, after); }
  std::vector<std::string> unsafe_settings() override { return {}; }
  [[nodiscard]] std::shared_ptr<block_store> for_child() const override { return held_->for_child(); }

  bool gone = false;

 private:
  std::shared_ptr<block_store> held_ = make_memory_block_store();
};

TEST_F(SequenceRedis, AMissingSuperBlockConcernsOnlyTheSequenceThatNeedsIt) {
  const auto below = std::make_shared<database_below>();
  const auto blocks = store(super_blocks{.from = below, .size = 1000});
  const std::vector<block_request> wanted{{.name = "has", .count = 10}, {.name = "needs", .count = 10}};
  EXPECT_EQ(blocks->allocate({wanted.data(), 1}).front().block.first(), 1);
  below->gone = true;
  const auto grants = blocks->allocate(wanted);
  ASSERT_EQ(grants.size(), 2U);
  EXPECT_FALSE(grants[0].problem.has_value());
  EXPECT_EQ(grants[0].block.first(), 11);
  ASSERT_TRUE(grants[1].problem.has_value());
  EXPECT_STREQ(grants[1].problem->what(), "the database below is gone");
  EXPECT_TRUE(grants[1].problem->transient());
  const auto alone = failure_of([&] { (void)blocks->allocate({&wanted[1], 1}); });
  EXPECT_STREQ(alone.what(), "the database below is gone");
  below->gone = false;
  EXPECT_EQ(blocks->allocate({&wanted[1], 1}).front().block.first(), 1);
}

TEST_F(SequenceRedis, AProcessThatSawAHigherBlockGoesOnBeyondIt) {
  const auto below = make_memory_block_store();
  const super_blocks fence{.from = below, .size = 1000};
  const auto stayed = store(fence);
  const block_request wanted{.name = "n", .count = 10};
  EXPECT_EQ(stayed->allocate({&wanted, 1}).front().block.first(), 1);
  // The other one asks another Redis for a while, where the next thousand is.
  redis_server elsewhere({.durable = false});
  cutting_proxy link(elsewhere.port());
  const auto roamed =
      make_redis_block_store({.client = client_of(redis_endpoint::url_through(link.port())), .prefix = prefix, .fence = fence});
  EXPECT_EQ(roamed->allocate({&wanted, 1}).front().block.first(), 1001);
  link.retarget(server.port());
  link.cut();
  EXPECT_EQ(roamed->allocate({&wanted, 1}).front().block.first(), 2001) << "what is left of the first thousand is below what it saw";
  EXPECT_EQ(below->peek("n")->last, 3000) << "one super-block was enough";
  EXPECT_EQ(stayed->allocate({&wanted, 1}).front().block.first(), 2011);
}

TEST_F(SequenceRedis, SuperBlocksOfManyProcessesDoNotOverlap) {
  const auto below = make_memory_block_store();
  granted_ids ids;
  std::vector<std::shared_ptr<block_store>> processes;
  for (int i = 0; i < 4; ++i) processes.push_back(store(super_blocks{.from = below, .size = 15}));
  for (int round = 0; round < 20; ++round) {
    for (const auto& each : processes) ids.take(*each);
  }
  EXPECT_EQ(ids.again(), 0U);
  EXPECT_EQ(ids.size(), 800U);
}

TEST_F(SequenceRedis, AFenceMustBeChosenAndMakeSense) {
  const auto refusal = [&](sequence_fence fence) {
    const auto refused = failure_of([&] { (void)store(std::move(fence)); });
    EXPECT_EQ(refused.code(), errc::invalid_argument);
    return std::string(refused.what());
  };
  EXPECT_NE(refusal({}).find("choose what is done about it: super_blocks"), std::string::npos);
  EXPECT_NE(refusal(super_blocks{}).find("needs the block store"), std::string::npos);
  EXPECT_NE(refusal(super_blocks{.from = make_memory_block_store(), .size = 0}).find("1 to 2147483648"), std::string::npos);
  EXPECT_NE(refusal(clock_fence{.rate = 0}).find("1 to 1000000"), std::string::npos);
  EXPECT_NE(refusal(clock_fence{.max_skew = -1ms}).find("max_skew"), std::string::npos);
  EXPECT_NE(refusal(wait_fence{.replicas = 0}).find("waits for nobody"), std::string::npos);
  EXPECT_NE(refusal(wait_fence{.longest = 0ms}).find("0 would be for ever"), std::string::npos);
  prefix = "with{brace}";
  EXPECT_NE(refusal(no_fence{}).find("prefix"), std::string::npos);
}

TEST_F(SequenceRedis, EachGetsTheFenceThatItAsksForOrIsRefused) {
  const auto at = open(server.url());
  const auto opened = [&](const std::string& name, sequence_fence fence, bool unsafe = false) {
    return at.sequence(name, {.store = {.prefix = prefix, .allow_unsafe = unsafe, .fence = std::move(fence)}});
  };
  const auto refusal = [&](sequence_fence fence, bool unsafe = false) {
    const auto refused = failure_of([&] { (void)opened("b", std::move(fence), unsafe).next(); });
    EXPECT_EQ(refused.code(), errc::invalid_argument) << refused.what();
    return std::string(refused.what());
  };
  const auto below = make_memory_block_store();
  {
    auto first = opened("a", no_fence{});
    EXPECT_EQ(first.next(), 1);
    EXPECT_EQ(opened("a", no_fence{}).next(), 21) << "the same is no other";
    EXPECT_NE(refusal(super_blocks{.from = below}).find("opened with another fence"), std::string::npos);
    EXPECT_NE(refusal(clock_fence{}).find("opened with another fence"), std::string::npos);
    EXPECT_NE(refusal(no_fence{}, true).find("opened with another allow_unsafe"), std::string::npos);
    EXPECT_NE(refusal({}).find("choose what is done about it"), std::string::npos);
    EXPECT_EQ(at.sequence("b", {.store = {.prefix = prefix + ".", .fence = super_blocks{.from = below}}}).next(), 1);
  }
  // Once nobody has the first any more, the next one chooses.
  auto b = opened("b", super_blocks{.from = below, .size = 1000});
  EXPECT_EQ(b.next(), 1'000'001) << "the other prefix has the million below it";
  EXPECT_EQ(below->peek("b")->last, 1'001'000);
  EXPECT_NE(refusal(super_blocks{.from = below, .size = 999}).find("opened with another fence"), std::string::npos);
  // Another block store may be another database, or the same one once more: it is asked, too.
  const auto other = make_memory_block_store();
  auto c = opened("c", super_blocks{.from = other, .size = 1000});
  EXPECT_EQ(c.next(), 1);
  EXPECT_EQ(other->peek("c")->last, 1000);
}

TEST_F(SequenceRedis, SaysWhichSettingsCouldMakeItForget) {
  EXPECT_TRUE(store(no_fence{})->unsafe_settings().empty());
  redis_server careless({.settings = {"maxmemory-policy allkeys-lru"}, .durable = false});
  const auto reasons = store_on(careless.url(), no_fence{})->unsafe_settings();
  ASSERT_EQ(reasons.size(), 2U);
  EXPECT_NE(reasons[0].find("keeps no append-only file"), std::string::npos) << reasons[0];
  EXPECT_NE(reasons[1].find("maxmemory-policy allkeys-lru"), std::string::npos) << reasons[1];
  EXPECT_EQ(store_on(careless.url(), wait_fence{})->unsafe_settings().size(), 3U) << "and it has no replica";
  // What Redis forgets does not matter to these.
  EXPECT_TRUE(store_on(careless.url(), super_blocks{.from = make_memory_block_store()})->unsafe_settings().empty());
  EXPECT_TRUE(store_on(careless.url(), clock_fence{})->unsafe_settings().empty());

  redis::server_report report{.address = "a:1", .role = "master", .aof = true, .appendfsync = "everysec", .eviction = "noeviction"};
  EXPECT_EQ(reasons_against(report, no_fence{}).size(), 1U) << "a power failure loses a second";
  report.appendfsync = "";  // CONFIG is forbidden: what cannot be seen is not taken for good
  ASSERT_EQ(reasons_against(report, no_fence{}).size(), 1U);
  EXPECT_EQ(reasons_against(report, no_fence{}).front(), "it does not tell when its file is synced; allow CONFIG GET appendfsync");
  report.appendfsync = "always";
  EXPECT_TRUE(reasons_against(report, no_fence{}).empty());
}

TEST_F(SequenceRedis, AKeyThatIsNoCounterIsAnError) {
  const auto blocks = store(no_fence{});
  const block_request wanted{.name = "odd", .count = 1};
  server.run({"SET", prefix + "holdfast:seq:{odd}", "text"});
  EXPECT_NE(std::string(failure_of([&] { (void)blocks->allocate({&wanted, 1}); }).what()).find("WRONGTYPE"), std::string::npos);
  server.run({"DEL", prefix + "holdfast:seq:{odd}"});
  server.run({"HSET", prefix + "holdfast:seq:{odd}", "last", "many"});
  EXPECT_NE(std::string(failure_of([&] { (void)blocks->allocate({&wanted, 1}); }).what()).find("holds no counter"), std::string::npos);
}

TEST_F(SequenceRedis, AChildProcessDrawsIdsOfItsOwn) {
  auto ids = open(server.url()).sequence("family", {.store = {.prefix = prefix, .fence = no_fence{}}});
  std::vector<std::int64_t> all;
  for (int i = 0; i < 5; ++i) all.push_back(ids.next());
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    int code = 1;
    try {
      code = 0;
      for (int i = 0; i < 30; ++i) {
        const auto id = ids.next(std::chrono::steady_clock::now() + 1min);
        if (::write(ends[1], &id, sizeof id) != sizeof id) code = 2;
      }
    } catch (const error& wrong) {
      (void)!::write(STDERR_FILENO, wrong.what(), std::string_view(wrong.what()).size());
      code = 3;
    }
    ::_exit(code);
  }
  ::close(ends[1]);
  for (std::int64_t id = 0; ::read(ends[0], &id, sizeof id) == sizeof id;) all.push_back(id);
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  for (int i = 0; i < 30; ++i) all.push_back(ids.next());
  EXPECT_EQ(all.size(), 65U);
  EXPECT_EQ(std::set<std::int64_t>(all.begin(), all.end()).size(), 65U) << "the child had the block of its parent";
}

}  // namespace
}  // namespace holdfast::test
