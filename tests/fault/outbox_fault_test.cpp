// The outbox on Redis when processes die, stop and lose their servers: what was confirmed is
// delivered, what is late has no effect.

#include <holdfast/database.hpp>
#include <holdfast/key/redis.hpp>
#include <holdfast/outbox.hpp>
#include <holdfast/redis.hpp>

#include "fault/half_parked.hpp"
#include "support/eventually.hpp"
#include "support/kill_harness.hpp"
#include "support/ledger.hpp"
#include "support/redis_cluster.hpp"
#include "support/redis_server.hpp"
#include "support/temporary_directory.hpp"
#include "support/virtual_clock.hpp"
#include "support/worker.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <iostream>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

const std::string prefix = "{shop}";
/// Nothing of a run may be forgotten before it ends.
outbox_options for_the_run() {
  return {.prefix = prefix, .dedup_window = 1h, .dedup_limit = 1'000'000};
}

event numbered(int number, int keys) {
  return {.type = "t",
          .key = "k" + std::to_string(number % keys),
          .payload = std::to_string(number),
          .id = new_event_id()};
}

/// What is there, delivered and acknowledged: their ids.
std::set<std::string> deliver_all(const outbox& box, std::chrono::milliseconds patience = 30s) {
  std::set<std::string> ids;
  (void)eventually(
      [&] {
        const auto got = box.claim({.run = 100, .lease = 10s});
        std::vector<settlement> acks;
        for (const auto& one : got.events) {
          ids.insert(one.event.id);
          acks.push_back({.id = one.event.id, .key = one.event.key});
        }
        if (!acks.empty()) (void)box.settle(0, got.fence, std::move(acks));
        return box.admin().stats().events == 0;
      },
      patience);
  return ids;
}

struct handled {
  std::int64_t number = 0;
  std::int64_t fence = 0;
  /// 1: the effect was applied; 2: it had been; 0: refused; -1: this is an acknowledgement
  std::int64_t kept = 0;
};

/// Claims runs, applies effects once, acknowledges, until it is told to stop.
HOLDFAST_WORKER(outbox_consumer) {
  const auto box = open(arguments.at(0)).outbox(for_the_run());
  ledger<handled> book(arguments.at(1));
  worker_is_alive();
  while (true) {
    try {
      if (worker_should_stop() && box.admin().stats().events == 0) return 0;
      const auto got = box.claim({.most = 5, .run = 5, .lease = 400ms});
      if (got.events.empty()) {
        (void)box.wait(0, std::min(got.next.value_or(50ms), 50ms));
        continue;
      }
      for (const auto& one : got.events) {
        const auto name = box.key_of(one.event.key, "effect-" + one.event.payload);
        const auto applied = box.effect_once(
            got.fence, one, {{.action = commit_write::kind::add, .key = name, .number = 1}});
        const auto kept = applied.status == commit_status::done      ? 1
                          : applied.status == commit_status::applied ? 2
                                                                     : 0;
        book.add({std::stoll(one.event.payload), got.fence, kept});
        if (kept == 0) break;  // the lease is lost: the rest belongs to another
        (void)box.ack(got.fence, one);
      }
    } catch (const error&) {
      std::this_thread::sleep_for(5ms);
    }
  }
}

TEST(OutboxFault, WorkersKilledAtRandomLoseNothingAndApplyEffectsOnce) {
  redis_server server;
  temporary_directory directory;
  const auto box = open(server.url()).outbox(for_the_run());
  constexpr int events = 1500;
  std::vector<event> all;
  for (int i = 0; i < events; ++i) all.push_back(numbered(i, 20));
  for (const auto& one : box.publish_all(all)) ASSERT_TRUE(one.safe());
  const auto book = directory.path() / "handled";
  const auto report = kill_harness({.workers = 3, .kills = 15, .shortest = 10ms, .longest = 250ms})
                          .run("outbox_consumer", {server.url(), book.string()});
  EXPECT_TRUE(report.failures.empty());
  EXPECT_EQ(report.killed, 15U);
  EXPECT_EQ(box.admin().stats().events, 0U);
  std::map<std::int64_t, int> seen;
  std::map<std::int64_t, std::int64_t> last;
  for (const auto& one : ledger<handled>(book).read()) {
    ++seen[one.number];
    last[one.number] = one.fence;
  }
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(events)) << "every event was handled";
  for (int i = 0; i < events; ++i) {
    const auto once =
        box.commit({.conditions = {{.test = commit_condition::kind::equals,
                                    .key = box.key_of("", "effect-" + std::to_string(i)),
                                    .value = "1"}}});
    ASSERT_EQ(once.status, commit_status::done)
        << "the effect of " << i << " (seed " << report.seed << ")";
  }
  EXPECT_TRUE(box.admin().check().well());
}

/// Claims one event, stops itself, and acknowledges when somebody lets it go on.
HOLDFAST_WORKER(outbox_sleeper) {
  const auto box = open(arguments.at(0)).outbox(for_the_run());
  ledger<handled> book(arguments.at(1));
  const auto got = box.claim({.lease = 300ms});
  if (got.events.size() != 1) return 2;
  book.add({0, got.fence, 1});
  (void)std::raise(SIGSTOP);
  const auto applied = box.effect_once(
      got.fence, got.events[0],
      {{.action = commit_write::kind::add, .key = box.key_of("k", "effect"), .number = 1}});
  book.add({1, got.fence, applied.status == commit_status::stale ? 0 : 1});
  book.add({2, got.fence, box.ack(got.fence, got.events[0]) ? 1 : 0});
  return 0;
}

TEST(OutboxFault, AWorkerThatSleptPastItsLeaseHasNoEffect) {
  redis_server server;
  temporary_directory directory;
  const auto box = open(server.url()).outbox(for_the_run());
  (void)box.publish({.type = "t", .key = "k"});
  const auto book = directory.path() / "handled";
  child_process sleeper(worker_options("outbox_sleeper", {server.url(), book.string()}));
  ASSERT_TRUE(eventually(
      [&] { return std::filesystem::exists(book) && ledger<handled>(book).read().size() == 1; }));
  claimed got;
  ASSERT_TRUE(eventually([&] {
    got = box.claim({.lease = 60s});
    return !got.events.empty();
  }));
  EXPECT_EQ(got.events[0].deliveries, 2U);
  const auto first = ledger<handled>(book).read()[0].fence;
  EXPECT_GT(got.fence, first);
  (void)eventually([&] {
    sleeper.signal(SIGCONT);  // it may not have stopped yet the first time
    return !sleeper.running();
  });
  ASSERT_TRUE(sleeper.wait(20s).value_or(exit_status{.code = 99}).success());
  const auto late = ledger<handled>(book).read();
  ASSERT_EQ(late.size(), 3U);
  EXPECT_EQ(late[1].kept, 0) << "its effect was refused";
  EXPECT_EQ(late[2].kept, 0) << "its acknowledgement, too";
  EXPECT_TRUE(box.ack(got.fence, got.events[0]));
}

HOLDFAST_WORKER(outbox_parks_half) {
  return park_half_and_die(open(arguments.at(0)).outbox(for_the_run()));
}

TEST(OutboxFault, AWorkerKilledBetweenTheParkedAndItsFollowersBlocksNoKey) {
  redis_server server({.durable = false});
  whoever_claims_next_parks_the_rest(open(server.url()).outbox(for_the_run()), [&] {
    return worker_options("outbox_parks_half", {server.url()});
  });
}

/// Publishes without pause; knows what was confirmed.
class publishers {
 public:
  publishers(const outbox& box, const durability& how) {
    for (int t = 0; t < 2; ++t) {
      threads_.emplace_back([this, box, how, t](const std::stop_token& stop) {
        for (int i = 0; !stop.stop_requested(); ++i) {
          std::vector<event> part;
          for (int n = 0; n < 5; ++n) part.push_back(numbered(i * 5 + n, 7 + t));
          for (const auto& one : box.publish_all(part, how)) {
            const std::scoped_lock lock(mutex_);
            (one.safe() ? confirmed_ : open_).insert(one.id);
          }
        }
      });
    }
  }
  [[nodiscard]] std::size_t count() {
    const std::scoped_lock lock(mutex_);
    return confirmed_.size();
  }
  [[nodiscard]] std::set<std::string> finish() {
    for (auto& one : threads_) one.request_stop();
    threads_.clear();
    return confirmed_;
  }

 private:
  std::mutex mutex_{};
  std::set<std::string> confirmed_{}, open_{};
  std::vector<std::jthread> threads_{};
};

std::size_t missing(const std::set<std::string>& wanted, const std::set<std::string>& found) {
  std::size_t count = 0;
  for (const auto& id : wanted) count += found.contains(id) ? 0U : 1U;
  return count;
}

TEST(OutboxFault, RedisKilledWithItsFileLosesNothing) {
  // With everysec Redis may answer before it writes, while the disk is busy with what it wrote
  // before.
  redis_server server({.settings = {"appendfsync no"}});
  const auto db = open(server.url());
  auto options = for_the_run();
  options.safe = durability::aof();
  std::set<std::string> confirmed;
  std::set<std::string> delivered;
  for (int round = 0; round < 3; ++round) {
    const auto box = db.outbox(options);
    publishers load(box, durability::aof());
    ASSERT_TRUE(eventually([&] { return load.count() > 400; }));
    server.kill9();
    confirmed.merge(load.finish());
    server.start();
    delivered.merge(deliver_all(box));
  }
  EXPECT_EQ(missing(confirmed, delivered), 0U) << "of " << confirmed.size();
}

TEST(OutboxFault, AFullRedisRefusesEventsAndDrainsToZero) {
  redis_server server(
      {.settings = {"maxmemory 12mb", "maxmemory-policy noeviction"}, .durable = false});
  const auto db = open(server.url());
  auto options = for_the_run();
  options.dedup_limit = 100;
  auto box = db.outbox(options);
  std::size_t kept = 0;
  std::optional<error> refused;
  for (int i = 0; i < 2000 && !refused; ++i) {
    std::vector<event> part;
    for (int n = 0; n < 20; ++n) {
      part.push_back(numbered(n, 5));
      part.back().payload = std::string(1000, 'x');
    }
    const auto receipts = box.publish_all(part);
    if (receipts[0].safe()) {
      kept += receipts.size();
    } else {
      refused = receipts[0].problem;
    }
  }
  ASSERT_TRUE(refused) << "it never got full";
  EXPECT_TRUE(refused->transient());
  EXPECT_FALSE(refused->in_doubt());
  EXPECT_NE(std::string(refused->what()).find("memory"), std::string::npos) << refused->what();
  // A new worker, which has nothing yet, takes over and drains.
  const auto fresh = open(server.url()).outbox(options);
  EXPECT_TRUE(fresh.lock(0, "taker").held);
  std::size_t delivered = 0;
  while (true) {
    const auto got = fresh.claim({.run = 50, .owner = "taker"});
    if (got.events.empty()) break;
    std::vector<settlement> acks;
    for (const auto& one : got.events) acks.push_back({.id = one.event.id, .key = one.event.key});
    for (const bool done : fresh.settle(0, got.fence, acks).done) delivered += done ? 1U : 0U;
  }
  EXPECT_EQ(delivered, kept);
  EXPECT_EQ(fresh.admin().stats().events, 0U);
  EXPECT_EQ(fresh.admin().stats().bytes, 0U);
  EXPECT_EQ(box.publish({.type = "t"}).status, publish_status::added) << "there is room again";
}

TEST(OutboxFault, TheClocksOfClientsDoNotMatter) {
  redis_server server({.durable = false});
  auto yesterday = std::make_shared<virtual_clock>(
      std::chrono::floor<std::chrono::microseconds>(std::chrono::system_clock::now() - 24h));
  auto tomorrow = std::make_shared<virtual_clock>(
      std::chrono::floor<std::chrono::microseconds>(std::chrono::system_clock::now() + 24h));
  const auto past = open(server.url(), {.clock = yesterday}).outbox(for_the_run());
  const auto future = open(server.url(), {.clock = tomorrow}).outbox(for_the_run());
  (void)past.publish({.type = "t", .key = "a", .payload = "past"});
  (void)future.publish({.type = "t", .key = "b", .payload = "future"});
  auto later = numbered(1, 1);
  later.delay = 1h;
  (void)past.publish(later);
  const auto got = future.claim({.lease = 60s});
  EXPECT_EQ(got.events.size(), 2U) << "both are due, the delayed one is not";
  EXPECT_TRUE(past.claim().events.empty()) << "the lease holds for those who live a day earlier";
  EXPECT_LT(std::chrono::abs(got.now - std::chrono::system_clock::now()), 1h)
      << "the time is the server's";
}

}  // namespace
}  // namespace holdfast::test
