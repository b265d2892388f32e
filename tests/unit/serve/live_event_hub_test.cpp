// The stream of events: kinds and roles, resuming, limits, slow clients, the end.

#include "serve/http_server.hpp"
#include "serve/live/event_hub.hpp"
#include "support/eventually.hpp"
#include "support/raw_client.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace holdfast;
using namespace holdfast::detail::serve;
using namespace std::chrono_literals;
using test::eventually;
using test::raw_client;

/// A server with a hub. `/admin` and `/tenant` are such callers, other paths are viewers.
class hub_server {
 public:
  explicit hub_server(event_hub_options options = {})
      : hub_(options),
        server_({.listen = {"127.0.0.1:0"}},
                [this](const server_request& request, responder answer) {
                  caller client{.name = "test", .role = role::viewer, .identified = true};
                  if (request.target.path() == "/admin") client.role = role::admin;
                  if (request.target.path() == "/tenant") client.tenant = "acme";
                  hub_.subscribe(client, request.fields.find("Last-Event-ID"), std::move(answer));
                }) {}

  event_hub& hub() { return hub_; }
  http_server& server() { return server_; }
  /// Opens a stream, and reads its head.
  raw_client open(const std::string& path = "/", const std::string& last_id = {}) {
    raw_client client(server_.addresses().front());
    client.send("GET " + path + " HTTP/1.1\r\nHost: a\r\n" +
                (last_id.empty() ? "" : "Last-Event-ID: " + last_id + "\r\n") + "\r\n");
    return client;
  }

 private:
  event_hub hub_;
  http_server server_;
};

std::string id_in(const std::string& text) {
  const auto begin = text.rfind("id: ") + 4;
  return text.substr(begin, text.find('\n', begin) - begin);
}

TEST(EventHub, SendsEventsByRole) {
  hub_server tested;
  auto viewer = tested.open();
  auto admin = tested.open("/admin");
  const auto head = viewer.read_until(": holdfast\n\n");
  EXPECT_NE(head.find("Content-Type: text/event-stream\r\n"), std::string::npos) << head;
  (void)admin.read_until(": holdfast\n\n");
  tested.hub().publish("audit", R"({"action":"outbox.replay"})");
  tested.hub().publish("incident", "{\"id\":\n\"2026\"}");
  const auto seen = viewer.read_until("\n\n\r\n");
  EXPECT_NE(seen.find("event: incident\ndata: {\"id\": \"2026\"}\n\n"), std::string::npos) << seen;
  EXPECT_EQ(seen.find("audit"), std::string::npos) << "a viewer does not see the audit log";
  EXPECT_NE(admin.read_until("2026").find("event: audit\ndata: {\"action\""), std::string::npos);
}

TEST(EventHub, NewStreamBeginsWithTheLastState) {
  hub_server tested;
  tested.hub().publish("state", R"({"n":1})");
  tested.hub().publish("state", R"({"n":2})");
  auto client = tested.open();
  const auto text = client.read_until("\"n\":2}\n\n");
  EXPECT_EQ(text.find("\"n\":1"), std::string::npos);
  EXPECT_NE(text.find("event: state\ndata: {\"n\":2}\n\n"), std::string::npos) << text;
}

TEST(EventHub, ResumesAfterTheLastEvent) {
  hub_server tested;
  tested.hub().publish("state", R"({"n":1})");
  std::string id;
  {
    auto client = tested.open();
    id = id_in(client.read_until("\"n\":1}\n\n"));
  }
  tested.hub().publish("job", R"({"job":"a"})");
  tested.hub().publish("audit", R"({"secret":1})");
  tested.hub().publish("state", R"({"n":2})");
  tested.hub().publish("state", R"({"n":3})");
  auto client = tested.open("/", id);
  const auto text = client.read_until("\"n\":3}\n\n");
  EXPECT_NE(text.find("{\"job\":\"a\"}"), std::string::npos) << text;
  EXPECT_EQ(text.find("\"n\":1"), std::string::npos) << "seen before";
  EXPECT_EQ(text.find("\"n\":2"), std::string::npos) << "replaced by a later state";
  EXPECT_EQ(text.find("secret"), std::string::npos);
  EXPECT_EQ(tested.hub().counts().resumed, 1U);
}

TEST(EventHub, UnknownIdsGetTheState) {
  hub_server tested({.kept_events = 3});
  tested.hub().publish("job", R"({"job":"first"})");
  std::string id;
  {
    auto client = tested.open();
    (void)client.read_until(": holdfast\n\n");
    tested.hub().publish("state", R"({"n":1})");
    id = id_in(client.read_until("\"n\":1}\n\n"));
  }
  for (int i = 0; i < 5; ++i) tested.hub().publish("job", R"({"job":"later"})");
  const auto start = id.substr(0, id.find('-'));
  for (const std::string& unknown :
       {id, std::string("other-1"), start + "-99999", start + "-x", start + "-", std::string("-"),
        start + "-99999999999999999999999"}) {
    auto client = tested.open("/", unknown);
    const auto text = client.read_until("\"n\":1}\n\n");
    EXPECT_EQ(text.find("later"), std::string::npos) << unknown;
  }
  EXPECT_EQ(tested.hub().counts().resumed, 0U);
}

TEST(EventHub, NoMoreThanTheAllowedStreams) {
  hub_server tested;
  std::vector<raw_client> clients;
  for (int i = 0; i < 64; ++i) {
    clients.push_back(tested.open());
    (void)clients.back().read_until(": holdfast\n\n");
  }
  auto refused = tested.open();
  const auto answer = refused.read_until("retry");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 503 ")) << answer;
  EXPECT_NE(answer.find("Retry-After: 5\r\n"), std::string::npos);
  tested.hub().publish("state", R"({"n":1})");
  for (auto& client : clients)
    EXPECT_NE(client.read_until("\"n\":1}\n\n").find("\"n\":1"), std::string::npos);
  clients[7].reset();
  ASSERT_TRUE(eventually([&] { return tested.hub().counts().streams == 63; }));
  auto next = tested.open();
  EXPECT_TRUE(next.read_until("\"n\":1}\n\n").starts_with("HTTP/1.1 200 "));
}

TEST(EventHub, TenantsAreRefused) {
  hub_server tested;
  auto client = tested.open("/tenant");
  EXPECT_TRUE(client.read_until("tenant").starts_with("HTTP/1.1 403 "));
}

TEST(EventHub, SlowClientIsCutAndTheOthersGoOn) {
  hub_server tested({.max_queued = 64'000});
  auto slow = tested.open();
  const int small = 4'096;
  ::setsockopt(slow.descriptor(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  auto good = tested.open();
  (void)good.read_until(": holdfast\n\n");
  ASSERT_TRUE(eventually([&] { return tested.hub().counts().streams == 2; }));
  const std::string payload = "{\"x\":\"" + std::string(20'000, 'x') + "\"}";
  int published = 0;
  for (; tested.hub().counts().streams == 2 && published < 10'000; ++published) {
    tested.hub().publish("job", payload);
    (void)good.read_until("x\"}\n\n");
  }
  EXPECT_LT(published, 10'000);
  EXPECT_EQ(tested.hub().counts().streams, 1U);
  tested.hub().publish("job", R"({"last":1})");
  EXPECT_NE(good.read_until("\"last\":1}").find("last"), std::string::npos);
  EXPECT_EQ(tested.server().counts().slow_streams, 1U);
}

TEST(EventHub, LargeEventsAreDropped) {
  event_hub hub;
  hub.publish("job", std::string(600'000, 'x'));
  EXPECT_EQ(hub.counts().too_large, 1U);
  EXPECT_EQ(hub.counts().published, 0U);
}

TEST(EventHub, EndsWithBye) {
  hub_server tested;
  auto client = tested.open();
  (void)client.read_until(": holdfast\n\n");
  tested.hub().shut_down();
  const auto text = client.read_until("0\r\n\r\n");
  EXPECT_NE(text.find("event: bye\nretry: "), std::string::npos) << text;
  auto late = tested.open();
  EXPECT_TRUE(late.read_until("retry").starts_with("HTTP/1.1 503 "));
}

TEST(EventHub, StopOfTheServerSendsBye) {
  hub_server tested;
  auto client = tested.open();
  (void)client.read_until(": holdfast\n\n");
  EXPECT_EQ(tested.server().stop(60s), 0U);
  EXPECT_NE(client.read_to_end().find("event: bye\nretry: "), std::string::npos);
}

TEST(EventHub, OldStreamsEnd) {
  hub_server tested({.max_age = 0ms});
  auto client = tested.open();
  (void)client.read_until(": holdfast\n\n");
  tested.hub().end_old_streams();
  EXPECT_NE(client.read_until("0\r\n\r\n").find("event: bye"), std::string::npos);
}

TEST(EventHub, IdsOfAnEarlierStartAreUnknown) {
  std::string id;
  {
    hub_server before;
    before.hub().publish("job", R"({"job":"before"})");
    before.hub().publish("state", R"({"n":1})");
    auto client = before.open();
    id = id_in(client.read_until("\"n\":1}\n\n"));
  }
  hub_server after;
  for (int i = 0; i < 5; ++i) after.hub().publish("job", R"({"job":"after"})");
  after.hub().publish("state", R"({"n":2})");
  auto client = after.open("/", id);
  const auto text = client.read_until("\"n\":2}\n\n");
  EXPECT_EQ(text.find("job"), std::string::npos) << text;
}

}  // namespace
