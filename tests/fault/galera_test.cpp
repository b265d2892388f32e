// What two nodes of a MariaDB cluster with Galera do at the same time: each test puts one
// transaction into the middle of another one on a second node.

#include <holdfast/database.hpp>
#include <holdfast/outbox.hpp>
#include <holdfast/sequence/block_store.hpp>

#include "fault/galera_nodes.hpp"
#include "fault/sequence_ids.hpp"
#include "outbox/sql/transaction.hpp"
#include "sql/connect.hpp"
#include "sql/mysql/effect.hpp"
#include "sql/mysql/errors.hpp"
#include "sql/retry.hpp"
#include "support/eventually.hpp"
#include "support/failure_of.hpp"
#include "support/hooked_connection.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using detail::outbox::own_transaction;

class Galera : public ::testing::Test {
 protected:
  Galera() : name_(shared_galera().node(0).create_database("galera")) {
    (void)through(0, true).admin().stats();
  }

  [[nodiscard]] std::string url(std::size_t node) const {
    return shared_galera().node(node).url(name_);
  }
  [[nodiscard]] outbox through(std::size_t node, bool create_schema = false) const {
    return open(url(node)).outbox({.create_schema = create_schema});
  }
  /// A connection whose first transaction sees the tables.
  [[nodiscard]] std::unique_ptr<sql::connection> connect(std::size_t node) const {
    auto connection = detail::sql::connector(url(node), {})();
    detail::outbox::wait_for_other_nodes(*connection);
    return connection;
  }

 private:
  std::string name_;
};

event keyed(const std::string& payload) { return {.type = "t", .key = "k", .payload = payload}; }

/// A settlement that removes the head of a key does not see the event that another node adds behind
/// it meanwhile, and that a claim on the other node meets behind the head.
TEST_F(Galera, AnEventThatIsPublishedWhileItsHeadIsSettledIsDelivered) {
  const auto hook = std::make_shared<statement_hook>();
  const auto first = database(hooked_factory(url(0), hook), {}).outbox({});
  const auto second = through(1);
  ASSERT_TRUE(first.publish(keyed("1")).safe());
  const auto claim = first.claim({.lease = 10min});
  ASSERT_EQ(claim.events.size(), 1U);
  // The counters are the last that a settlement writes.
  hook->arm("INSERT INTO holdfast_OUTBOX_TALLY", [&] {
    ASSERT_TRUE(second.publish(keyed("2")).safe());
    EXPECT_EQ(second.claim().events.size(), 0U) << "the head is claimed";
  });
  EXPECT_TRUE(first.ack(claim.fence, claim.events[0]));
  EXPECT_FALSE(hook->is_armed());
  claimed next;
  EXPECT_TRUE(eventually([&] {
    next = second.claim();
    return !next.events.empty();
  })) << second.admin().stats().stuck
      << " keys are stuck";
  ASSERT_EQ(next.events.size(), 1U);
  EXPECT_EQ(next.events[0].event.payload, "2");
  EXPECT_EQ(second.admin().stats().stuck, 0U);
}

/// A claim on one node and an acknowledgement on another one each change the head, so that one of
/// them is repeated.
TEST_F(Galera, AnEventIsNotClaimedAgainWhileItIsSettled) {
  const auto hook = std::make_shared<statement_hook>();
  const auto first = database(hooked_factory(url(0), hook), {}).outbox({});
  const auto second = through(1);
  ASSERT_TRUE(first.publish(keyed("1")).safe());
  const auto claim = first.claim({.lease = 1ms});
  ASSERT_EQ(claim.events.size(), 1U);
  std::size_t claimed_again = 0;
  hook->arm("INSERT INTO holdfast_OUTBOX_TALLY", [&] {
    std::this_thread::sleep_for(5ms);  // the lease ends
    claimed_again = second.claim({.lease = 10min}).events.size();
  });
  const bool acknowledged = first.ack(claim.fence, claim.events[0]);
  EXPECT_FALSE(hook->is_armed());
  EXPECT_NE(acknowledged, claimed_again == 1U);
}

/// What is claimed through one node is settled through another one, and what follows is published
/// and claimed through a third one, at once.
TEST_F(Galera, EachNodeSeesWhatWasAcknowledgedThroughAnother) {
  const std::vector<outbox> boxes{through(0), through(1), through(2)};
  for (std::size_t i = 0; i < 60; ++i) {
    ASSERT_TRUE(boxes[i % 3].publish(keyed(std::to_string(i))).safe());
    const auto claim = boxes[(i + 1) % 3].claim({.lease = 10min});
    ASSERT_EQ(claim.events.size(), 1U) << i;
    EXPECT_EQ(claim.events[0].event.payload, std::to_string(i));
    EXPECT_TRUE(boxes[(i + 2) % 3].ack(claim.fence, claim.events[0])) << i;
  }
  EXPECT_EQ(boxes[0].admin().stats().stale, 0U);
}

/// Events of one key that two nodes number without seeing each other would have no order.
TEST_F(Galera, OfTwoTransactionsThatPublishForAKeyOneFails) {
  const auto first = connect(0);
  const auto second = connect(1);
  const auto box = through(2);
  own_transaction earlier(*first);
  ASSERT_EQ(box.publish(earlier, keyed("1")).status, publish_status::added);
  {
    own_transaction later(*second);
    ASSERT_EQ(box.publish(later, keyed("2")).status, publish_status::added);
    later.commit();
  }
  const auto refusal = failure_of([&] { earlier.commit(); });
  EXPECT_TRUE(refusal.transient()) << refusal.what();
  EXPECT_FALSE(refusal.in_doubt()) << refusal.what();
  const auto claim = box.claim({.run = 10});
  ASSERT_EQ(claim.events.size(), 1U);
  EXPECT_EQ(claim.events[0].event.payload, "2");
}

TEST_F(Galera, EventsOfOtherKeysDoNotConflict) {
  const auto first = connect(0);
  const auto second = connect(1);
  const auto box = through(2);
  own_transaction earlier(*first);
  ASSERT_EQ(box.publish(earlier, keyed("1")).status, publish_status::added);
  ASSERT_EQ(box.publish(earlier, {.type = "t"}).status, publish_status::added);
  {
    own_transaction later(*second);
    ASSERT_EQ(box.publish(later, {.type = "t", .key = "other"}).status, publish_status::added);
    ASSERT_EQ(box.publish(later, {.type = "t"}).status, publish_status::added);
    later.commit();
  }
  earlier.commit();
  EXPECT_EQ(box.claim({.run = 10}).events.size(), 4U);
}

TEST_F(Galera, AnEffectIsAppliedOnOneNode) {
  const auto first = connect(0);
  const auto second = connect(1);
  const auto box = through(2);
  ASSERT_TRUE(box.publish(keyed("1")).safe());
  const auto claim = box.claim({.lease = 10min});
  ASSERT_EQ(claim.events.size(), 1U);
  for (const auto& each : {first.get(), second.get()}) detail::outbox::wait_for_other_nodes(*each);
  own_transaction earlier(*first);
  ASSERT_EQ(box.effect_once(earlier, claim.fence, claim.events[0]), commit_status::done);
  {
    own_transaction later(*second);
    ASSERT_EQ(box.effect_once(later, claim.fence, claim.events[0]), commit_status::done);
    later.commit();
  }
  EXPECT_TRUE(failure_of([&] { earlier.commit(); }).transient());
  // The lease can be extended meanwhile, through any node.
  own_transaction again(*second);
  EXPECT_EQ(box.effect_once(again, claim.fence, claim.events[0]), commit_status::applied);
  EXPECT_EQ(box.extend(claim.fence, claim.events, 10min), std::vector<bool>{true});
  again.commit();
  EXPECT_TRUE(box.ack(claim.fence, claim.events[0]));
}

TEST_F(Galera, ALaneHasOneOwner) {
  const std::vector<outbox> boxes{through(0), through(1), through(2)};
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> owners = 0;
    {
      std::barrier together(3);
      std::vector<std::jthread> threads;
      for (std::size_t i = 0; i < 3; ++i) {
        threads.emplace_back([&, i] {
          together.arrive_and_wait();
          if (boxes[i].lock(0, "owner" + std::to_string(i), 10min).held) ++owners;
        });
      }
    }
    EXPECT_EQ(owners, 1);
    for (std::size_t i = 0; i < 3; ++i) (void)boxes[i].unlock(0, "owner" + std::to_string(i));
  }
}

TEST_F(Galera, ATicketFiresOnce) {
  const std::vector<outbox> boxes{through(0), through(1), through(2)};
  for (int i = 0; i < 30; ++i)
    (void)boxes[0].schedule("t" + std::to_string(i), 0ms, {.type = "t", .key = "k"});
  {
    std::vector<std::jthread> threads;
    for (const auto& box : boxes) {
      threads.emplace_back([&box] {
        // A drain that met the same tickets on another node too often may fail. It is repeated.
        (void)eventually([&] {
          try {
            return box.drain(0).tickets == 0 && box.admin().stats().tickets == 0;
          } catch (const error& problem) {
            EXPECT_TRUE(problem.transient()) << problem.what();
            return false;
          }
        });
      });
    }
  }
  EXPECT_EQ(boxes[1].admin().stats().events, 30U);
  EXPECT_EQ(boxes[1].claim({.run = 100}).events.size(), 30U);
}

/// The tables of eight programs that start at the same time.
TEST_F(Galera, SchemasAreCreatedOnAllNodesAtOnce) {
  constexpr int programs = 8;
  for (int round = 0; round < 8; ++round) {
    const auto number = std::to_string(round);
    std::barrier together(programs);
    std::vector<std::jthread> threads;
    for (int i = 0; i < programs; ++i) {
      threads.emplace_back([&, i] {
        const auto db = open(url(static_cast<std::size_t>(i) % 3));
        together.arrive_and_wait();
        try {
          (void)db.block_store({.prefix = "B" + number + "_", .create_schema = true})->list(1);
          (void)db.outbox({.prefix = "{s" + number + "}", .create_schema = true}).admin().stats();
          (void)db.store(
              {.prefix = "E" + number + "_", .create_schema = true, .start = start_mode::require});
        } catch (const error& problem) {
          ADD_FAILURE() << problem.what();
        }
      });
    }
  }
}

/// The pauses of a refill are for servers that are down, and grow to a second.
TEST_F(Galera, AGrantThatLostAgainstAnotherNodeIsRepeatedAtOnce) {
  prepare(url(0));
  const auto hook = std::make_shared<statement_hook>();
  const auto store = database(hooked_factory(url(0), hook), {}).block_store({});
  (void)store->list(1);
  int conflicts = 0;
  std::function<void()> lose = [&] {
    if (++conflicts < 10) hook->arm("", lose);
    throw error(errc::unavailable, "a conflict", {.backend_code = "1213", .transient = true});
  };
  hook->arm("", lose);
  const block_request request{.name = "n", .count = 5};
  EXPECT_TRUE(store->allocate({&request, 1}).front().block.has_next());
  EXPECT_EQ(conflicts, 10);
}

TEST(GaleraErrors, ACommitThatTheClusterMayHaveIsInDoubt) {
  using namespace detail::sql;
  const auto lost =
      mysql::to_error({.number = 1180, .sqlstate = "HY000", .text = "Got error 6 during COMMIT"},
                      loss::in_doubt, "");
  EXPECT_TRUE(lost.transient());
  EXPECT_TRUE(lost.in_doubt());
  EXPECT_FALSE(is_write_conflict(lost));
  const auto conflict = mysql::to_error(
      {.number = 1213, .sqlstate = "40001", .text = "Deadlock found"}, loss::in_doubt, "");
  EXPECT_TRUE(conflict.transient());
  EXPECT_FALSE(conflict.in_doubt());
  EXPECT_TRUE(is_write_conflict(conflict));
}

TEST(GaleraErrors, AStatementWithASettingHasTheEffectOfTheStatement) {
  using detail::sql::mysql::effect;
  using detail::sql::mysql::effect_of;
  EXPECT_EQ(effect_of("SET STATEMENT wsrep_sync_wait=1 FOR SELECT 1"), effect::none);
  EXPECT_EQ(effect_of("SET STATEMENT wsrep_sync_wait=1 FOR DELETE FROM T"), effect::rows);
  EXPECT_EQ(effect_of("SET STATEMENT a=' FOR SELECT ' FOR DELETE FROM T"), effect::anything);
  EXPECT_EQ(effect_of("SET GLOBAL wsrep_on=OFF"), effect::anything);
}

/// Programs that draw from one counter through all nodes. A node that always loses goes on.
TEST_F(Galera, IdsAreUniqueAndNoNodeStarves) {
  prepare(url(0));
  std::vector<std::unique_ptr<drawing>> drawings;
  for (std::size_t node = 0; node < 3; ++node)
    drawings.push_back(std::make_unique<drawing>(2, drawer_of(url(node), {}, 5)));
  for (const auto& each : drawings) wait_for_more(*each, 1'000);
  std::vector<std::int64_t> ids;
  for (const auto& each : drawings) {
    const auto drawn = each->finish();
    std::cout << drawn.size() << " ids\n";
    ids.insert(ids.end(), drawn.begin(), drawn.end());
  }
  EXPECT_EQ(count_duplicates(std::move(ids)), 0U);
}

}  // namespace
}  // namespace holdfast::test
