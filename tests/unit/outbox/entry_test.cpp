#include "outbox/entry.hpp"

#include <holdfast/error.hpp>
#include <holdfast/outbox.hpp>
#include <holdfast/outbox/memory.hpp>

#include "base/uuid.hpp"
#include "outbox/checks.hpp"
#include "support/hostile_entries.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

using outboxes::entry_body;
using outboxes::entry_text;
using outboxes::read_entry;

constexpr std::string_view id = "0192f0c1-2345-7abc-8def-0123456789ab";

TEST(Uuid, AreWhatTheirVersionsSay) {
  EXPECT_EQ(uuid_v5(uuid_namespace_oid, "www.example.com"), "a5e87d3b-479e-52da-b98a-db251a851854");
  const auto random = uuid_v4();
  EXPECT_TRUE(is_uuid(random));
  EXPECT_EQ(random[14], '4');
  EXPECT_NE(std::string("89ab").find(random[19]), std::string::npos);
  EXPECT_NE(random, uuid_v4());
  EXPECT_FALSE(is_uuid("2B9A3D60-b1a5-5eb3-a0b3-0dbe8d9aa3c5"));
  EXPECT_FALSE(is_uuid("2b9a3d60-b1a5-5eb3-a0b3-0dbe8d9aa3c"));
  EXPECT_FALSE(is_uuid("2b9a3d60xb1a5-5eb3-a0b3-0dbe8d9aa3c5"));
}

TEST(Uuid, OfVersion7OnlyGrow) {
  std::vector<std::vector<std::string>> made(4);
  {
    std::vector<std::jthread> threads;
    for (auto& mine : made) {
      threads.emplace_back([&mine] {
        for (int i = 0; i < 5000; ++i) mine.push_back(uuid_v7());
      });
    }
  }
  std::vector<std::string> all;
  for (const auto& mine : made) {
    EXPECT_TRUE(std::is_sorted(mine.begin(), mine.end()));
    all.insert(all.end(), mine.begin(), mine.end());
  }
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end());
  EXPECT_EQ(all.front()[14], '7');
}

TEST(OutboxEntry, IsWrittenAsDocumented) {
  const event what{.type = "ticket.created",
                   .key = "ticket-7",
                   .payload = R"({"n":1})",
                   .headers = {{"tenant", "a\"b\t"}},
                   .time_to_live = std::chrono::seconds(1),
                   .schema = "v3",
                   .aggregate_type = "ticket",
                   .aggregate_id = "7"};
  EXPECT_EQ(entry_text(id, entry_body(what), 1700000000000, 17),
            R"({"v":1,"id":"0192f0c1-2345-7abc-8def-0123456789ab","type":"ticket.created","key":"ticket-7","aggregateType":"ticket",)"
            R"("aggregateId":"7","schema":"v3","contentType":"application/json","timeToLive":1000,"headers":{"tenant":"a\"b\u0009"},)"
            R"("payload":{"n":1},"createdAt":1700000000000,"seq":17})");
  const auto read = read_entry(entry_text(id, entry_body(what), 1700000000000, 17));
  auto expected = what;
  expected.id = id;
  EXPECT_EQ(read.what, expected);
  EXPECT_EQ(read.created_ms, 1700000000000);
  EXPECT_EQ(read.sequence, 17);
}

TEST(OutboxEntry, RefusesWhatItDidNotWrite) {
  const std::string good = entry_text(id, "\"type\":\"t\",\"payload\":{}", 1, 2);
  EXPECT_NO_THROW((void)read_entry(good));
  for (const auto& bad :
       {std::string(), std::string("null"), std::string("[]"), good.substr(0, good.size() - 1), good + "x",
        entry_text("nobody", "\"type\":\"t\"", 1, 2), entry_text(id, "\"payload\":{}", 1, 2),
        entry_text(id, "\"type\":\"t\",\"payload\":7", 1, 2), entry_text(id, "\"type\":\"t\",\"payloadBase64\":\"?\"", 1, 2),
        entry_text(id, "\"type\":\"t\",\"size\":7", 1, 2), entry_text(id, "\"type\":7", 1, 2), std::string("{\"id\":1}")}) {
    EXPECT_THROW((void)read_entry(bad), error) << bad;
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
    const auto content = outboxes::read_or_explain(text, id, "k");
    EXPECT_NE(content.problem.find(reason), std::string::npos) << reason << ": " << content.problem;
    EXPECT_EQ(content.what.id, id);
    EXPECT_EQ(content.what.key, "k");
    EXPECT_EQ(content.what.type, "");
  }
}

TEST(OutboxPublish, RefusesWhatHandlersMustNotMeet) {
  const outbox box(make_memory_outbox(), {});
  const auto refused = [&](event what, std::string_view reason) {
    try {
      (void)box.publish(std::move(what));
      ADD_FAILURE() << reason;
    } catch (const error& problem) {
      EXPECT_NE(std::string_view(problem.what()).find(reason), std::string_view::npos) << problem.what();
    }
  };
  // C1, a line separator, and each kind of character that changes the direction of text.
  for (const char* mark :
       {"\xc2\x80", "\xc2\x9b", "\xc2\x9f", "\xe2\x80\xa8", "\xe2\x80\xa9", "\xe2\x80\xae", "\xe2\x81\xa6", "\xe2\x80\x8f", "\xd8\x9c"}) {
    refused({.type = std::string("a") + mark}, "type of an event has a control character");
    refused({.type = "t", .key = std::string("a") + mark}, "key of an event has a control character");
    refused({.type = "t", .headers = {{"a", std::string("b") + mark}}}, "header 'a' has a control character");
  }
  for (const char mark : {'\r', '\n', '\0', '\x1b', '\x7f'})
    refused({.type = "t", .headers = {{"a", std::string("b") + mark}}}, "header 'a' has a control character");
  refused({.type = "t", .payload = std::string(1025, '[') + std::string(1025, ']')}, "nests deeper than 1024");
  refused({.type = "t", .payload = std::string(1025, '['), .content_type = "application/problem+JSON; charset=utf-8"}, "nests deeper");
  // Neighbours of those characters, brackets in a text, and what is not JSON.
  for (auto& fine : std::vector<event>{{.type = "\xc2\xa0\xe2\x80\xa7\xe2\x80\xaf\xe2\x81\xaa\xf0\x9f\x98\x80"},
                                       {.type = "t", .headers = {{"a", "b\tc"}}},
                                       {.type = "t", .payload = std::string(1024, '[') + std::string(1024, ']')},
                                       {.type = "t", .payload = "[\"" + std::string(2000, '[') + "\\\"" + std::string(2000, '{') + "\"]"},
                                       {.type = "t", .payload = std::string(2000, '['), .content_type = "text/plain"}})
    EXPECT_NO_THROW((void)box.publish(std::move(fine)));
}

TEST(OutboxLane, KeepsAKeyWhereItIs) {
  // Written down: a key that moved to another lane would lose its order.
  EXPECT_EQ(outboxes::lane_of("ticket-7", 1), 0U);
  EXPECT_EQ(outboxes::lane_of("ticket-7", 16), 9U);
  EXPECT_EQ(outboxes::lane_of("", 16), 2U);
  std::map<std::size_t, int> spread;
  for (int i = 0; i < 16'000; ++i) ++spread[outboxes::lane_of("k" + std::to_string(i), 16)];
  EXPECT_EQ(spread.size(), 16U);
  for (const auto& [lane, count] : spread) EXPECT_NEAR(count, 1000, 150) << lane;
}

/// Payloads in a map; counts what it is asked.
class map_of_payloads final : public payload_store {
 public:
  std::string put(std::string_view event_id, std::string_view payload) override {
    kept[std::string(event_id)] = payload;
    return "map:" + std::string(event_id);
  }
  std::string get(std::string_view reference) override { return kept.at(std::string(reference.substr(4))); }
  void drop(std::string_view reference) override { kept.erase(std::string(reference.substr(4))); }

  std::map<std::string, std::string> kept{};
};

TEST(OutboxClaimCheck, BigPayloadsTravelElsewhere) {
  const auto store = std::make_shared<map_of_payloads>();
  const outbox box(make_memory_outbox(), {.inline_limit = 100, .claim_check = store});
  const std::string big(1000, 'x');
  const auto receipt = box.publish({.type = "t", .payload = big});
  EXPECT_EQ(store->kept.size(), 1U);
  EXPECT_LT(box.stats().bytes, 500U);
  auto got = box.claim({.lease = std::chrono::milliseconds(1)});
  ASSERT_EQ(got.events.size(), 1U);
  EXPECT_EQ(got.events[0].event.payload, big);
  EXPECT_TRUE(box.ack(got.fence, got.events[0]));
  EXPECT_TRUE(store->kept.empty()) << "nobody needs it any more";

  const auto changed = box.publish({.type = "t", .payload = big}).id;
  const auto gone = box.publish({.type = "t", .payload = big}).id;
  (void)box.publish({.type = "t", .payload = "small"});
  store->kept[changed][5] = 'y';
  store->kept.erase(gone);
  got = box.claim();
  ASSERT_EQ(got.events.size(), 1U) << "one without its payload does not stop the others";
  EXPECT_EQ(got.events[0].event.payload, "small");
  EXPECT_EQ(box.find(changed)->state, event_state::parked) << "not the payload that was published";
  EXPECT_EQ(box.find(gone)->state, event_state::waiting);

  const std::vector<std::string> ids{changed};
  EXPECT_EQ(box.discard(ids), 1U);
  EXPECT_FALSE(store->kept.contains(changed)) << "nobody needs it any more";

  const outbox plain(make_memory_outbox(), {.inline_limit = 100});
  try {
    (void)plain.publish({.type = "t", .payload = big});
    FAIL();
  } catch (const error& problem) {
    EXPECT_EQ(problem.code(), errc::too_large);
  }
}

TEST(OutboxPublish, SendsNothingBehindWhatMayNotBeKept) {
  const outbox box(make_memory_outbox(), {.quota = {.bytes = 100'000}});
  std::vector<event> many(1500);
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = {.type = "t", .key = "k", .payload = std::string(i < 1000 ? 1000 : 1, 'x')};
  const auto receipts = box.publish_all(many);
  ASSERT_EQ(receipts.size(), many.size());
  for (const auto& one : receipts) ASSERT_EQ(one.status, publish_status::refused);
  EXPECT_NE(std::string(receipts.back().problem->what()).find("publish them again"), std::string::npos);
  EXPECT_TRUE(receipts.back().problem->transient());
  EXPECT_EQ(box.stats().events, 0U) << "they would be delivered before those that are published again";
}

}  // namespace
}  // namespace holdfast::test
