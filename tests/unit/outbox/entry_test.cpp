#include "outbox/entry.hpp"

#include <holdfast/error.hpp>
#include <holdfast/outbox.hpp>
#include <holdfast/outbox/memory.hpp>

#include "base/uuid.hpp"
#include "outbox/checks.hpp"
#include "support/hostile_entries.hpp"
#include "support/virtual_clock.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

using detail::outbox::entry_body;
using detail::outbox::entry_text;
using detail::outbox::read_entry;

constexpr std::string_view id = "0192f0c1-2345-7abc-8def-0123456789ab";

TEST(Uuid, AreWhatTheirVersionsSay) {
  EXPECT_EQ(detail::uuid_v5(detail::uuid_namespace_oid, "www.example.com"),
            "a5e87d3b-479e-52da-b98a-db251a851854");
  const auto random = detail::uuid_v4();
  EXPECT_TRUE(detail::is_uuid(random));
  EXPECT_EQ(random[14], '4');
  EXPECT_NE(std::string("89ab").find(random[19]), std::string::npos);
  EXPECT_NE(random, detail::uuid_v4());
  EXPECT_FALSE(detail::is_uuid("2B9A3D60-b1a5-5eb3-a0b3-0dbe8d9aa3c5"));
  EXPECT_FALSE(detail::is_uuid("2b9a3d60-b1a5-5eb3-a0b3-0dbe8d9aa3c"));
  EXPECT_FALSE(detail::is_uuid("2b9a3d60xb1a5-5eb3-a0b3-0dbe8d9aa3c5"));
}

TEST(Uuid, OfVersion7OnlyGrow) {
  std::vector<std::vector<std::string>> ids_by_thread(4);
  {
    std::vector<std::jthread> threads;
    for (auto& ids : ids_by_thread) {
      threads.emplace_back([&ids] {
        for (int i = 0; i < 5000; ++i) ids.push_back(detail::uuid_v7());
      });
    }
  }
  std::vector<std::string> all;
  for (const auto& ids : ids_by_thread) {
    EXPECT_TRUE(std::is_sorted(ids.begin(), ids.end()));
    all.insert(all.end(), ids.begin(), ids.end());
  }
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end());
  EXPECT_EQ(all.front()[14], '7');
}

TEST(OutboxEntry, IsWrittenAsDocumented) {
  const event published{.type = "ticket.created",
                        .key = "ticket-7",
                        .payload = R"({"n":1})",
                        .headers = {{"tenant", "a\"b\t"}},
                        .time_to_live = std::chrono::seconds(1),
                        .schema = "v3",
                        .aggregate_type = "ticket",
                        .aggregate_id = "7"};
  EXPECT_EQ(
      entry_text(id, entry_body(published), 1700000000000, 17),
      R"({"v":1,"id":"0192f0c1-2345-7abc-8def-0123456789ab","type":"ticket.created","key":"ticket-7","aggregateType":"ticket",)"
      R"("aggregateId":"7","schema":"v3","contentType":"application/json","timeToLive":1000,"headers":{"tenant":"a\"b\u0009"},)"
      R"("payload":{"n":1},"createdAt":1700000000000,"seq":17})");
  const auto read = read_entry(entry_text(id, entry_body(published), 1700000000000, 17));
  auto expected = published;
  expected.id = id;
  EXPECT_EQ(read.event, expected);
  EXPECT_EQ(read.created_ms, 1700000000000);
  EXPECT_EQ(read.sequence, 17);
}

TEST(OutboxEntry, RefusesWhatItDidNotWrite) {
  const std::string good = entry_text(id, "\"type\":\"t\",\"payload\":{}", 1, 2);
  EXPECT_NO_THROW((void)read_entry(good));
  for (const auto& text :
       {std::string(), std::string("null"), std::string("[]"), good.substr(0, good.size() - 1),
        good + "x", entry_text("not-a-uuid", "\"type\":\"t\"", 1, 2),
        entry_text(id, "\"payload\":{}", 1, 2),
        entry_text(id, "\"type\":\"t\",\"payload\":7", 1, 2),
        entry_text(id, "\"type\":\"t\",\"payloadBase64\":\"?\"", 1, 2),
        entry_text(id, "\"type\":\"t\",\"size\":7", 1, 2), entry_text(id, "\"type\":7", 1, 2),
        std::string("{\"id\":1}")}) {
    EXPECT_THROW((void)read_entry(text), error) << text;
  }
  try {
    (void)read_entry(R"({"v":2})");
    FAIL();
  } catch (const error& problem) {
    EXPECT_EQ(problem.code(), errc::unsupported_type);
  }
}

TEST(OutboxEntry, RefusesWhatPublishWouldRefuse) {
  for (const auto& [reason, text] : test::hostile_entries(std::string(id))) {
    const auto content = detail::outbox::read_or_explain(text, id, "k");
    EXPECT_NE(content.problem.find(reason), std::string::npos) << reason << ": " << content.problem;
    EXPECT_EQ(content.event.id, id);
    EXPECT_EQ(content.event.key, "k");
    EXPECT_EQ(content.event.type, "");
  }
}

TEST(OutboxPublish, RefusesWhatHandlersMustNotMeet) {
  const outbox box(make_memory_outbox(), {});
  const auto refused = [&](event event, std::string_view reason) {
    try {
      (void)box.publish(std::move(event));
      ADD_FAILURE() << reason;
    } catch (const error& problem) {
      EXPECT_NE(std::string_view(problem.what()).find(reason), std::string_view::npos)
          << problem.what();
    }
  };
  // C1, line separators, and each kind of character that changes the direction of text.
  for (const char* mark : {"\xc2\x80", "\xc2\x9b", "\xc2\x9f", "\xe2\x80\xa8", "\xe2\x80\xa9",
                           "\xe2\x80\xae", "\xe2\x81\xa6", "\xe2\x80\x8f", "\xd8\x9c"}) {
    refused({.type = std::string("a") + mark}, "type of an event has a control character");
    refused({.type = "t", .key = std::string("a") + mark},
            "key of an event has a control character");
    refused({.type = "t", .headers = {{"a", std::string("b") + mark}}},
            "header 'a' has a control character");
  }
  for (const char mark : {'\r', '\n', '\0', '\x1b', '\x7f'})
    refused({.type = "t", .headers = {{"a", std::string("b") + mark}}},
            "header 'a' has a control character");
  refused({.type = "t", .payload = std::string(1025, '[') + std::string(1025, ']')},
          "nests deeper than 1024");
  refused({.type = "t",
           .payload = std::string(1025, '['),
           .content_type = "application/problem+JSON; charset=utf-8"},
          "nests deeper");
  // Neighbours of those characters, brackets in a string, and text that is not JSON.
  for (auto& valid : std::vector<event>{
           {.type = "\xc2\xa0\xe2\x80\xa7\xe2\x80\xaf\xe2\x81\xaa\xf0\x9f\x98\x80"},
           {.type = "t", .headers = {{"a", "b\tc"}}},
           {.type = "t", .payload = std::string(1024, '[') + std::string(1024, ']')},
           {.type = "t",
            .payload = "[\"" + std::string(2000, '[') + "\\\"" + std::string(2000, '{') + "\"]"},
           {.type = "t", .payload = std::string(2000, '['), .content_type = "text/plain"}})
    EXPECT_NO_THROW((void)box.publish(std::move(valid)));
}

TEST(OutboxLane, KeepsAKeyWhereItIs) {
  // Fixed values: a key that moves to another lane loses its order.
  EXPECT_EQ(detail::outbox::lane_of("ticket-7", 1), 0U);
  EXPECT_EQ(detail::outbox::lane_of("ticket-7", 16), 9U);
  EXPECT_EQ(detail::outbox::lane_of("", 16), 2U);
  std::map<std::size_t, int> spread;
  for (int i = 0; i < 16'000; ++i) ++spread[detail::outbox::lane_of("k" + std::to_string(i), 16)];
  EXPECT_EQ(spread.size(), 16U);
  for (const auto& [lane, count] : spread) EXPECT_NEAR(count, 1000, 150) << lane;
}

/// Keeps payloads in a map.
class map_payload_store final : public payload_store {
 public:
  std::string put(std::string_view name, std::string_view payload) override {
    if (kept.size() == limit) throw std::runtime_error("no space");
    kept[std::string(name)] = payload;
    return "map:" + std::string(name);
  }
  std::string get(std::string_view reference) override {
    if (unavailable) throw error(errc::unavailable, "no answer", {.transient = true});
    const auto payload = kept.find(std::string(reference.substr(4)));
    if (payload != kept.end()) return payload->second;
    if (says_not_found) throw error(errc::not_found, "no such payload");
    throw std::runtime_error("status 404");
  }
  void drop(std::string_view reference) override { kept.erase(std::string(reference.substr(4))); }

  /// The payload of an event that was published once.
  [[nodiscard]] std::map<std::string, std::string>::iterator of(const std::string& event_id) {
    return kept.lower_bound(event_id + ".");
  }

  std::map<std::string, std::string> kept{};
  std::size_t limit = 1000;
  bool unavailable = false;
  bool says_not_found = true;
};

TEST(OutboxClaimCheck, BigPayloadsTravelElsewhere) {
  const auto store = std::make_shared<map_payload_store>();
  const outbox box(make_memory_outbox(), {.inline_limit = 100, .claim_check = store});
  const std::string big(1000, 'x');
  const auto receipt = box.publish({.type = "t", .payload = big});
  EXPECT_EQ(store->kept.size(), 1U);
  EXPECT_LT(box.admin().stats().bytes, 500U);
  auto claim = box.claim({.lease = std::chrono::milliseconds(1)});
  ASSERT_EQ(claim.events.size(), 1U);
  EXPECT_EQ(claim.events[0].event.payload, big);
  EXPECT_TRUE(box.ack(claim.fence, claim.events[0]));
  EXPECT_TRUE(store->kept.empty()) << "it is not needed any more";

  const auto changed = box.publish({.type = "t", .payload = big}).id;
  const auto gone = box.publish({.type = "t", .payload = big}).id;
  (void)box.publish({.type = "t", .payload = "small"});
  store->of(changed)->second[5] = 'y';
  store->kept.erase(store->of(gone));
  claim = box.claim();
  ASSERT_EQ(claim.events.size(), 1U) << "an event without its payload does not stop the others";
  EXPECT_EQ(claim.events[0].event.payload, "small");
  EXPECT_EQ(box.find(changed)->state, event_state::parked) << "not the published payload";
  EXPECT_EQ(box.find(gone)->state, event_state::parked);
  EXPECT_EQ(box.find(gone)->details.last_error, "no such payload");

  const std::vector<std::string> ids{changed};
  EXPECT_EQ(box.admin().discard(ids), 1U);
  EXPECT_TRUE(store->kept.empty()) << "it is not needed any more";

  const outbox without_claim_check(make_memory_outbox(), {.inline_limit = 100});
  try {
    (void)without_claim_check.publish({.type = "t", .payload = big});
    FAIL();
  } catch (const error& problem) {
    EXPECT_EQ(problem.code(), errc::too_large);
  }
}

TEST(OutboxClaimCheck, AnIdThatIsPublishedAgainKeepsItsPayload) {
  const auto store = std::make_shared<map_payload_store>();
  const outbox box(make_memory_outbox(), {.inline_limit = 100, .claim_check = store});
  const std::string first(1000, 'x');
  const auto event_id = new_event_id();
  EXPECT_EQ(box.publish({.type = "t", .payload = first, .id = event_id}).status,
            publish_status::added);
  EXPECT_EQ(box.publish({.type = "t", .payload = std::string(999, 'y'), .id = event_id}).status,
            publish_status::duplicate);
  EXPECT_EQ(box.publish({.type = "t", .payload = first, .id = event_id}).status,
            publish_status::duplicate);
  EXPECT_EQ(store->kept.size(), 1U) << "those of the duplicates are dropped";
  const auto claim = box.claim();
  ASSERT_EQ(claim.events.size(), 1U);
  EXPECT_EQ(claim.events[0].event.payload, first);
  EXPECT_TRUE(box.ack(claim.fence, claim.events[0]));
  EXPECT_EQ(box.publish({.type = "t", .payload = first, .id = event_id}).status,
            publish_status::duplicate);
  EXPECT_TRUE(store->kept.empty());
}

TEST(OutboxClaimCheck, LeavesNoPayloadOfEventsThatAreNotKept) {
  const auto store = std::make_shared<map_payload_store>();
  const outbox box(make_memory_outbox(),
                   {.quota = {.events = 1}, .inline_limit = 100, .claim_check = store});
  const event large{.type = "t", .payload = std::string(1000, 'x')};
  (void)box.publish({.type = "t"});
  EXPECT_THROW((void)box.publish(large), error) << "the quota";
  EXPECT_TRUE(store->kept.empty());
  commit_request request;
  request.conditions.push_back({.key = box.key_of("k", "missing")});
  request.events.push_back(large);
  request.events.back().key = "k";
  EXPECT_EQ(box.commit(request).status, commit_status::condition_failed);
  EXPECT_TRUE(store->kept.empty());
  request.conditions.clear();
  EXPECT_THROW((void)box.commit(request), error) << "the quota";
  EXPECT_TRUE(store->kept.empty());
  store->limit = 1;
  EXPECT_THROW((void)box.publish_all(std::vector<event>{large, large}), std::runtime_error);
  EXPECT_TRUE(store->kept.empty()) << "the first one was stored, and is not published";
}

TEST(OutboxClaimCheck, APayloadThatCannotBeLoadedParksItsEventInTheEnd) {
  const auto clock = std::make_shared<virtual_clock>();
  const auto store = std::make_shared<map_payload_store>();
  const outbox box(make_memory_outbox({.clock = clock}),
                   {.inline_limit = 100, .claim_check = store, .max_deliveries = 4});
  const auto event_id = box.publish({.type = "t", .payload = std::string(1000, 'x')}).id;
  store->says_not_found = false;
  store->unavailable = true;
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(box.claim().events.empty());
    ASSERT_EQ(box.find(event_id)->state, event_state::waiting) << "the store may come back";
    clock->advance(std::chrono::seconds(5));
  }
  store->unavailable = false;
  store->kept.clear();
  for (const int seconds : {5, 10, 20}) {
    EXPECT_TRUE(box.claim().events.empty());
    const auto record = box.find(event_id);
    ASSERT_EQ(record->state, event_state::waiting);
    EXPECT_EQ(*record->until - clock->now(), std::chrono::seconds(seconds));
    clock->advance(std::chrono::seconds(seconds));
  }
  EXPECT_TRUE(box.claim().events.empty());
  EXPECT_EQ(box.find(event_id)->state, event_state::parked);
  EXPECT_EQ(box.find(event_id)->details.last_error,
            "its payload could not be loaded in 4 attempts: status 404");
}

TEST(OutboxPublish, SendsNothingBehindWhatMayNotBeKept) {
  const outbox box(make_memory_outbox(), {.quota = {.bytes = 100'000}});
  std::vector<event> many(1500);
  for (std::size_t i = 0; i < many.size(); ++i)
    many[i] = {.type = "t", .key = "k", .payload = std::string(i < 1000 ? 1000 : 1, 'x')};
  const auto receipts = box.publish_all(many);
  ASSERT_EQ(receipts.size(), many.size());
  for (const auto& receipt : receipts) ASSERT_EQ(receipt.status, publish_status::refused);
  EXPECT_NE(std::string(receipts.back().problem->what()).find("publish them again"),
            std::string::npos);
  EXPECT_TRUE(receipts.back().problem->transient());
  EXPECT_EQ(box.admin().stats().events, 0U)
      << "they would be delivered before those that are published again";
}

}  // namespace
}  // namespace holdfast::test
