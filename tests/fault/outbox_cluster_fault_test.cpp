// The outbox on a Redis Cluster that loses masters and moves slots. A plain kill proves little:
// what was written still reaches the replica through the kernel's buffers. So the replica is frozen
// first.

#include <holdfast/database.hpp>
#include <holdfast/key/redis.hpp>
#include <holdfast/outbox.hpp>

#include "support/eventually.hpp"
#include "support/redis_cluster.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <iostream>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

outbox_options for_the_run(const std::string& prefix) {
  return {.prefix = prefix, .dedup_window = 1h, .dedup_limit = 1'000'000};
}

std::vector<event> some(int count) {
  std::vector<event> events;
  for (int i = 0; i < count; ++i)
    events.push_back({.type = "t", .key = "k" + std::to_string(i % 5), .id = new_event_id()});
  return events;
}

/// Which of these the outbox does not have.
std::size_t lost(const outbox& box, const std::vector<std::string>& ids) {
  std::size_t count = 0;
  for (const auto& id : ids) {
    bool found = false;
    EXPECT_TRUE(eventually(
        [&] {
          try {
            found = box.find(id).has_value();
            return true;
          } catch (const error& problem) {
            if (!problem.transient()) throw;
            return false;
          }
        },
        60s));
    count += found ? 0U : 1U;
  }
  return count;
}

class OutboxCluster : public ::testing::Test {
 protected:
  /// The replica of the lane's master freezes, `meanwhile` happens, the master dies, the replica
  /// wakes and takes over.
  template <class Meanwhile>
  void fail_over_to_a_frozen_replica(const std::string& prefix, Meanwhile meanwhile) {
    const auto slot = key::redis_slot(prefix + ":pending");
    const auto master = cluster_.master_of(slot);
    const auto replica = cluster_.replica_of(master);
    cluster_.node(replica).pause();
    meanwhile();
    cluster_.node(master).kill9();
    cluster_.node(replica).resume();
    ASSERT_TRUE(eventually([&] { return cluster_.master_of(slot) == replica; }, 60s))
        << "nobody took over";
    cluster_.node(master).start();
    cluster_.wait_until_well();
  }

  redis_cluster cluster_{{.node_timeout = 3s}};
};

TEST_F(OutboxCluster, KeepsWhatReplicasConfirmedAndShowsWhatIsLostWithout) {
  const auto db = open(cluster_.url_of_all());
  // Without WAIT: what was acknowledged is lost. If it were not, the test below would prove
  // nothing.
  const std::string careless = "{careless}";
  const auto without = db.outbox(for_the_run(careless));
  std::vector<std::string> acknowledged;
  fail_over_to_a_frozen_replica(careless, [&] {
    // More than the buffers of the kernel hold: what is in them reaches the replica even after the
    // master's death.
    for (int i = 0; i < 10; ++i) {
      auto large = some(12);
      for (auto& one : large) one.payload.assign(200'000, 'x');
      for (const auto& one : without.publish_all(large)) {
        if (one.safe()) acknowledged.push_back(one.id);
      }
    }
  });
  EXPECT_GT(acknowledged.size(), 0U);
  const auto gone = lost(without, acknowledged);
  EXPECT_GT(gone, 0U) << "without WAIT a frozen replica must cost something, or the test is none";
  std::cout << "without WAIT: lost " << gone << " of " << acknowledged.size() << "\n";

  // With WAIT: what was confirmed is there; what was not is in doubt, and safe to publish again.
  const std::string careful = "{careful}";
  const auto with = db.outbox(for_the_run(careful));
  const auto safely = durability::replicated(1, 300ms);
  auto events = some(200);
  std::vector<std::string> confirmed;
  for (const auto& one : with.publish_all(events, durability::replicated(1, 20s))) {
    if (one.safe()) confirmed.push_back(one.id);
  }
  EXPECT_EQ(confirmed.size(), 200U);
  const auto doubtful = some(50);
  fail_over_to_a_frozen_replica(careful, [&] {
    for (const auto& one : with.publish_all(doubtful, safely)) {
      EXPECT_EQ(one.status, publish_status::in_doubt);
      ASSERT_TRUE(one.problem);
      EXPECT_TRUE(one.problem->in_doubt());
    }
  });
  EXPECT_EQ(lost(with, confirmed), 0U);
  EXPECT_TRUE(eventually(
      [&] {
        for (const auto& one : with.publish_all(doubtful, safely)) {
          if (!one.safe()) return false;
        }
        return true;
      },
      30s));
  EXPECT_EQ(with.admin().stats().events, 250U) << "each of them once";
  EXPECT_TRUE(with.admin().check().well());
}

TEST_F(OutboxCluster, GoesOnWhileItsSlotMoves) {
  const std::string prefix = "{moving}";
  const auto box = open(cluster_.url()).outbox(for_the_run(prefix));
  std::atomic<int> published = 0, delivered = 0;
  std::atomic<bool> strange = false;
  std::jthread producer([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      auto events = some(5);
      bool safe = false;
      for (int i = 0; i < 200 && !safe; ++i) {
        safe = true;
        for (const auto& one : box.publish_all(events)) safe = safe && one.safe();
      }
      if (!safe) strange = true;
      published += 5;
    }
  });
  const auto work = [&] {
    try {
      const auto got = box.claim({.run = 20, .lease = 2s});
      for (const auto& one : got.events) delivered += box.ack(got.fence, one) ? 1 : 0;
    } catch (const error& problem) {
      if (!problem.transient()) strange = true;
    }
  };
  std::jthread consumer([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) work();
  });
  const auto slot = key::redis_slot(prefix);
  for (int round = 0; round < 2; ++round) {
    const auto from = cluster_.master_of(slot);
    std::size_t to = 0;
    while (to == from || cluster_.node(to).run({"ROLE"}).find("master") != 0) ++to;
    ASSERT_TRUE(eventually([&, before = delivered.load()] { return delivered > before + 20; }));
    cluster_.begin_migration(slot, to);
    while (cluster_.migrate_keys(slot, from, to, 3) > 0) {
    }
    cluster_.end_migration(slot, to);
    ASSERT_TRUE(eventually([&] { return cluster_.master_of(slot) == to; }));
  }
  ASSERT_TRUE(eventually([&, before = delivered.load()] { return delivered > before + 20; }));
  producer.request_stop();
  producer.join();
  consumer.request_stop();
  consumer.join();
  EXPECT_TRUE(eventually(
      [&] {
        work();
        return box.admin().stats().events == 0;
      },
      60s));
  EXPECT_FALSE(strange);
  // An acknowledgement whose reply was lost in the move is counted as one less here, never as one
  // more.
  EXPECT_LE(delivered, published);
  EXPECT_EQ(box.admin().stats().acked, static_cast<std::uint64_t>(published));
  EXPECT_TRUE(box.admin().check().well());
}

}  // namespace
}  // namespace holdfast::test
