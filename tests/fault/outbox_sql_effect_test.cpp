// effect_once on SQL: the mark of an effect lives as long as its event, whatever the dedup window
// and the dedup limit are.

#include <holdfast/database.hpp>
#include <holdfast/outbox.hpp>

#include "fault/outbox_sql_places.hpp"
#include "support/eventually.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

template <class Place>
class OutboxSqlEffects : public OnSqlDatabase<Place> {
 protected:
  using handle_type = typename Place::handle;

  outbox open_box(outbox_options options) {
    options.prefix = prefix;
    options.create_schema = true;
    return open(this->url).outbox(options);
  }
  /// Applies the effect of an event in a transaction of its own.
  commit_status apply(const outbox& box, fence token, const claimed_event& event) {
    handle_type client(this->url);
    client.run(handle_type::begin);
    auto transaction = client.joined();
    const auto status = box.effect_once(transaction, token, event);
    client.run("COMMIT");
    return status;
  }
  /// Claims one event; waits until the lease of an earlier claim has ended.
  claimed claim_one(const outbox& box, std::chrono::milliseconds lease = 30s) {
    claimed claim;
    EXPECT_TRUE(eventually([&] {
      claim = box.claim({.most = 1, .lease = lease});
      return !claim.events.empty();
    }));
    return claim;
  }
  void deliver_others(const outbox& box, int count) {
    std::vector<event> others;
    for (int i = 0; i < count; ++i) others.push_back({.type = "other", .key = "other"});
    (void)box.publish_all(others);
    for (int delivered = 0; delivered < count;) {
      const auto claim = box.claim({.run = 10});
      std::vector<settlement> settlements;
      for (const auto& each : claim.events)
        settlements.push_back({.id = each.event.id, .key = each.event.key});
      if (!settlements.empty()) (void)box.settle(0, claim.fence, settlements);
      delivered += static_cast<int>(settlements.size());
    }
  }
};
TYPED_TEST_SUITE(OutboxSqlEffects, sql_places);

TYPED_TEST(OutboxSqlEffects, AMarkOutlivesTheWindowAndTheLimitWhileItsEventExists) {
  for (const std::string key : {"", "k"}) {
    SCOPED_TRACE(key);
    const auto box = this->open_box({.dedup_window = 1ms, .dedup_limit = 1});
    (void)box.publish({.type = "t", .key = key});
    const auto first = this->claim_one(box, 1ms);  // its worker dies after the effect
    ASSERT_EQ(this->apply(box, first.fence, first.events.at(0)), commit_status::done);
    // Redelivered after the window, and after others were remembered.
    const auto second = this->claim_one(box);
    ASSERT_EQ(second.events.at(0).event.id, first.events.at(0).event.id);
    this->deliver_others(box, 30);
    EXPECT_EQ(this->apply(box, second.fence, second.events[0]), commit_status::applied);
    // Retried, parked and replayed.
    ASSERT_TRUE(box.fail(second.fence, second.events[0], 0ms, "later"));
    const auto third = this->claim_one(box);
    EXPECT_EQ(this->apply(box, third.fence, third.events.at(0)), commit_status::applied);
    ASSERT_TRUE(box.park(third.fence, third.events[0], park_policy::skip, "tomorrow"));
    this->deliver_others(box, 30);
    ASSERT_EQ(box.admin().replay(std::vector<std::string>{third.events[0].event.id}), 1U);
    const auto fourth = this->claim_one(box);
    EXPECT_EQ(this->apply(box, fourth.fence, fourth.events.at(0)), commit_status::applied);
    // Its window starts when it is acknowledged. Then the mark is forgotten like any other id.
    ASSERT_TRUE(box.ack(fourth.fence, fourth.events[0]));
    EXPECT_TRUE(eventually([&] {
      this->deliver_others(box, 1);
      typename TestFixture::handle_type client(this->url);
      return numbers(client, "SELECT COUNT(*) FROM fault_OUTBOX WHERE ID LIKE 'e:%'").at(0) == 0;
    }));
    EXPECT_TRUE(box.admin().check().well());
  }
}

TYPED_TEST(OutboxSqlEffects, ADedupLimitOfZeroIsNoLimit) {
  const auto box = this->open_box({.dedup_limit = 0});
  const auto id = box.publish({.type = "t"}).id;
  const auto claim = this->claim_one(box);
  ASSERT_EQ(this->apply(box, claim.fence, claim.events.at(0)), commit_status::done);
  ASSERT_TRUE(box.ack(claim.fence, claim.events[0]));
  this->deliver_others(box, 40);
  EXPECT_EQ(box.publish({.type = "t", .id = id}).status, publish_status::duplicate);
  EXPECT_EQ(this->apply(box, claim.fence, claim.events[0]), commit_status::applied);
  EXPECT_EQ(box.admin().stats().remembered, 42U);
}

TYPED_TEST(OutboxSqlEffects, ADiscardedEventStartsTheWindowOfItsMark) {
  const auto box = this->open_box({.dedup_window = 1ms});
  (void)box.publish({.type = "t", .key = "k"});
  const auto claim = this->claim_one(box);
  ASSERT_EQ(this->apply(box, claim.fence, claim.events.at(0)), commit_status::done);
  ASSERT_TRUE(box.park(claim.fence, claim.events[0], park_policy::block, "bad"));
  ASSERT_EQ(box.admin().discard(std::vector<std::string>{claim.events[0].event.id}), 1U);
  EXPECT_TRUE(eventually([&] {
    this->deliver_others(box, 1);
    typename TestFixture::handle_type client(this->url);
    return numbers(client, "SELECT COUNT(*) FROM fault_OUTBOX WHERE ID LIKE 'e:%'").at(0) == 0;
  }));
}

/// Tickets without a key become events in the lane of the ticket, which is not that of their id.
TYPED_TEST(OutboxSqlEffects, AnEffectIsAppliedInTheLaneOfTheClaimedEvent) {
  constexpr std::size_t lanes = 16;
  constexpr std::size_t count = 40;
  const auto box = this->open_box({.lanes = lanes});
  for (std::size_t i = 0; i < count; ++i)
    (void)box.schedule("ticket" + std::to_string(i), 1ms, {.type = "t"});
  std::size_t applied = 0;
  EXPECT_TRUE(eventually([&] {
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      (void)box.drain(lane);
      const auto claim = box.claim({.lane = lane});
      for (const auto& each : claim.events) {
        EXPECT_EQ(each.lane, lane);
        EXPECT_EQ(this->apply(box, claim.fence, each), commit_status::done);
        EXPECT_EQ(this->apply(box, claim.fence, each), commit_status::applied);
        EXPECT_TRUE(box.ack(claim.fence, each));
        ++applied;
      }
    }
    return applied == count;
  })) << applied;
  EXPECT_EQ(box.admin().stats().parked, 0U);
}

}  // namespace
}  // namespace holdfast::test
