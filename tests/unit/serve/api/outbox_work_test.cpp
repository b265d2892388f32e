// Claims, settlements, extensions, locks and tickets over HTTP, with long polls.

#include "support/eventually.hpp"
#include "support/outbox_api.hpp"
#include "support/raw_client.hpp"
#include "support/virtual_clock.hpp"

#include <gtest/gtest.h>

#include <future>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace holdfast;
using namespace holdfast::detail::serve;
using namespace std::chrono_literals;
using test::outbox_api;

void publish(const outbox_api& api, const std::string& key, const std::string& payload = "{}") {
  api.orders().publish({.type = "t", .key = key, .payload = payload});
}

nlohmann::json claim(outbox_api& api, const std::string& body = "{}") {
  const auto response = api.send("POST", "/claims", "app", body);
  EXPECT_EQ(response.status, 200) << response.body;
  return outbox_api::json(response);
}

std::string settlement_of(const nlohmann::json& claim, const std::string& outcome,
                          const std::string& more = "") {
  std::string events;
  for (const auto& event : claim["events"])
    events +=
        (events.empty() ? "" : ",") +
        nlohmann::json({{"id", event["id"]}, {"key", event["key"]}, {"outcome", outcome}}).dump();
  return R"({"fence":)" + claim["fence"].dump() + R"(,"events":[)" + events + "]" + more + "}";
}

/// A claim as text, for a client that the test controls.
std::string claim_text(const std::string& body, const std::string& more = "") {
  return "POST /v1/outboxes/orders/claims HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "
         "app\r\nContent-Type: application/json\r\n" +
         more + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

bool is_due(const outbox_api& api) {
  const auto page = api.orders().admin().scan();
  return !page.records.empty() && page.records.front().state == event_state::due;
}

TEST(OutboxWork, ClaimsARunAndSettlesItAndClaimsTheNext) {
  outbox_api api;
  for (const char* payload : {"1", "2", "3"}) publish(api, "k", payload);
  const auto first = claim(api, R"({"run":2,"lease":"1m"})");
  EXPECT_EQ(first["status"], "some");
  ASSERT_EQ(first["events"].size(), 2U);
  EXPECT_EQ(first["events"][0]["payload"], 1);
  EXPECT_EQ(first["events"][1]["payload"], 2);
  const auto settled = outbox_api::json(api.send(
      "POST", "/settlements", "app", settlement_of(first, "done", R"(,"next":{"run":5})")));
  EXPECT_EQ(settled["events"][0]["result"], "done");
  ASSERT_EQ(settled["next"]["events"].size(), 1U) << settled;
  EXPECT_EQ(settled["next"]["events"][0]["payload"], 3);
  EXPECT_EQ(claim(api)["status"], "empty");
}

TEST(OutboxWork, AStaleFenceChangesNothing) {
  const auto clock = std::make_shared<test::virtual_clock>();
  outbox_api api({.clock = clock});
  publish(api, "k");
  const auto first = claim(api, R"({"lease":"1s"})");
  clock->advance(2s);
  const auto second = claim(api);
  EXPECT_NE(first["fence"], second["fence"]);
  const auto late =
      outbox_api::json(api.send("POST", "/settlements", "app", settlement_of(first, "done")));
  EXPECT_EQ(late["events"][0]["result"], "stale");
  const auto extended = outbox_api::json(
      api.send("POST", "/extensions", "app",
               R"({"lease":"1m","fence":)" + first["fence"].dump() +
                   R"(,"events":[{"key":"k","id":)" + first["events"][0]["id"].dump() + "}]}"));
  EXPECT_EQ(extended["events"][0]["result"], "stale");
  EXPECT_EQ(api.orders().admin().stats().events, 1U);
}

TEST(OutboxWork, OutcomesRetryParkAndRelease) {
  outbox_api api;
  publish(api, "");
  const auto settle = [&](const std::string& outcome, const std::string& more) {
    auto claimed = claim(api);
    const auto body = R"({"fence":)" + claimed["fence"].dump() + R"(,"events":[{"id":)" +
                      claimed["events"][0]["id"].dump() + R"(,"outcome":")" + outcome + "\"" +
                      more + "}]}";
    EXPECT_EQ(api.send("POST", "/settlements", "app", body).status, 200);
    return api.orders().admin().scan().records.front();
  };
  auto record = settle("retry", R"(,"after":"0s","why":"no route")");
  EXPECT_EQ(record.details.attempts, 1U);
  EXPECT_EQ(record.details.last_error, "no route");
  record = settle("throttled", R"(,"after":"0s")");
  EXPECT_EQ(record.details.attempts, 1U);
  record = settle("ambiguous", R"(,"after":"0s","why":"cut")");
  EXPECT_EQ(record.details.attempts, 2U);
  EXPECT_EQ(record.details.last_error, "ambiguous: cut");
  record = settle("release", "");
  EXPECT_EQ(record.state, event_state::due);
  record = settle("permanent", R"(,"why":"HTTP 422")");
  EXPECT_EQ(record.state, event_state::parked);
}

TEST(OutboxWork, ALongPollWaitsForAnEvent) {
  outbox_api api;
  auto answer = std::async(std::launch::async, [&] { return claim(api, R"({"wait":"60s"})"); });
  EXPECT_EQ(answer.wait_for(50ms), std::future_status::timeout);
  publish(api, "k");
  EXPECT_EQ(answer.get()["events"].size(), 1U);
}

TEST(OutboxWork, ALongPollEndsEmpty) {
  outbox_api api;
  EXPECT_EQ(claim(api, R"({"wait":"20ms"})")["status"], "empty");
  api.orders().admin().pause();
  EXPECT_EQ(claim(api, R"({"wait":"20ms"})")["status"], "paused");
}

TEST(OutboxWork, ALongPollFindsADelayedEventAndATicket) {
  outbox_api api;
  auto answer = std::async(std::launch::async, [&] { return claim(api, R"({"wait":"60s"})"); });
  api.orders().publish({.type = "delayed", .payload = "{}", .delay = 100ms});
  EXPECT_EQ(answer.get()["events"][0]["type"], "delayed");
  auto second = std::async(std::launch::async, [&] { return claim(api, R"({"wait":"60s"})"); });
  (void)api.orders().schedule("reminder", 50ms, {.type = "ticket", .payload = "{}"});
  EXPECT_EQ(second.get()["events"][0]["type"], "ticket");
}

TEST(OutboxWork, OneThreadServesManyPolls) {
  outbox_api api;
  constexpr int polls = 40;
  std::vector<std::future<nlohmann::json>> answers;
  for (int i = 0; i < polls; ++i)
    answers.push_back(
        std::async(std::launch::async, [&] { return claim(api, R"({"wait":"60s","most":1})"); }));
  for (int i = 0; i < polls; ++i) publish(api, "");
  std::set<std::string> ids;
  for (auto& answer : answers) {
    const auto claimed = answer.get();
    ASSERT_EQ(claimed["events"].size(), 1U) << claimed;
    ids.insert(claimed["events"][0]["id"]);
  }
  EXPECT_EQ(ids.size(), std::size_t{polls});
}

TEST(OutboxWork, AClientThatIsGoneTakesNoEvents) {
  outbox_api api;
  {
    test::raw_client client(api.server->address());
    ASSERT_TRUE(client.send(claim_text(R"({"wait":"60s"})")));
    ASSERT_TRUE(test::eventually([&] { return api.server->transport().counts().waiting == 1; }));
    client.reset();
  }
  ASSERT_TRUE(test::eventually([&] { return api.server->transport().counts().waiting == 0; }));
  publish(api, "k");
  // Another claim gets it at once: it was not given to the client that is gone.
  EXPECT_TRUE(test::eventually([&] { return is_due(api); }));
  EXPECT_EQ(claim(api, R"({"wait":"60s"})")["events"].size(), 1U);
}

TEST(OutboxWork, AClientThatClosesItsSideIsGone) {
  outbox_api api;
  for (const std::string more : {"", "Connection: close\r\n"}) {
    test::raw_client client(api.server->address());
    ASSERT_TRUE(client.send(claim_text(R"({"wait":"60s"})", more)));
    ASSERT_TRUE(test::eventually([&] { return api.server->transport().counts().waiting == 1; }));
    client.finish_sending();
    EXPECT_NE(client.read_to_end().find(R"("status":"empty")"), std::string::npos) << more;
  }
}

TEST(OutboxWork, EventsThatCannotBeSentAreReleased) {
  outbox_api api;
  // More than the buffers of the system take: the answer is not sent in full.
  for (int i = 0; i < 100; ++i)
    publish(api, "", "\"" + std::string(std::size_t{200} << 10U, 'x') + "\"");
  {
    test::raw_client client(api.server->address());
    ASSERT_TRUE(client.send(claim_text(R"({"most":100,"lease":"1h"})")));
    ASSERT_TRUE(test::eventually([&] {
      const auto records = api.orders().admin().scan().records;
      return std::ranges::any_of(
          records, [](const auto& record) { return record.state == event_state::claimed; });
    }));
    ASSERT_TRUE(test::eventually([&] { return api.server->transport().counts().waiting == 0; }));
    client.reset();
  }
  EXPECT_TRUE(test::eventually([&] {
    const auto records = api.orders().admin().scan().records;
    return std::ranges::all_of(records,
                               [](const auto& record) { return record.state == event_state::due; });
  }));
}

TEST(OutboxWork, DrainAnswersThePolls) {
  outbox_api api;
  auto answer = std::async(std::launch::async, [&] { return claim(api, R"({"wait":"60s"})"); });
  ASSERT_TRUE(test::eventually([&] { return api.server->transport().counts().waiting == 1; }));
  api.polls->drain();
  EXPECT_EQ(answer.get()["status"], "empty");
  EXPECT_EQ(claim(api, R"({"wait":"60s"})")["status"], "empty");
}

TEST(OutboxWork, RefusesMorePollsThanTheLimit) {
  outbox_api api;
  std::vector<std::unique_ptr<test::raw_client>> clients;
  // The transport admits 1024 requests that wait; so many polls are the limit, too.
  for (int i = 0; i < 1024; ++i) {
    clients.push_back(std::make_unique<test::raw_client>(api.server->address()));
    ASSERT_TRUE(clients.back()->send(claim_text(R"({"wait":"60s"})")));
  }
  ASSERT_TRUE(test::eventually([&] { return api.server->transport().counts().waiting == 1024; }));
  const auto response = api.send("POST", "/claims", "app", R"({"wait":"60s"})");
  EXPECT_EQ(response.status, 503);
  EXPECT_TRUE(response.fields.has("Retry-After"));
}

TEST(OutboxWork, ALockFencesOtherOwners) {
  outbox_api api;
  publish(api, "k");
  const auto lock = [&](const char* owner) {
    return api.send("POST", "/locks", "app",
                    std::string(R"({"ttl":"1h","owner":")") + owner + "\"}");
  };
  EXPECT_EQ(lock("a").status, 200);
  EXPECT_EQ(lock("a").status, 200);
  const auto refused = lock("b");
  EXPECT_EQ(refused.status, 409);
  EXPECT_EQ(outbox_api::json(refused)["holder"], "a");
  EXPECT_EQ(claim(api, R"({"owner":"b","wait":"60s"})")["status"], "fenced");
  EXPECT_EQ(claim(api, R"({"owner":"a"})")["status"], "some");
  EXPECT_EQ(api.send("DELETE", "/locks?owner=b", "app").status, 409);
  EXPECT_EQ(api.send("DELETE", "/locks?owner=a", "app").status, 204);
  EXPECT_EQ(lock("b").status, 200);
}

TEST(OutboxWork, SchedulesShowsAndCancelsTickets) {
  outbox_api api({.lanes = 4});
  const auto put = [&](const std::string& body) {
    return api.send("PUT", "/tickets/reminder", "app", body);
  };
  EXPECT_EQ(put(R"({"after":"1h","event":{"type":"t","key":"k","payload":{"a": 1}}})").status, 201);
  const auto again = put(R"({"at":"2099-01-01T00:00:00Z","event":{"type":"t","key":"k"}})");
  EXPECT_EQ(again.status, 200);
  EXPECT_EQ(outbox_api::json(again)["expiresAt"], "2099-01-01T00:00:00.000000Z");
  EXPECT_TRUE(outbox_api::json(again).contains("before"));
  const auto shown = api.send("GET", "/tickets/reminder?key=k", "viewer");
  EXPECT_EQ(shown.status, 200) << shown.body;
  EXPECT_EQ(outbox_api::json(shown)["until"], "2099-01-01T00:00:00.000000Z");
  EXPECT_EQ(api.send("DELETE", "/tickets/reminder?key=k", "app").status, 204);
  EXPECT_EQ(api.send("DELETE", "/tickets/reminder?key=k", "app").status, 404);
  EXPECT_EQ(api.send("GET", "/tickets/reminder?key=k", "viewer").status, 404);
  EXPECT_EQ(put(R"({"event":{"type":"t"}})").status, 400);
  EXPECT_EQ(put(R"({"after":"1h"})").status, 400);
  EXPECT_EQ(put(R"({"after":"1h","event":{"type":"t","delay":"1s"}})").status, 400);
}

TEST(OutboxWork, RefusesBadInput) {
  outbox_api api;
  const std::pair<const char*, const char*> inputs[]{
      {"/claims", R"({"lane":1})"},
      {"/claims", R"({"lane":-1})"},
      {"/claims", R"({"most":0})"},
      {"/claims", R"({"most":1001})"},
      {"/claims", R"({"run":"many"})"},
      {"/claims", R"({"wait":"61s"})"},
      {"/claims", R"({"wait":60})"},
      {"/claims", R"({"lease":"0ms"})"},
      {"/claims", R"({"leas":"1s"})"},
      {"/claims", "[]"},
      {"/claims", "{"},
      {"/settlements", "{}"},
      {"/settlements", R"({"fence":"1","events":[]})"},
      {"/settlements", R"({"fence":"1","events":[{"id":"x","outcome":"ok"}]})"},
      {"/settlements", R"({"fence":"1","events":[{"outcome":"done"}]})"},
      {"/settlements", R"({"fence":"1","events":[{"id":"x","outcome":"retry","after":"-1s"}]})"},
      {"/settlements", R"({"fence":1.5,"events":[{"id":"x","outcome":"done"}]})"},
      {"/extensions", R"({"events":[{"id":"x"}]})"},
      {"/locks", R"({"owner":""})"},
      {"/locks", R"({"owner":"a|b"})"},
      {"/locks", "{}"},
  };
  for (const auto& [path, body] : inputs) {
    const auto response = api.send("POST", path, "app", body);
    EXPECT_EQ(response.status, 400) << path << " " << body << "\n" << response.body;
    EXPECT_FALSE(outbox_api::json(response).value("detail", "").empty()) << response.body;
  }
  EXPECT_EQ(api.send("DELETE", "/locks", "app").status, 400);
}

}  // namespace
