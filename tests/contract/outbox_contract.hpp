#pragma once

/// \file
/// What every outbox does, as tests. Write a fixture with
///
///     std::shared_ptr<holdfast::outbox_backend> make(std::size_t lanes);   // an empty one
///     void pass(std::chrono::milliseconds time);                           // time passes for the store: move its clock, or sleep
///     static constexpr bool commits;                                       // does it know `commit`?
///
/// and instantiate the suite on it:
///
///     INSTANTIATE_TYPED_TEST_SUITE_P(mine, OutboxContract, my_fixture);

#include <holdfast/outbox.hpp>

#include "support/eventually.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {

template <class Fixture>
class OutboxContract : public ::testing::Test {
 protected:
  using ms = std::chrono::milliseconds;

  /// Short, since a store with a clock of its own makes us wait for its end.
  static constexpr ms lease{150};

  [[nodiscard]] outbox open(outbox_options options = {}) {
    return outbox(fixture_.make(options.lanes), options);
  }

  static event make(std::string key, std::string payload = "{}") {
    return {.type = "test.happened",
            .key = std::move(key),
            .payload = std::move(payload),
            .id = new_event_id()};
  }
  static std::vector<std::string> payloads(const claimed& what) {
    std::vector<std::string> result;
    for (const auto& one : what.events) result.push_back(one.event.payload);
    return result;
  }
  static settlement acked(const claimed_event& what) {
    return {.id = what.event.id, .key = what.event.key};
  }
  static std::vector<settlement> all_acked(const claimed& what) {
    std::vector<settlement> result;
    for (const auto& one : what.events) result.push_back(acked(one));
    return result;
  }

  Fixture fixture_;
};

TYPED_TEST_SUITE_P(OutboxContract);

TYPED_TEST_P(OutboxContract, DeliversWhatWasPublished) {
  auto box = this->open();
  event what = this->make("ticket-7", R"({"n":1,"text":"\u00e9 \"quoted\""})");
  what.headers = {{"traceparent", "00-abc"}, {"tenant", "acme \"x\" \t\xc3\xa9"}};
  what.schema = "v3";
  what.aggregate_type = "ticket";
  what.aggregate_id = "7";
  what.time_to_live = std::chrono::hours(1);
  EXPECT_EQ(box.publish(what).status, publish_status::added);
  const auto got = box.claim({.lease = this->lease});
  ASSERT_EQ(got.events.size(), 1U);
  EXPECT_EQ(got.status, claim_status::some);
  EXPECT_EQ(got.events[0].event, what);
  EXPECT_EQ(got.events[0].deliveries, 1U);
  EXPECT_EQ(got.events[0].attempts, 0U);
  EXPECT_GT(got.fence, 0);
  EXPECT_TRUE(box.ack(got.fence, got.events[0]));
  EXPECT_EQ(box.claim().status, claim_status::empty);
  EXPECT_EQ(box.admin().stats().events, 0U);
  EXPECT_EQ(box.admin().stats().bytes, 0U);
  EXPECT_TRUE(box.admin().check().well());
}

TYPED_TEST_P(OutboxContract, CarriesAnyPayload) {
  auto box = this->open();
  const std::vector<std::string> payloads{"",
                                          "{}",
                                          "[1,2, 3]",
                                          "plain text",
                                          " {\"spaces\":1} ",
                                          "{\"a\":1},\"id\":\"evil\"",
                                          "{broken",
                                          std::string("\0\x01\xff\xfe", 4),
                                          "\xf0\x9f\x98\x80 \"\\\n",
                                          "\"just a string\"",
                                          "17",
                                          std::string(100'000, 'x')};
  for (const auto& payload : payloads) {
    event what = this->make("", payload);
    what.content_type = "application/octet-stream";
    (void)box.publish(what);
    const auto got = box.claim();
    ASSERT_EQ(got.events.size(), 1U);
    EXPECT_EQ(got.events[0].event, what);
    EXPECT_TRUE(box.ack(got.fence, got.events[0]));
  }
}

TYPED_TEST_P(OutboxContract, TheSameIdIsTheSameEvent) {
  auto box = this->open();
  const auto what = this->make("k");
  EXPECT_EQ(box.publish(what).status, publish_status::added);
  EXPECT_EQ(box.publish(what).status, publish_status::duplicate);
  const auto twice = box.publish_all(std::vector<event>{what, this->make("k"), what});
  EXPECT_EQ(twice[0].status, publish_status::duplicate);
  EXPECT_EQ(twice[1].status, publish_status::added);
  EXPECT_EQ(twice[2].status, publish_status::duplicate);
  EXPECT_EQ(box.admin().stats().events, 2U);
  auto got = box.claim();
  EXPECT_TRUE(box.ack(got.fence, got.events[0]));
  EXPECT_EQ(box.publish(what).status, publish_status::duplicate)
      << "delivered, and within the dedup window";
}

TYPED_TEST_P(OutboxContract, KeepsTheOrderOfAKey) {
  auto box = this->open();
  std::vector<event> many;
  for (int i = 0; i < 5; ++i) {
    many.push_back(this->make("a", "a" + std::to_string(i)));
    many.push_back(this->make("b", "b" + std::to_string(i)));
  }
  (void)box.publish_all(many);
  for (int i = 0; i < 5; ++i) {
    const auto got = box.claim({.lease = std::chrono::seconds(30)});
    auto texts = this->payloads(got);
    std::sort(texts.begin(), texts.end());
    EXPECT_EQ(texts, (std::vector<std::string>{"a" + std::to_string(i), "b" + std::to_string(i)}));
    EXPECT_EQ(box.claim().status, claim_status::empty)
        << "what follows waits until these are settled";
    (void)box.settle(0, got.fence, this->all_acked(got));
  }
  EXPECT_EQ(box.admin().stats().events, 0U);
}

TYPED_TEST_P(OutboxContract, TakesRunsAndContinuesThem) {
  auto box = this->open();
  std::vector<event> many;
  for (int i = 0; i < 10; ++i) many.push_back(this->make("a", std::to_string(i)));
  (void)box.publish_all(many);
  auto got = box.claim({.run = 4});
  EXPECT_EQ(this->payloads(got), (std::vector<std::string>{"0", "1", "2", "3"}));
  auto next = box.settle(0, got.fence, this->all_acked(got), run_request{.run = 4});
  EXPECT_EQ(next.done, std::vector<bool>(4, true));
  EXPECT_EQ(this->payloads(next.next), (std::vector<std::string>{"4", "5", "6", "7"}));
  EXPECT_GT(next.next.fence, got.fence);
  // Half of a run: the rest stays ours, with the same fence.
  auto half = box.settle(0, next.next.fence,
                         {this->acked(next.next.events[0]), this->acked(next.next.events[1])},
                         run_request{.run = 4});
  EXPECT_EQ(half.done, std::vector<bool>(2, true));
  EXPECT_TRUE(half.next.events.empty());
  EXPECT_EQ(box.claim().status, claim_status::empty);
  auto rest = box.settle(0, next.next.fence,
                         {this->acked(next.next.events[2]), this->acked(next.next.events[3])},
                         run_request{.run = 4});
  EXPECT_EQ(rest.done, std::vector<bool>(2, true));
  EXPECT_EQ(this->payloads(rest.next), (std::vector<std::string>{"8", "9"}));
  (void)box.settle(0, rest.next.fence, this->all_acked(rest.next));
  EXPECT_EQ(box.admin().stats().events, 0U);
  EXPECT_TRUE(box.admin().check().well());
}

TYPED_TEST_P(OutboxContract, ALostLeaseHasNoEffect) {
  auto box = this->open();
  (void)box.publish_all(
      std::vector<event>{this->make("a", "0"), this->make("a", "1"), this->make("", "u")});
  const auto late = box.claim({.run = 5, .lease = this->lease});
  ASSERT_EQ(late.events.size(), 3U);
  this->fixture_.pass(this->lease + std::chrono::milliseconds(50));
  const auto now = box.claim({.run = 5, .lease = std::chrono::seconds(30)});
  ASSERT_EQ(now.events.size(), 2U) << "the head comes alone when it was delivered before";
  EXPECT_GT(now.fence, late.fence);
  EXPECT_EQ(now.events[0].deliveries, 2U);
  auto settled = box.settle(0, late.fence, this->all_acked(late));
  EXPECT_EQ(settled.done, std::vector<bool>(3, false));
  EXPECT_FALSE(box.fail(late.fence, late.events[0], std::chrono::milliseconds(0), "late"));
  EXPECT_FALSE(box.park(late.fence, late.events[0], park_policy::skip, "late"));
  EXPECT_EQ(box.extend(late.fence, late.events, std::chrono::seconds(30)),
            std::vector<bool>(3, false));
  EXPECT_EQ(box.extend(now.fence, now.events, std::chrono::seconds(30)),
            std::vector<bool>(2, true));
  EXPECT_EQ(box.settle(0, now.fence, this->all_acked(now)).done, std::vector<bool>(2, true));
  EXPECT_EQ(box.admin().stats().stale, 5U);
}

TYPED_TEST_P(OutboxContract, AnExtendedLeaseIsKept) {
  auto box = this->open();
  (void)box.publish(this->make("a"));
  const auto got = box.claim({.lease = this->lease});
  EXPECT_EQ(box.extend(got.fence, got.events, std::chrono::seconds(30)), std::vector<bool>{true});
  this->fixture_.pass(this->lease + std::chrono::milliseconds(50));
  EXPECT_EQ(box.claim().status, claim_status::empty);
  EXPECT_TRUE(box.ack(got.fence, got.events[0]));
}

TYPED_TEST_P(OutboxContract, AFailedEventIsTriedAgainInItsPlace) {
  auto box = this->open();
  // The second of three fails.
  const auto fail_in = [&](const std::string& key, std::chrono::milliseconds delay) {
    (void)box.publish_all(
        std::vector<event>{this->make(key, "0"), this->make(key, key + "1"), this->make(key, "2")});
    const auto got = box.claim({.run = 3});
    EXPECT_EQ(this->payloads(got), (std::vector<std::string>{"0", key + "1", "2"}));
    auto failed = this->acked(got.events.at(1));
    failed.action = settlement::kind::retry;
    failed.delay = delay;
    failed.error = std::string("no\0answer", 9);  // not every store has such a text
    EXPECT_EQ(box.settle(0, got.fence,
                         {this->acked(got.events.at(0)), failed, this->acked(got.events.at(2))})
                  .done,
              (std::vector<bool>{true, true, false}))
        << "what follows in the run is given back";
    return failed.id;
  };
  // What is not due, and what is: each with a time that suits it, however slow the machine.
  const auto waiting = fail_in("a", std::chrono::hours(1));
  const auto none = box.claim({.run = 3});
  EXPECT_EQ(none.status, claim_status::empty);
  ASSERT_TRUE(none.next);
  EXPECT_LE(*none.next, std::chrono::hours(1));
  EXPECT_EQ(box.find(waiting)->state, event_state::waiting);
  (void)fail_in("b", std::chrono::milliseconds(30));
  this->fixture_.pass(std::chrono::milliseconds(50));
  const auto again = box.claim({.run = 3});
  ASSERT_EQ(this->payloads(again), (std::vector<std::string>{"b1"}));
  EXPECT_EQ(again.events[0].attempts, 1U);
  EXPECT_EQ(again.events[0].deliveries, 2U);
  EXPECT_EQ(again.events[0].last_error, "no answer");
}

TYPED_TEST_P(OutboxContract, ParksBySkipBlockAndPark) {
  for (const auto policy : {park_policy::skip, park_policy::block, park_policy::park}) {
    SCOPED_TRACE(to_string(policy));
    auto box = this->open();
    (void)box.publish_all(
        std::vector<event>{this->make("a", "0"), this->make("a", "1"), this->make("a", "2")});
    const auto got = box.claim();
    const auto id = got.events.at(0).event.id;
    EXPECT_TRUE(box.park(got.fence, got.events[0], policy, "bad"));
    EXPECT_EQ(box.admin().stats().parked, policy == park_policy::park ? 3U : 1U);
    const auto record = box.find(id);
    ASSERT_TRUE(record);
    EXPECT_EQ(record->state,
              policy == park_policy::block ? event_state::blocking : event_state::parked);
    EXPECT_EQ(record->details.last_error, "bad");
    const auto next = box.claim();
    EXPECT_EQ(this->payloads(next), policy == park_policy::skip ? std::vector<std::string>{"1"}
                                                                : std::vector<std::string>{});
    const std::vector<std::string> ids{id};
    if (policy == park_policy::skip) {
      EXPECT_EQ(box.admin().replay(ids), 1U);
      EXPECT_EQ(box.find(id)->state, event_state::following)
          << "its turn is over: it waits behind the others";
      EXPECT_EQ(box.admin().replay(ids), 0U);
    } else if (policy == park_policy::block) {
      EXPECT_EQ(box.admin().replay(ids), 1U);
      const auto again = box.claim();
      EXPECT_EQ(this->payloads(again), std::vector<std::string>{"0"});
      EXPECT_EQ(again.events.at(0).replays, 1U);
      EXPECT_EQ(again.events.at(0).deliveries, 1U);
      EXPECT_TRUE(box.park(again.fence, again.events[0], policy, "bad again"));
      EXPECT_EQ(box.admin().discard(ids), 1U);
      EXPECT_EQ(this->payloads(box.claim()), std::vector<std::string>{"1"});
    } else {
      (void)box.publish(this->make("a", "3"));
      EXPECT_EQ(this->payloads(box.claim()), std::vector<std::string>{"3"})
          << "what comes later goes on";
    }
    EXPECT_TRUE(box.admin().check().well());
  }
}

/// The answer of a settle was lost: said again, it is stale, and says again whose followers are to
/// be parked. To nobody else.
TYPED_TEST_P(OutboxContract, SaysAgainWhoIsToBeParked) {
  auto box = this->open();
  for (int i = 0; i < 3; ++i) (void)box.publish(this->make("k"));
  const auto got = box.claim();
  ASSERT_EQ(got.events.size(), 1U);
  auto park = this->acked(got.events[0]);
  park.action = settlement::kind::park;
  park.policy = park_policy::park;
  park.error = "bad";
  const std::vector<settlement> once{park};
  const auto tell = [&](fence token, const std::vector<settlement>& what) {
    return box.backend()->settle(0, token, what, {}, {});
  };
  EXPECT_EQ(tell(got.fence, once).keys_to_park, std::vector<std::string>{"k"});
  EXPECT_EQ(box.admin().stats().parked, 1U);
  EXPECT_TRUE(tell(got.fence + 1, once).keys_to_park.empty()) << "somebody else";
  auto block = once;
  block[0].policy = park_policy::block;
  EXPECT_TRUE(tell(got.fence, block).keys_to_park.empty()) << "something else";
  EXPECT_EQ(tell(got.fence, once).keys_to_park, std::vector<std::string>{"k"});
  EXPECT_FALSE(box.settle(0, got.fence, once).done.at(0)) << "settled before";
  EXPECT_EQ(box.admin().stats().parked, 3U);
  EXPECT_TRUE(tell(got.fence, once).keys_to_park.empty()) << "that is done";
  (void)box.publish(this->make("k", "later"));
  EXPECT_EQ(this->payloads(box.claim()), std::vector<std::string>{"later"});
  EXPECT_TRUE(box.admin().check().well());
}

/// Whoever parked the first event of a key died before those behind it were parked: the next who
/// claims goes on.
TYPED_TEST_P(OutboxContract, WhoClaimsNextParksTheFollowers) {
  auto box = this->open();
  std::vector<event> many;
  for (int i = 0; i < 1102; ++i) many.push_back(this->make("k"));  // more than one step parks
  many.push_back(this->make("other", "other"));
  (void)box.publish_all(many);
  const auto got = box.claim({.most = 1});
  ASSERT_EQ(got.events.size(), 1U);
  ASSERT_EQ(got.events[0].event.id, many[0].id);
  auto park = this->acked(got.events[0]);
  park.action = settlement::kind::park;
  park.policy = park_policy::park;
  park.error = "bad";
  const std::vector<settlement> once{park};
  EXPECT_EQ(box.backend()->settle(0, got.fence, once, {}, {}).keys_to_park,
            std::vector<std::string>{"k"});
  EXPECT_EQ(box.find(many[0].id)->state, event_state::blocking);
  std::vector<std::string> delivered;
  for (int i = 0; i < 5 && box.admin().stats().parked < 1102; ++i) {
    const auto next = box.claim({.run = 10});
    for (const auto& one : next.events) delivered.push_back(one.event.payload);
    EXPECT_TRUE(next.next) << "there is more to do";
  }
  EXPECT_EQ(delivered, std::vector<std::string>{"other"}) << "none of the key";
  EXPECT_EQ(box.admin().stats().parked, 1102U);
  EXPECT_EQ(box.admin().stats().parkings, 1102U);
  EXPECT_EQ(box.find(many[0].id)->state, event_state::parked);
  EXPECT_EQ(box.find(many[0].id)->details.last_error, "bad");
  EXPECT_EQ(box.find(many[1101].id)->details.last_error, "parked behind " + many[0].id);
  (void)box.publish(this->make("k", "later"));
  EXPECT_EQ(this->payloads(box.claim()), std::vector<std::string>{"later"});
  EXPECT_TRUE(box.admin().check().well());
}

/// Who was to park the followers comes late: others did it, and the key stands at an event that
/// blocks it. That one stays in front.
TYPED_TEST_P(OutboxContract, WhoParksFollowersLatePassesNothingThatBlocks) {
  auto box = this->open();
  for (int i = 0; i < 2; ++i) (void)box.publish(this->make("k"));
  const auto first = box.claim();
  ASSERT_EQ(first.events.size(), 1U);
  auto park = this->acked(first.events[0]);
  park.action = settlement::kind::park;
  park.policy = park_policy::park;
  park.error = "bad";
  ASSERT_EQ(
      box.backend()->settle(0, first.fence, std::vector<settlement>{park}, {}, {}).keys_to_park,
      std::vector<std::string>{"k"});
  EXPECT_TRUE(box.claim().events.empty());
  ASSERT_EQ(box.admin().stats().parked, 2U) << "whoever claims next has done it";
  const auto blocking = this->make("k");
  (void)box.publish_all(std::vector<event>{blocking, this->make("k"), this->make("k")});
  const auto second = box.claim();
  ASSERT_EQ(second.events.size(), 1U);
  ASSERT_TRUE(box.park(second.fence, second.events[0], park_policy::block, "wait"));
  EXPECT_EQ(box.backend()->park_followers(0, "k", 100), 0U);
  EXPECT_EQ(box.admin().stats().parked, 3U);
  EXPECT_EQ(box.find(blocking.id)->state, event_state::blocking);
  (void)box.publish(this->make("k"));
  EXPECT_TRUE(box.claim().events.empty());
  EXPECT_TRUE(box.admin().check().well());
}

/// An id whose window is over is forgotten by whoever publishes it again, and by whoever trims: of
/// many at once, one adds it.
TYPED_TEST_P(OutboxContract, AnIdIsAddedOnceAfterItsWindow) {
  constexpr std::chrono::milliseconds window{2};
  const auto plain = this->open({.dedup_window = window});
  const auto bounded = this->open({.quota = {.events = 100}, .dedup_window = window});
  for (int round = 0; round < 12; ++round) {
    SCOPED_TRACE(round);
    const auto& box = round % 2 == 0 ? plain : bounded;
    const auto what = this->make(round % 3 == 0 ? "k" : "");
    ASSERT_EQ(box.publish(what).status, publish_status::added);
    const auto first = box.claim();
    ASSERT_EQ(first.events.size(), 1U);
    ASSERT_TRUE(box.ack(first.fence, first.events[0]));
    this->fixture_.pass(window + std::chrono::milliseconds(3));
    (void)box.publish(this->make("other"));
    const auto held = box.claim();
    ASSERT_EQ(held.events.size(), 1U);
    std::barrier start(4);
    std::atomic<int> added{0};
    {
      std::vector<std::jthread> threads;
      for (int t = 0; t < 3; ++t) {
        threads.emplace_back([&, t] {
          std::vector<event> mine{what};
          if (round % 4 > 1) mine.push_back(this->make("own" + std::to_string(t)));
          start.arrive_and_wait();
          const auto receipts = box.publish_all(mine);
          if (receipts.front().status == publish_status::added) ++added;
          EXPECT_TRUE(receipts.back().safe())
              << (receipts.back().problem ? receipts.back().problem->what() : "");
        });
      }
      threads.emplace_back([&] {
        start.arrive_and_wait();
        EXPECT_TRUE(box.ack(held.fence, held.events[0]));
      });
    }
    EXPECT_EQ(added, 1);
    const auto all = box.claim();
    EXPECT_EQ(all.events.size(), round % 4 > 1 ? 4U : 1U);
    EXPECT_EQ(std::count_if(all.events.begin(), all.events.end(),
                            [&](const auto& one) { return one.event.id == what.id; }),
              1);
    (void)box.settle(0, all.fence, this->all_acked(all));
    ASSERT_EQ(box.admin().stats().events, 0U);
    this->fixture_.pass(window + std::chrono::milliseconds(3));
  }
  EXPECT_TRUE(plain.admin().check().well());
  EXPECT_TRUE(bounded.admin().check().well());
}

/// Known ids are duplicates each time, also in one call; one that was forgotten is none.
TYPED_TEST_P(OutboxContract, CountsDuplicates) {
  constexpr std::chrono::milliseconds window{2};
  auto box = this->open({.dedup_window = window});
  const auto what = this->make("k");
  (void)box.publish_all(std::vector<event>{what, this->make(""), what});
  EXPECT_EQ(box.admin().stats().duplicates, 1U);
  (void)box.publish_all(std::vector<event>{what, what});
  EXPECT_EQ(box.admin().stats().duplicates, 3U);
  const auto got = box.claim();
  (void)box.settle(0, got.fence, this->all_acked(got));
  this->fixture_.pass(window + std::chrono::milliseconds(3));
  EXPECT_EQ(box.publish(what).status, publish_status::added);
  EXPECT_EQ(box.admin().stats().duplicates, 3U);
  EXPECT_EQ(box.admin().stats().published, 3U);
  EXPECT_EQ(box.admin().stats().events, 1U);
}

/// The limit is one for each lane, however little is delivered at a time.
TYPED_TEST_P(OutboxContract, RemembersAsManyAsItMay) {
  auto box = this->open({.lanes = 2, .dedup_limit = 32});
  const std::string keys[]{"a", "b"};
  ASSERT_NE(box.lane_of(keys[0]), box.lane_of(keys[1]));
  for (int round = 0; round < 30; ++round) {
    this->fixture_.pass(std::chrono::milliseconds(1));
    for (const std::size_t n : {0U, 0U, 1U}) (void)box.publish(this->make(keys[n]));
    for (const auto& key : keys) {
      const auto got = box.claim({.lane = box.lane_of(key), .run = 2});
      ASSERT_EQ(got.events.size(), key == "a" ? 2U : 1U);
      (void)box.settle(got.lane, got.fence, this->all_acked(got));
    }
  }
  EXPECT_GE(box.backend()->stats(box.lane_of("a")).remembered, 32U);
  EXPECT_LE(box.backend()->stats(box.lane_of("a")).remembered, 40U);
  EXPECT_GE(box.backend()->stats(box.lane_of("b")).remembered, 29U);
}

TYPED_TEST_P(OutboxContract, FindsPoison) {
  auto box = this->open({.max_deliveries = 2});
  (void)box.publish(this->make("a", "poison"));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(box.claim({.lease = std::chrono::milliseconds(20)}).events.size(), 1U);
    this->fixture_.pass(std::chrono::milliseconds(40));
  }
  EXPECT_TRUE(box.claim().events.empty());
  EXPECT_EQ(box.admin().stats().parked, 1U);
  EXPECT_EQ(box.claim().status, claim_status::empty);
  // One whose handlers do say something is none, however often it fails or is sent away.
  const auto id = box.publish(this->make("b", "alive")).id;
  for (int i = 0; i < 8; ++i) {
    const auto got = box.claim();
    ASSERT_EQ(this->payloads(got), std::vector<std::string>{"alive"}) << i;
    const settlement back{.id = id,
                          .key = "b",
                          .action = settlement::kind::retry,
                          .counts = i % 2 == 0,
                          .error = "not now"};
    EXPECT_EQ(box.settle(0, got.fence, {back}).done, std::vector<bool>{true});
  }
  EXPECT_EQ(box.find(id)->details.attempts, 4U);
  EXPECT_EQ(box.find(id)->details.deliveries, 4U) << "throttled: not counted as a delivery";
}

TYPED_TEST_P(OutboxContract, ParksWhatIsTooLate) {
  auto box = this->open();
  auto what = this->make("a");
  what.time_to_live = std::chrono::milliseconds(20);
  (void)box.publish(what);
  this->fixture_.pass(std::chrono::milliseconds(40));
  const auto got = box.claim();
  EXPECT_TRUE(got.events.empty());
  ASSERT_EQ(got.parked.size(), 1U);
  EXPECT_EQ(got.parked[0].first, what.id);
  EXPECT_NE(got.parked[0].second.find("too late"), std::string::npos) << got.parked[0].second;
  EXPECT_EQ(box.admin().stats().parked, 1U);
  EXPECT_NE(box.admin().explain(what.id).find("too late"), std::string::npos)
      << box.admin().explain(what.id);
  EXPECT_EQ(box.admin().replay(std::vector<std::string>{what.id}), 1U);
  EXPECT_EQ(box.claim().events.size(), 1U) << "whoever brings it back knows that it is late";
}

TYPED_TEST_P(OutboxContract, WaitsForTheirTime) {
  auto box = this->open();
  auto later = this->make("", "later");
  later.delay = std::chrono::hours(1);  // a busy server may take its time to claim and to find
  (void)box.publish_all(std::vector<event>{later, this->make("", "now")});
  EXPECT_EQ(this->payloads(box.claim()), std::vector<std::string>{"now"});
  EXPECT_EQ(box.find(later.id)->state, event_state::waiting);
  auto soon = this->make("", "soon");
  soon.delay = std::chrono::milliseconds(30);
  (void)box.publish(soon);
  this->fixture_.pass(std::chrono::milliseconds(50));
  EXPECT_EQ(this->payloads(box.claim()), std::vector<std::string>{"soon"});
}

/// An event without a delay needs no time: it is due, also if the clock of the store was ahead when
/// it was published. For fixtures that can set the clock of their store: `void set_clock(ms)`.
TYPED_TEST_P(OutboxContract, AClockThatWasAheadDelaysNothing) {
  if constexpr (requires { this->fixture_.set_clock(std::chrono::milliseconds(1)); }) {
    constexpr std::chrono::hours ahead{1};
    auto box = this->open();
    (void)box.publish(this->make("", "before"));
    this->fixture_.set_clock(ahead);
    auto delayed = this->make("", "delayed");
    delayed.delay = std::chrono::minutes(1);
    (void)box.publish_all(std::vector<event>{this->make("", "0"), this->make("k", "1"),
                                             this->make("k", "2"), this->make("l", "3"),
                                             this->make("l", "4"), delayed});
    this->fixture_.set_clock(-ahead);
    (void)box.publish(this->make("k", "5"));
    std::vector<std::string> delivered;
    for (int round = 0; round < 3; ++round) {
      const auto claim = box.claim({.run = round == 0 ? 1U : 10U});
      for (const auto& text : this->payloads(claim)) delivered.push_back(text);
      if (!claim.events.empty()) (void)box.settle(0, claim.fence, this->all_acked(claim));
    }
    EXPECT_LT(std::ranges::find(delivered, "1"), std::ranges::find(delivered, "2"));
    EXPECT_LT(std::ranges::find(delivered, "2"), std::ranges::find(delivered, "5"));
    std::ranges::sort(delivered);
    EXPECT_EQ(delivered, (std::vector<std::string>{"0", "1", "2", "3", "4", "5", "before"}));
    EXPECT_EQ(box.find(delayed.id)->state, event_state::waiting);
    EXPECT_TRUE(box.admin().check().well());
  }
}

TYPED_TEST_P(OutboxContract, ReleasesWithoutBlame) {
  auto box = this->open();
  (void)box.publish(this->make("a"));
  for (int i = 0; i < 20; ++i) {
    const auto got = box.claim();
    ASSERT_EQ(got.events.size(), 1U);
    EXPECT_EQ(got.events[0].deliveries, 1U);
    auto back = this->acked(got.events[0]);
    back.action = settlement::kind::release;
    EXPECT_TRUE(box.settle(0, got.fence, {back}).done[0]);
  }
}

TYPED_TEST_P(OutboxContract, PausesAndResumes) {
  auto box = this->open();
  box.admin().pause();
  const auto what = this->make("a");
  (void)box.publish(what);
  EXPECT_EQ(box.claim().status, claim_status::paused);
  EXPECT_TRUE(box.admin().stats().paused);
  EXPECT_NE(box.admin().explain(what.id).find("paused"), std::string::npos);
  box.admin().resume();
  EXPECT_EQ(box.claim().events.size(), 1U);
}

TYPED_TEST_P(OutboxContract, ATicketBecomesItsEventOnce) {
  auto box = this->open();
  const auto first =
      box.schedule("t1", std::chrono::hours(1), {.type = "expired", .key = "k", .payload = "{}"});
  EXPECT_FALSE(first.before);
  (void)box.schedule("t2", std::chrono::hours(1), {.type = "expired", .key = "k"});
  EXPECT_EQ(box.cancel("t2", "k"), cancel_status::cancelled);
  EXPECT_EQ(box.cancel("t2", "k"), cancel_status::unknown);
  EXPECT_EQ(box.drain(0).tickets, 0U);
  EXPECT_EQ(box.admin().scan(scan_what::tickets).records.size(), 1U);
  const auto second = box.schedule("t1", std::chrono::milliseconds(30),
                                   {.type = "expired", .key = "k", .payload = "[2]"});
  EXPECT_EQ(second.before, first.expires_at);
  EXPECT_EQ(box.admin().scan(scan_what::tickets).records.size(), 1U);
  this->fixture_.pass(std::chrono::milliseconds(50));
  EXPECT_GE(box.admin().stats().overdue.count(), 10) << "nobody drains";
  EXPECT_EQ(box.drain(0).tickets, 1U);
  EXPECT_EQ(box.drain(0).tickets, 0U);
  const auto got = box.claim();
  ASSERT_EQ(got.events.size(), 1U);
  EXPECT_EQ(got.events[0].event.id, expiry_event_id("t1", second.expires_at));
  EXPECT_EQ(got.events[0].event.payload, "[2]");
  EXPECT_EQ(got.events[0].event.key, "k");
  EXPECT_EQ(box.cancel("t1", "k"), cancel_status::fired);
  // The same ticket at the same time is the same event.
  (void)box.schedule("t1", second.expires_at, {.type = "expired", .key = "k"});
  EXPECT_EQ(box.drain(0).tickets, 1U);
  EXPECT_EQ(box.admin().stats().events, 1U);
}

TYPED_TEST_P(OutboxContract, OneOwnerHoldsTheLock) {
  auto box = this->open();
  (void)box.publish(this->make("a"));
  const auto a = box.lock(0, "owner-a", std::chrono::seconds(30));
  EXPECT_TRUE(a.held);
  const auto b = box.lock(0, "owner-b");
  EXPECT_FALSE(b.held);
  EXPECT_EQ(b.holder, "owner-a");
  EXPECT_EQ(b.fence, a.fence);
  EXPECT_FALSE(box.unlock(0, "owner-b"));
  EXPECT_FALSE(box.renew(0, "owner-b").held);
  EXPECT_EQ(box.claim({.owner = "owner-b"}).status, claim_status::fenced);
  EXPECT_EQ(box.lock(0, "owner-a", std::chrono::milliseconds(100)).fence, a.fence)
      << "the same holder, the same fence, a new end";
  this->fixture_.pass(std::chrono::milliseconds(150));
  EXPECT_EQ(box.claim({.owner = "owner-a"}).status, claim_status::fenced);
  const auto later = box.lock(0, "owner-b");
  EXPECT_TRUE(later.held);
  EXPECT_GT(later.fence, a.fence);
  EXPECT_EQ(box.claim({.owner = "owner-b"}).events.size(), 1U);
  EXPECT_TRUE(box.renew(0, "owner-b").held);
  EXPECT_TRUE(box.unlock(0, "owner-b"));
  EXPECT_FALSE(box.unlock(0, "owner-b"));
}

TYPED_TEST_P(OutboxContract, KnowsItsWorkers) {
  using names = std::vector<std::string>;
  using std::chrono::minutes;
  auto box = this->open({.lanes = 2});
  auto& backend = *box.backend();
  EXPECT_EQ(backend.announce("b", minutes(1)), (names{"b"}));
  EXPECT_EQ(backend.announce("a", minutes(1)), (names{"a", "b"}));
  EXPECT_EQ(backend.announce("a", minutes(1)), (names{"a", "b"})) << "it is the same one";
  EXPECT_EQ(backend.announce("c", this->lease), (names{"a", "b", "c"}));
  this->fixture_.pass(this->lease * 2);
  EXPECT_EQ(backend.announce("a", minutes(1)), (names{"a", "b"})) << "its time is over";
  EXPECT_EQ(backend.announce("a", std::chrono::milliseconds(0)), (names{"b"}));
  EXPECT_EQ(backend.announce("a", std::chrono::milliseconds(0)), (names{"b"}));
  EXPECT_TRUE(box.lock(1, "b").held) << "locks do not depend on it";
  EXPECT_TRUE(box.admin().check().well());
}

TYPED_TEST_P(OutboxContract, RefusesBeyondItsQuota) {
  auto box = this->open({.quota = {.events = 2}});
  (void)box.publish(this->make("a"));
  const auto kept = this->make("a");
  (void)box.publish(kept);
  EXPECT_EQ(box.publish(kept).status, publish_status::duplicate)
      << "what is kept already needs no room";
  try {
    (void)box.publish(this->make("a"));
    FAIL() << "beyond the quota";
  } catch (const error& problem) {
    EXPECT_EQ(problem.code(), errc::too_large);
    EXPECT_TRUE(problem.transient());
    EXPECT_FALSE(problem.in_doubt());
  }
  const auto got = box.claim();
  (void)box.ack(got.fence, got.events[0]);
  EXPECT_EQ(box.publish(this->make("a")).status, publish_status::added);
  auto small = this->open({.quota = {.bytes = 1000}});
  EXPECT_THROW((void)small.publish(this->make("a", std::string(2000, 'x'))), error);
  auto behind = this->open({.quota = {.overdue = std::chrono::milliseconds(20)}});
  (void)behind.publish(this->make("a"));
  this->fixture_.pass(std::chrono::milliseconds(60));
  EXPECT_THROW((void)behind.publish(this->make("a")), error);
}

TYPED_TEST_P(OutboxContract, LimitsTheBytesOfAClaim) {
  auto box = this->open();
  std::vector<event> many;
  for (int i = 0; i < 5; ++i)
    many.push_back(this->make(i < 3 ? "a" : "", std::string(10'000, 'x')));
  (void)box.publish_all(many);
  EXPECT_EQ(box.claim({.run = 10, .bytes = 25'000}).events.size(), 2U);
  EXPECT_EQ(box.claim({.run = 10, .bytes = 1}).events.size(), 1U) << "at least one";
}

TYPED_TEST_P(OutboxContract, KeysStayInTheirLane) {
  auto box = this->open({.lanes = 4});
  std::vector<event> many;
  for (int i = 0; i < 40; ++i)
    many.push_back(this->make("k" + std::to_string(i % 10), std::to_string(i)));
  (void)box.publish_all(many);
  std::size_t seen = 0;
  for (std::size_t lane = 0; lane < 4; ++lane) {
    const auto got = box.claim({.lane = lane, .run = 10});
    for (const auto& one : got.events) {
      EXPECT_EQ(box.lane_of(one.event.key), lane);
      EXPECT_EQ(one.lane, lane);
    }
    seen += got.events.size();
    if (!got.events.empty()) {
      EXPECT_EQ(box.find(got.events[0].event.id)->details.lane, lane);
      (void)box.settle(lane, got.fence, this->all_acked(got));
    }
  }
  EXPECT_EQ(seen, 40U);
  EXPECT_EQ(box.admin().stats().events, 0U);
}

TYPED_TEST_P(OutboxContract, ShowsWhatIsThere) {
  auto box = this->open();
  std::vector<event> many;
  for (int i = 0; i < 25; ++i)
    many.push_back(this->make("k" + std::to_string(i % 5), std::to_string(i)));
  (void)box.publish_all(many);
  std::vector<std::string> ids;
  std::string after;
  do {
    const auto page = box.admin().scan(scan_what::all, after, 10);
    for (const auto& one : page.records) ids.push_back(one.details.event.id);
    after = page.after;
  } while (!after.empty());
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  EXPECT_EQ(ids.size(), 25U);
  const auto stats = box.admin().stats();
  EXPECT_EQ(stats.events, 25U);
  EXPECT_EQ(stats.pending, 5U);
  EXPECT_EQ(stats.following, 20U);
  EXPECT_EQ(stats.published, 25U);
  EXPECT_GT(stats.bytes, 25U * 50);
  const auto behind = box.find(many[5].id);
  ASSERT_TRUE(behind);
  EXPECT_EQ(behind->state, event_state::following);
  EXPECT_EQ(behind->behind, many[0].id);
  EXPECT_EQ(box.find(many[0].id)->state, event_state::due);
  EXPECT_FALSE(box.find(new_event_id()));
  EXPECT_NE(box.admin().explain(many[5].id).find(many[0].id), std::string::npos);
  EXPECT_TRUE(box.admin().scan(scan_what::parked).records.empty());
}

TYPED_TEST_P(OutboxContract, WakesThoseWhoWait) {
  auto box = this->open();
  // One that listens also wakes when it has just connected, which a busy machine may do late, and
  // looks again after a while.
  const auto silent = [&](int milliseconds) {
    return eventually([&] { return !box.wait(0, std::chrono::milliseconds(milliseconds)); });
  };
  const auto woken = [&] {
    return eventually([&] { return box.wait(0, std::chrono::seconds(20)); });
  };
  EXPECT_TRUE(silent(100));
  (void)box.publish(this->make("a"));
  EXPECT_TRUE(woken());
  EXPECT_TRUE(silent(10));
  box.wake(0);
  EXPECT_TRUE(woken());
  // What is tried again has a new time, also where the next run was asked for.
  const auto got = box.claim();
  ASSERT_EQ(got.events.size(), 1U);
  EXPECT_TRUE(silent(10));
  auto failed = this->acked(got.events[0]);
  failed.action = settlement::kind::retry;
  (void)box.settle(0, got.fence, {failed}, run_request{});
  EXPECT_TRUE(woken());
}

TYPED_TEST_P(OutboxContract, AFormerOwnerThatSettlesWakesTheOwner) {
  auto box = this->open();
  (void)box.publish(this->make("a", "1"));
  (void)box.publish(this->make("a", "2"));
  ASSERT_TRUE(box.lock(0, "former").held);
  const auto got = box.claim({.run = 1, .owner = "former"});
  ASSERT_EQ(got.events.size(), 1U);
  EXPECT_TRUE(box.unlock(0, "former"));
  ASSERT_TRUE(box.lock(0, "owner").held);
  EXPECT_TRUE(box.claim({.owner = "owner"}).events.empty()) << "the key is still claimed";
  ASSERT_TRUE(eventually([&] { return !box.wait(0, std::chrono::milliseconds(10)); }));
  const auto settled =
      box.settle(0, got.fence, {this->acked(got.events[0])}, run_request{.owner = "former"});
  EXPECT_EQ(settled.done, std::vector<bool>{true});
  EXPECT_EQ(settled.next.status, claim_status::fenced);
  EXPECT_TRUE(eventually([&] { return box.wait(0, std::chrono::seconds(20)); }))
      << "the second event became due, and the caller did not get it";
  EXPECT_EQ(this->payloads(box.claim({.owner = "owner"})), std::vector<std::string>{"2"});
}

TYPED_TEST_P(OutboxContract, CommitsTogetherOrNotAtAll) {
  if constexpr (TypeParam::commits) {
    auto box = this->open();
    const auto balance = box.key_of("acc", "balance");
    const auto orders = box.key_of("acc", "orders");
    using write = commit_write::kind;
    using when = commit_condition::kind;
    const auto first = box.commit(
        {.conditions = {{.test = when::absent, .key = balance}},
         .writes = {{.action = write::set, .key = balance, .value = "100"},
                    {.action = write::set_field, .key = orders, .field = "1", .value = "open"}},
         .events = {this->make("acc", "0")}});
    EXPECT_EQ(first.status, commit_status::done);
    const auto refused =
        box.commit({.conditions = {{.test = when::exists, .key = balance},
                                   {.test = when::equals, .key = balance, .value = "99"}},
                    .writes = {{.action = write::set, .key = balance, .value = "0"}},
                    .events = {this->make("acc", "never")}});
    EXPECT_EQ(refused.status, commit_status::condition_failed);
    EXPECT_EQ(refused.failed, 1U);
    EXPECT_THROW(
        (void)box.commit({.writes = {{.action = write::add, .key = balance, .number = 1},
                                     {.action = write::set_field, .key = balance, .field = "f"}},
                          .events = {this->make("acc", "never")}}),
        error)
        << "a key of another kind";
    EXPECT_THROW((void)box.commit({.writes = {{.action = write::set, .key = balance, .value = "x"},
                                              {.action = write::add, .key = balance}}}),
                 error)
        << "one place, two writes";
    EXPECT_EQ(
        box.commit(
               {.conditions = {{.test = when::equals, .key = balance, .value = "100"},
                               {.test = when::equals, .key = orders, .field = "1", .value = "open"},
                               {.test = when::missing, .key = orders, .field = "2"}},
                .writes = {{.action = write::add, .key = balance, .number = -30}}})
            .status,
        commit_status::done);
    EXPECT_EQ(box.admin().stats().events, 1U);
    const auto got = box.claim();
    const std::vector<commit_write> effect{{.action = write::add, .key = balance, .number = 5}};
    EXPECT_EQ(box.effect_once(got.fence - 1, got.events.at(0), effect).status,
              commit_status::stale);
    EXPECT_EQ(box.effect_once(got.fence, got.events.at(0), effect).status, commit_status::done);
    EXPECT_EQ(box.effect_once(got.fence, got.events.at(0), effect).status, commit_status::applied);
    EXPECT_EQ(
        box.commit({.conditions = {{.test = when::equals, .key = balance, .value = "75"}}}).status,
        commit_status::done);
    EXPECT_THROW((void)box.commit({.writes = {{.key = "elsewhere"}}}), error);
  } else {
    auto box = this->open();
    EXPECT_THROW((void)box.commit({.events = {this->make("a")}}), error);
  }
}

/// The mark of an effect lives as long as its event, whatever the dedup window and limit are; then
/// its window starts.
TYPED_TEST_P(OutboxContract, AnEffectIsAppliedOnceWhileItsEventExists) {
  if constexpr (TypeParam::commits) {
    constexpr std::chrono::milliseconds window{30};
    auto box = this->open({.dedup_window = window, .dedup_limit = 4});
    const auto deliver_others = [&] {
      for (const char* key : {"", "other"}) {
        std::vector<event> others;
        for (int i = 0; i < 8; ++i) others.push_back(this->make(key));
        (void)box.publish_all(others);
        const auto claim = box.claim({.run = 8, .lease = std::chrono::minutes(1)});
        EXPECT_GE(claim.events.size(), 8U);
        auto settlements = this->all_acked(claim);
        // On a slow machine the event of the test is due again.
        for (std::size_t i = 0; i < settlements.size(); ++i) {
          if (claim.events[i].event.payload != "{}")
            settlements[i].action = settlement::kind::release;
        }
        (void)box.settle(0, claim.fence, settlements);
      }
    };
    const auto apply = [&](const claimed& claim) {
      const auto& event = claim.events.at(0);
      return box
          .effect_once(claim.fence, event,
                       {{.action = commit_write::kind::add,
                         .key = box.key_of(event, "effects-" + event.event.payload),
                         .number = 1}})
          .status;
    };
    const std::vector<std::string> interruptions{"crash", "retry", "park", "discard"};
    for (const char* key : {"", "k"}) {
      for (const auto& interruption : interruptions) {
        SCOPED_TRACE(interruption + " of key '" + key + "'");
        const auto subject = this->make(key, key + interruption);
        const std::vector<std::string> ids{subject.id};
        (void)box.publish(subject);
        const auto first = box.claim({.lease = this->lease});
        ASSERT_EQ(first.events.size(), 1U);
        EXPECT_EQ(apply(first), commit_status::done);
        EXPECT_EQ(apply(first), commit_status::applied);
        if (interruption == "retry") {
          EXPECT_TRUE(box.fail(first.fence, first.events[0], this->lease, "later"));
        } else if (interruption != "crash") {
          EXPECT_TRUE(box.park(first.fence, first.events[0], park_policy::skip, "tomorrow"));
        }
        deliver_others();
        this->fixture_.pass(this->lease + window);
        deliver_others();
        if (interruption == "discard") {
          EXPECT_EQ(box.admin().discard(ids), 1U);
          continue;
        }
        if (interruption == "park") {
          EXPECT_EQ(box.admin().replay(ids), 1U);
        }
        const auto again = box.claim({.lease = std::chrono::minutes(1)});
        ASSERT_EQ(again.events.size(), 1U);
        EXPECT_EQ(apply(again), commit_status::applied);
        EXPECT_TRUE(box.ack(again.fence, again.events[0]));
        EXPECT_EQ(box.backend()
                      ->commit(0, {.once = subject.id}, {.dedup_window = std::chrono::hours(1)})
                      .status,
                  commit_status::applied)
            << "its window has started";
      }
    }
    this->fixture_.pass(window + std::chrono::milliseconds(5));
    (void)box.publish(this->make(""));
    const auto last = box.claim({.lease = std::chrono::minutes(1)});
    ASSERT_EQ(last.events.size(), 1U);
    EXPECT_TRUE(box.ack(last.fence, last.events[0]));
    EXPECT_EQ(box.admin().stats().remembered, 1U) << "no mark stays";
    for (const auto& interruption : interruptions) {
      const auto effects = box.key_of("k", "effects-k" + interruption);
      EXPECT_EQ(box.commit({.conditions = {{.test = commit_condition::kind::equals,
                                            .key = effects,
                                            .value = "1"}}})
                    .status,
                commit_status::done);
    }
  }
}

TYPED_TEST_P(OutboxContract, ALimitOfZeroIsNoLimit) {
  if constexpr (TypeParam::commits) {
    auto box = this->open({.dedup_limit = 0});
    std::vector<event> many;
    for (int i = 0; i < 20; ++i) many.push_back(this->make(i % 2 == 0 ? "" : "k"));
    (void)box.publish_all(many);
    for (auto claim = box.claim({.run = 20}); !claim.events.empty(); claim = box.claim({.run = 20}))
      (void)box.settle(0, claim.fence, this->all_acked(claim));
    EXPECT_EQ(box.admin().stats().remembered, 20U);
    for (const auto& receipt : box.publish_all(many))
      EXPECT_EQ(receipt.status, publish_status::duplicate);
  }
}

/// Events without a key are not always in the lane of their id: those of tickets.
TYPED_TEST_P(OutboxContract, AnEffectIsAppliedInTheLaneOfItsEvent) {
  if constexpr (TypeParam::commits) {
    auto box = this->open({.lanes = 16});
    constexpr std::size_t count = 20;
    std::vector<std::string> ids;
    for (std::size_t i = 0; i < count; ++i) {
      const auto name = std::to_string(i);
      (void)box.schedule("ticket-" + name, std::chrono::milliseconds(0), {.type = "t"});
      const auto result = box.commit(
          {.writes = {{.key = box.key_of("account-" + name, "balance"), .value = "1"}},
           .events = {{.type = "t"}, {.type = "t", .key = "account-" + name}, {.type = "t"}}});
      ASSERT_EQ(result.status, commit_status::done);
      for (const auto& receipt : result.receipts) ids.push_back(receipt.id);
    }
    for (std::size_t i = 0; i < ids.size(); i += 3) {
      EXPECT_EQ(box.publish({.type = "t", .id = ids[i]}).status, publish_status::duplicate)
          << "an event has one lane, however it is published";
    }
    EXPECT_EQ(box.admin().stats().events, 3 * count);
    this->fixture_.pass(std::chrono::milliseconds(2));
    std::size_t applied = 0;
    for (std::size_t lane = 0; lane < box.lanes(); ++lane) {
      (void)box.drain(lane);
      const auto claim = box.claim({.lane = lane});
      for (const auto& event : claim.events) {
        const auto result = box.effect_once(
            claim.fence, event,
            {{.action = commit_write::kind::add, .key = box.key_of(event, "sum"), .number = 1}},
            {{.type = "t", .delay = std::chrono::hours(1)}});
        EXPECT_EQ(result.status, commit_status::done);
        EXPECT_EQ(box.lane_of(result.receipts.at(0).id), lane);
        if (result.status == commit_status::done) ++applied;
      }
      if (!claim.events.empty()) (void)box.settle(lane, claim.fence, this->all_acked(claim));
    }
    EXPECT_EQ(applied, 4 * count);
    const auto other = this->make("");
    auto key = this->make("account");
    while (box.lane_of(key.key) == box.lane_of(other.id)) key.key += "x";
    EXPECT_THROW((void)box.commit({.events = {key, other}}), error)
        << "its id belongs to another lane";
  }
}

/// What the database would not take as a number is found before anything is written.
TYPED_TEST_P(OutboxContract, ACommitThatCannotAddWritesNothing) {
  if constexpr (TypeParam::commits) {
    auto box = this->open();
    using write = commit_write::kind;
    using when = commit_condition::kind;
    const auto text = box.key_of("acc", "text");
    const auto hash = box.key_of("acc", "hash");
    const auto other = box.key_of("acc", "other");
    const auto add_to_both = [&] {
      return box.commit(
          {.writes = {{.action = write::set, .key = other, .value = "written"},
                      {.action = write::add_to_field, .key = hash, .field = "f", .number = 1},
                      {.action = write::add, .key = text, .number = 1}},
           .events = {this->make("acc")}});
    };
    for (const auto* value :
         {"007", "00", "-0", "-01", "+1", "", "-", "1.5", " 1", "word", "1234567890123456"}) {
      SCOPED_TRACE(value);
      for (const bool in_hash : {false, true}) {
        (void)box.commit(
            {.writes = {{.action = write::set, .key = text, .value = in_hash ? "1" : value},
                        {.action = write::set_field,
                         .key = hash,
                         .field = "f",
                         .value = in_hash ? value : "1"}}});
        EXPECT_THROW((void)add_to_both(), error);
      }
    }
    EXPECT_EQ(box.commit({.conditions = {{.test = when::absent, .key = other}}}).status,
              commit_status::done);
    EXPECT_EQ(box.admin().stats().published, 0U);
    for (const auto* value : {"0", "-1", "10", "-120"}) {
      (void)box.commit(
          {.writes = {{.action = write::set, .key = text, .value = value},
                      {.action = write::set_field, .key = hash, .field = "f", .value = value}}});
      EXPECT_EQ(add_to_both().status, commit_status::done) << value;
    }
    for (const auto kind : {write::set_field, write::erase_field, write::add_to_field})
      EXPECT_THROW((void)box.commit({.writes = {{.action = kind, .key = hash}}}), error)
          << "a field without a name";
  }
}

TYPED_TEST_P(OutboxContract, RefusesWhatCannotBeMeant) {
  auto box = this->open();
  EXPECT_THROW((void)box.publish(event{}), error) << "no type";
  EXPECT_THROW((void)box.publish({.type = "t", .id = "not-a-uuid"}), error);
  EXPECT_THROW((void)box.publish({.type = "t", .key = std::string("a\0b", 3)}), error);
  EXPECT_THROW((void)box.publish({.type = "t", .key = std::string(300, 'k')}), error);
  EXPECT_THROW((void)box.publish({.type = "t", .delay = std::chrono::milliseconds(-1)}), error);
  EXPECT_THROW((void)box.claim({.lane = 1}), error);
  EXPECT_THROW((void)box.claim({.most = 0}), error);
  EXPECT_THROW((void)box.claim({.most = 1001}), error);
  EXPECT_THROW((void)box.schedule("", std::chrono::seconds(1), {.type = "t"}), error);
  EXPECT_EQ(box.admin().stats().published, 0U);
}

REGISTER_TYPED_TEST_SUITE_P(
    OutboxContract, DeliversWhatWasPublished, CarriesAnyPayload, TheSameIdIsTheSameEvent,
    KeepsTheOrderOfAKey, TakesRunsAndContinuesThem, ALostLeaseHasNoEffect, AnExtendedLeaseIsKept,
    AFailedEventIsTriedAgainInItsPlace, ParksBySkipBlockAndPark, SaysAgainWhoIsToBeParked,
    WhoClaimsNextParksTheFollowers, WhoParksFollowersLatePassesNothingThatBlocks,
    AnIdIsAddedOnceAfterItsWindow, CountsDuplicates, RemembersAsManyAsItMay, FindsPoison,
    ParksWhatIsTooLate, WaitsForTheirTime, AClockThatWasAheadDelaysNothing, ReleasesWithoutBlame,
    PausesAndResumes, ATicketBecomesItsEventOnce, OneOwnerHoldsTheLock, KnowsItsWorkers,
    RefusesBeyondItsQuota, LimitsTheBytesOfAClaim, KeysStayInTheirLane, ShowsWhatIsThere,
    WakesThoseWhoWait, AFormerOwnerThatSettlesWakesTheOwner, CommitsTogetherOrNotAtAll,
    AnEffectIsAppliedOnceWhileItsEventExists, ALimitOfZeroIsNoLimit,
    AnEffectIsAppliedInTheLaneOfItsEvent, ACommitThatCannotAddWritesNothing,
    RefusesWhatCannotBeMeant);

}  // namespace holdfast::test
