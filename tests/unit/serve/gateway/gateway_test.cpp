// The gateway between a client and an upstream: the rules of docs/gateway.md that need both, and
// the table of what a client is told.

#include <holdfast/store/tiered.hpp>

#include "support/certificate.hpp"
#include "support/eventually.hpp"
#include "support/failure_of.hpp"
#include "support/gate.hpp"
#include "support/raw_client.hpp"
#include "support/recording_server.hpp"
#include "unit/serve/gateway/gateway_fixture.hpp"

#include <future>
#include <thread>

namespace {

using namespace holdfast;
using namespace holdfast::detail;
using namespace holdfast::detail::serve;
using namespace std::chrono_literals;
using test::block_of;
using test::eventually;
using test::raw_client;
using test::recording_server;

struct Gateway : test::gateway_fixture {
  /// Waits until so many requests wait in the gateway, and each shares a request to the upstream or
  /// leads one. The gateway counts a request before it looks at it; its only loop answers TRACE
  /// after that.
  void await_requests(std::size_t count) {
    EXPECT_TRUE(eventually([&] { return gateway->counts().waiting == count; }));
    EXPECT_EQ(send("TRACE", "/").status, 501);
  }
  static std::size_t count_of(const std::vector<responder>& list, std::mutex& mutex) {
    const std::scoped_lock lock(mutex);
    return list.size();
  }
};

TEST_F(Gateway, Rule1TheUpstreamIsAskedFirst) {
  start();
  for (int i = 0; i < 3; ++i) {
    const auto answer = get("/a?b=c");
    EXPECT_EQ(summary(answer), "200 live");
    EXPECT_EQ(status_of(answer), "holdfast;fwd=miss;stored");
    EXPECT_EQ(answer.fields.find("Via"), "1.1 holdfast");
  }
  EXPECT_EQ(upstream.requests(), 3);
  EXPECT_EQ(upstream.last_target(), "/a?b=c");
}

TEST_F(Gateway, AKeptAnswerStandsInForAFailure) {
  start();
  upstream.answer(200, block_of({{"ETag", "\"v1\""}, {"Date", "Sun, 15 Nov 2026 12:00:00 GMT"}}),
                  "first");
  EXPECT_EQ(summary(get("/a")), "200 first");
  upstream.answer(503, block_of({{"Retry-After", "9"}}), "broken");
  clock->advance(412s);
  const auto stale = get("/a");
  EXPECT_EQ(summary(stale), "200 first");
  EXPECT_EQ(status_of(stale), "holdfast;fwd=stale;fwd-status=503;ttl=-412");
  EXPECT_EQ(stale.fields.find("Age"), "412");
  EXPECT_EQ(stale.fields.find("Date"), "Sun, 15 Nov 2026 12:00:00 GMT");
  const auto told = std::string(stale.fields.find("Holdfast-Answer").value_or(""));
  EXPECT_EQ(told.find("stored;as-of=@"), 0U) << told;
  EXPECT_NE(told.find(";cause=failed;ref=\""), std::string::npos) << told;
  // Nothing is kept for another target: the response of the upstream, unchanged.
  const auto unserved = get("/b");
  EXPECT_EQ(summary(unserved), "503 broken");
  EXPECT_EQ(unserved.fields.find("Retry-After"), "9");
  EXPECT_EQ(status_of(unserved), "holdfast;fwd=miss;fwd-status=503;detail=not-found");
}

TEST_F(Gateway, NoConnectionAndNothingKept) {
  start();
  EXPECT_EQ(get("/a").status, 200);
  upstream.stop();
  const auto stale = get("/a");
  EXPECT_EQ(summary(stale), "200 live");
  EXPECT_EQ(status_of(stale), "holdfast;fwd=stale;fwd-status=502;ttl=0;detail=unreachable");
  const auto unserved = get("/b");
  EXPECT_EQ(unserved.status, 502);
  EXPECT_EQ(unserved.fields.find("Content-Type"), "application/problem+json");
  EXPECT_EQ(status_of(unserved), "holdfast;fwd=miss;detail=not-found");
  EXPECT_EQ(send("POST", "/a", {}, "x").status, 502);
  upstream.restart();
  EXPECT_TRUE(eventually([&] { return status_of(get("/a")) == "holdfast;fwd=miss;stored"; }));
}

// SIGHUP: the next request has the new routes, and what was kept stays.
TEST_F(Gateway, ReplacedRoutesCountForRequestsThatBeginLater) {
  start();
  EXPECT_EQ(summary(get("/a")), "200 live");
  test::scripted_upstream other([](const serve::server_request&, serve::responder reply) {
    reply.answer({.body = "other"});
  });
  gateway->set_routes(
      gateway->prepare_routes({{.name = "r", .upstreams = {other.url()}},
                               {.name = "more", .path = "/more", .upstreams = {upstream.url()}}}));
  // A loop takes them with its next turn.
  EXPECT_TRUE(eventually([&] { return summary(get("/a")) == "200 other"; }));
  EXPECT_TRUE(eventually([&] { return summary(get("/more")) == "200 live"; }));
  other.stop();
  EXPECT_EQ(summary(get("/a")), "200 other");
  gateway->set_routes(gateway->prepare_routes({{.name = "more", .upstreams = {upstream.url()}}}));
  EXPECT_TRUE(eventually([&] { return summary(get("/a")) == "200 live"; }));
  // A route that was removed may come back, with what it kept.
  gateway->set_routes(gateway->prepare_routes({{.name = "r", .upstreams = {other.url()}}}));
  EXPECT_TRUE(eventually([&] { return summary(get("/a")) == "200 other"; }));
}

TEST_F(Gateway, ARequestEndsWithTheRoutesThatItBeganWith) {
  start();
  std::promise<serve::responder> asked;
  upstream.answer_with([&](const serve::server_request& request, serve::responder reply) {
    if (request.target.path() == "/a") asked.set_value(std::move(reply));
    else reply.answer({.body = "live"});
  });
  auto answered = std::async(std::launch::async, [&] { return summary(get("/a")); });
  auto reply = asked.get_future().get();
  gateway->set_routes(
      gateway->prepare_routes({{.name = "r", .upstreams = {"http://127.0.0.1:1"}}}));
  EXPECT_TRUE(eventually([&] { return get("/b").status == 502; }));
  reply.answer({.body = "old"});
  EXPECT_EQ(answered.get(), "200 old");
}

TEST_F(Gateway, RoutesThatCannotBeUsedChangeNothing) {
  start();
  const auto failure = test::failure_of([&] {
    (void)gateway->prepare_routes({{.name = "r", .upstreams = {"http://127.0.0.1:1/path"}}});
  });
  EXPECT_EQ(failure.code(), errc::invalid_argument);
  EXPECT_EQ(summary(get("/a")), "200 live");
}

TEST_F(Gateway, AnAnswerExpires) {
  start();
  EXPECT_EQ(get("/a").status, 200);
  upstream.answer(500, {}, "broken");
  clock->advance(24h + 1s);
  const auto answer = get("/a");
  EXPECT_EQ(summary(answer), "500 broken");
  EXPECT_EQ(status_of(answer), "holdfast;fwd=miss;fwd-status=500;detail=expired");
}

TEST_F(Gateway, ALateAnswerIsReplaced) {
  configure = [](point_options& point) { point.deadline = 300ms; };
  start();
  EXPECT_TRUE(eventually([&] { return get("/a").status == 200; }));
  std::vector<responder> silent;
  upstream.answer_with(
      [&](const server_request&, responder reply) { silent.push_back(std::move(reply)); });
  const auto stale = get("/a");
  EXPECT_EQ(summary(stale), "200 live");
  EXPECT_EQ(status_of(stale), "holdfast;fwd=stale;fwd-status=504;ttl=0;detail=late");
  const auto unserved = get("/b");
  EXPECT_EQ(unserved.status, 504);
  upstream.stop();
}

TEST_F(Gateway, Rule2OtherMethodsPassAndInvalidate) {
  start();
  EXPECT_EQ(get("/a").status, 200);
  EXPECT_EQ(get("/a", block_of({{"Accept-Encoding", "gzip"}})).status, 200);
  EXPECT_EQ(get("/b").status, 200);
  upstream.answer_with([](const server_request& request, responder reply) {
    if (request.method == "POST") reply.answer({.status = 201, .body = "got " + request.body});
    else reply.answer({.status = 503, .body = "broken"});
  });
  clock->advance(1s);
  const auto created = send("POST", "/a", {}, "data");
  EXPECT_EQ(summary(created), "201 got data");
  EXPECT_EQ(status_of(created), "holdfast;fwd=method");
  const auto answer = get("/a");
  EXPECT_EQ(summary(answer), "503 broken");
  EXPECT_EQ(status_of(answer), "holdfast;fwd=miss;fwd-status=503;detail=replaced");
  EXPECT_EQ(get("/a", block_of({{"Accept-Encoding", "gzip"}})).status, 503);
  EXPECT_EQ(summary(get("/b")), "200 live");
}

TEST_F(Gateway, Rule2LocationsAreInvalidated) {
  start();
  const auto host = gateway->addresses().front();
  for (const auto& [location, target] :
       std::vector<std::pair<std::string, std::string>>{{"/b", "/b"},
                                                        {"http://" + host + "/c?d=e", "/c?d=e"},
                                                        {upstream.url() + "/i", "/i"},
                                                        {"f", "/orders/f"},
                                                        {"../g", "/g"}}) {
    upstream.answer(200, {}, "live");
    EXPECT_EQ(get(target).status, 200);
    clock->advance(1s);
    upstream.answer(201, block_of({{"Location", location}}), "");
    EXPECT_EQ(send("POST", "/orders/", {}, "x").status, 201);
    upstream.answer(503, {}, "broken");
    EXPECT_EQ(get(target).status, 503) << location;
  }
  upstream.answer(200, {}, "live");
  EXPECT_EQ(get("/h").status, 200);
  clock->advance(1s);
  upstream.answer(201, block_of({{"Location", "http://other.example/h"}}), "");
  EXPECT_EQ(send("POST", "/orders/", {}, "x").status, 201);
  upstream.answer(503, {}, "broken");
  EXPECT_EQ(get("/h").status, 200);
}

TEST_F(Gateway, Rule2AnUnsafeMethodThatFailedInvalidatesNothing) {
  start();
  EXPECT_EQ(get("/a").status, 200);
  upstream.answer(500, {}, "broken");
  EXPECT_EQ(send("DELETE", "/a").status, 500);
  EXPECT_EQ(summary(get("/a")), "200 live");
}

TEST_F(Gateway, Rule2RefusedRequests) {
  start();
  raw_client absolute(gateway->addresses().front());
  absolute.send("GET http://a/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(absolute.read_to_end().starts_with("HTTP/1.1 400 "));
  EXPECT_EQ(send("TRACE", "/").status, 501);
  EXPECT_EQ(get("/", block_of({{"Upgrade", "websocket"}})).status, 501);
  EXPECT_EQ(get("/", block_of({{"Upgrade", "h2c"}})).status, 200);
  EXPECT_EQ(upstream.requests(), 1);
}

TEST_F(Gateway, Rule6NeverBackInTime) {
  start();
  upstream.answer(200, {}, "first");
  EXPECT_EQ(summary(get("/a")), "200 first");
  clock->advance(1s);
  upstream.answer(200, block_of({{"Cache-Control", "no-store"}}), "second");
  const auto second = get("/a");
  EXPECT_EQ(summary(second), "200 second");
  EXPECT_EQ(status_of(second), "holdfast;fwd=bypass;detail=no-store");
  upstream.answer(503, {}, "broken");
  EXPECT_EQ(summary(get("/a")), "503 broken");
}

TEST_F(Gateway, Rule6SupersededKeep) {
  routes.front().keep_superseded = true;
  start();
  upstream.answer(200, {}, "first");
  EXPECT_EQ(get("/a").status, 200);
  upstream.answer(200, block_of({{"Cache-Control", "no-store"}}), "second");
  EXPECT_EQ(get("/a").status, 200);
  upstream.answer(503, {}, "broken");
  EXPECT_EQ(summary(get("/a")), "200 first");
}

TEST_F(Gateway, Rule4NotFoundIsAnAnswer) {
  start();
  upstream.answer(200, {}, "first");
  EXPECT_EQ(get("/a").status, 200);
  clock->advance(1s);
  upstream.answer(410, {}, "gone");
  EXPECT_EQ(get("/a").status, 410);
  upstream.answer(503, {}, "broken");
  EXPECT_EQ(summary(get("/a")), "410 gone");
}

TEST_F(Gateway, Rule5AnswersOfOneCallerStayWithThem) {
  start();
  const auto as = [](std::string_view name) {
    return block_of({{"Authorization", "Bearer " + std::string(name)}});
  };
  upstream.answer(200, {}, "alice's");
  EXPECT_EQ(status_of(get("/a", as("alice"))), "holdfast;fwd=bypass;detail=authorization");
  upstream.answer(503, {}, "broken");
  EXPECT_EQ(summary(get("/a", as("bob"))), "503 broken");
  EXPECT_EQ(summary(get("/a", as("alice"))), "503 broken");
}

TEST_F(Gateway, Rule5ARouteMayVaryByTheCaller) {
  routes.front().vary = {"authorization"};
  start();
  const auto as = [](std::string_view name) {
    return block_of({{"Authorization", "Bearer " + std::string(name)}});
  };
  upstream.answer(200, block_of({{"Cache-Control", "private"}}), "alice's");
  EXPECT_EQ(status_of(get("/a", as("alice"))), "holdfast;fwd=miss;stored");
  upstream.answer(503, {}, "broken");
  EXPECT_EQ(summary(get("/a", as("bob"))), "503 broken");
  EXPECT_EQ(summary(get("/a", as("alice"))), "200 alice's");
  // An unsafe method invalidates the answers of all callers.
  clock->advance(1s);
  upstream.answer(204, {}, "");
  EXPECT_EQ(send("PUT", "/a", as("bob"), "x").status, 204);
  upstream.answer(503, {}, "broken");
  const auto answer = get("/a", as("alice"));
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(status_of(answer), "holdfast;fwd=miss;fwd-status=503;detail=invalidated");
}

// Without a credential the key is that of all callers without one.
TEST_F(Gateway, Rule5APrivateAnswerNeedsACredentialInTheKey) {
  routes.front().vary = {"authorization"};
  start();
  upstream.answer(200, block_of({{"Cache-Control", "private"}}), "token 1");
  EXPECT_EQ(status_of(get("/a")), "holdfast;fwd=bypass;detail=private");
  upstream.answer(503, {}, "broken");
  EXPECT_EQ(summary(get("/a")), "503 broken");
}

TEST_F(Gateway, Rule5ConnectionDoesNotRemoveWhatForbidsKeeping) {
  start();
  upstream.answer(200, block_of({{"Cache-Control", "no-store"}, {"Connection", "cache-control"}}),
                  "secret");
  EXPECT_EQ(status_of(get("/a")), "holdfast;fwd=bypass;detail=no-store");
  upstream.answer(200, block_of({{"Set-Cookie", "a=b"}, {"Connection", "set-cookie"}}), "secret");
  EXPECT_EQ(status_of(get("/a")), "holdfast;fwd=bypass;detail=set-cookie");
}

TEST_F(Gateway, Rule9FieldsThatNameAnotherTargetAreDropped) {
  start();
  (void)get("/a", block_of({{"X_Forwarded_Host", "evil"},
                            {"X-Forwarded_Host", "evil"},
                            {"Accept_Encoding", "evil"},
                            {"X-Forwarded-Scheme", "evil"},
                            {"X-Forwarded", "evil"},
                            {"X-Original-URL", "evil"},
                            {"X-Original-Host", "evil"},
                            {"X-Rewrite-URL", "evil"},
                            {"X-HTTP-Method", "evil"},
                            {"X-HTTP-Method-Override", "evil"},
                            {"X-HTTP-Host-Override", "evil"},
                            {"X-HTTP-Path-Override", "evil"},
                            {"X-Method-Override", "evil"},
                            {"X-Host-Override", "evil"},
                            {"X-Backend-Host", "evil"},
                            {"X-Url-Scheme", "evil"},
                            {"Base-Url", "evil"},
                            {"Proxy", "evil"}}));
  EXPECT_EQ(upstream.last_fields().find("evil"), std::string::npos) << upstream.last_fields();
}

TEST_F(Gateway, Rule9AFieldOfTheKeyIsForwarded) {
  routes.front().vary = {"tenant_id"};
  start();
  (void)get("/a", block_of({{"Tenant_Id", "blue"}}));
  EXPECT_NE(upstream.last_fields().find("Tenant_Id: blue"), std::string::npos);
}

TEST_F(Gateway, Rule15ARequestThatRunsInCirclesEnds) {
  start();
  std::string hops;
  for (int i = 0; i < 9; ++i) hops += "1.1 holdfast, ";
  EXPECT_EQ(get("/a", block_of({{"Via", hops + "1.1 other"}})).status, 200);
  EXPECT_EQ(get("/a", block_of({{"Via", hops + "1.1 holdfast"}})).status, 508);
  EXPECT_EQ(upstream.requests(), 1);
}

TEST_F(Gateway, Rule7ForbiddenStaleAnswers) {
  start();
  upstream.answer(200, block_of({{"Cache-Control", "max-age=2, must-revalidate"}}), "first");
  EXPECT_EQ(status_of(get("/a")), "holdfast;fwd=miss;stored");
  upstream.answer(503, {}, "broken");
  clock->advance(1s);
  EXPECT_EQ(summary(get("/a")), "200 first");  // still fresh
  clock->advance(5s);
  const auto answer = get("/a");
  EXPECT_EQ(summary(answer), "503 broken");
  EXPECT_EQ(status_of(answer),
            "holdfast;fwd=miss;fwd-status=503;detail=\"forbidden-by=must-revalidate\"");
}

TEST_F(Gateway, Rule8OnlyIfCachedAsksNobody) {
  start();
  const auto only_cached = block_of({{"Cache-Control", "only-if-cached"}});
  EXPECT_EQ(get("/a", only_cached).status, 504);
  EXPECT_EQ(upstream.requests(), 0);
  EXPECT_EQ(get("/a").status, 200);
  const auto answer = get("/a", only_cached);
  EXPECT_EQ(summary(answer), "200 live");
  EXPECT_EQ(status_of(answer), "holdfast;hit;ttl=0");
  EXPECT_EQ(upstream.requests(), 1);
}

TEST_F(Gateway, Rule10ConditionsAreAnsweredHere) {
  start();
  upstream.answer(200, block_of({{"ETag", "\"v1\""}}), "first");
  const auto condition = block_of({{"If-None-Match", "\"v1\""}});
  EXPECT_EQ(summary(get("/a", condition)), "304 ");
  EXPECT_EQ(upstream.last_fields().find("If-None-Match"), std::string::npos);
  upstream.answer(503, {}, "broken");
  EXPECT_EQ(summary(get("/a", condition)), "304 ");
  EXPECT_EQ(summary(get("/a")), "200 first");
}

TEST_F(Gateway, Rule11RangesPass) {
  start();
  upstream.answer(200, {}, "0123456789");
  EXPECT_EQ(get("/a").status, 200);
  upstream.answer(206, block_of({{"Content-Range", "bytes 0-1/10"}}), "01");
  const auto range = block_of({{"Range", "bytes=0-1"}});
  const auto partial = get("/a", range);
  EXPECT_EQ(summary(partial), "206 01");
  EXPECT_EQ(status_of(partial), "holdfast;fwd=bypass;detail=partial");
  EXPECT_NE(upstream.last_fields().find("Range: bytes=0-1"), std::string::npos);
  upstream.answer(503, {}, "broken");
  EXPECT_EQ(summary(get("/a", block_of({{"Range", "bytes=3-5"}}))), "206 345");
}

TEST_F(Gateway, Rule12Head) {
  start();
  upstream.answer_with(
      [](const server_request&, responder reply) { reply.answer({.body = "0123456789"}); });
  const auto live = send("HEAD", "/a");
  EXPECT_EQ(live.status, 200);
  EXPECT_EQ(live.fields.find("Content-Length"), "10");
  EXPECT_EQ(status_of(live), "holdfast;fwd=bypass;detail=head");
  EXPECT_EQ(get("/a").status, 200);
  upstream.stop();
  const auto stale = send("HEAD", "/a");
  EXPECT_EQ(stale.status, 200);
  EXPECT_EQ(stale.fields.find("Content-Length"), "10");
}

TEST_F(Gateway, Rule13LargeResponsesAreStreamedAndKept) {
  start();
  const std::string large(300'000, 'x');
  upstream.answer(200, {}, large);
  const auto answer = get("/a");
  EXPECT_EQ(answer.body, large);
  EXPECT_EQ(answer.fields.find("Content-Length"), "300000");
  EXPECT_EQ(status_of(answer), "holdfast;fwd=bypass;detail=streamed");
  upstream.stop();
  EXPECT_TRUE(eventually([&] { return get("/a").body == large; }));
}

TEST_F(Gateway, Rule13AClientThatReadsSlowlySlowsTheUpstreamDown) {
  start();
  const std::string large(8'000'000, 'x');
  upstream.answer(200, {}, large);
  raw_client client(gateway->addresses().front());
  client.send("GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  const auto text = client.read_to_end();
  EXPECT_EQ(text.size() - text.find("\r\n\r\n") - 4, large.size());
  const auto answer = get("/a");
  EXPECT_EQ(answer.body.size(), large.size());
  EXPECT_EQ(status_of(answer), "holdfast;fwd=bypass;detail=too-large");
}

TEST_F(Gateway, Rule13AClientOfHttp10GetsALargeResponse) {
  start();
  const std::string large(300'000, 'x');
  upstream.answer(200, {}, large);
  raw_client client(gateway->addresses().front());
  client.send("GET /a HTTP/1.0\r\n\r\n");
  const auto text = client.read_to_end();
  EXPECT_EQ(text.size() - text.find("\r\n\r\n") - 4, large.size());
}

TEST_F(Gateway, Rule14OneRequestForManyClients) {
  configure = [](point_options& point) { point.single_flight = true; };
  start();
  std::vector<responder> waiting;
  std::mutex mutex;
  upstream.answer_with([&](const server_request&, responder reply) {
    const std::scoped_lock lock(mutex);
    waiting.push_back(std::move(reply));
  });
  std::vector<client_response> answers(8);
  {
    std::vector<std::jthread> clients;
    for (auto& answer : answers) clients.emplace_back([&] { answer = get("/a"); });
    await_requests(8);
    EXPECT_TRUE(eventually([&] { return count_of(waiting, mutex) > 0; }));
    const std::scoped_lock lock(mutex);
    ASSERT_EQ(waiting.size(), 1U);
    waiting.front().answer({.body = "shared"});
  }
  int collapsed = 0;
  for (const auto& answer : answers) {
    EXPECT_EQ(summary(answer), "200 shared");
    if (status_of(answer) == "holdfast;fwd=miss;collapsed") ++collapsed;
  }
  EXPECT_EQ(collapsed, 7);
  EXPECT_EQ(upstream.requests(), 1);
}

TEST_F(Gateway, Rule14AnAnswerIsNotSharedWithACallerWhoHasACredential) {
  configure = [](point_options& point) { point.single_flight = true; };
  start();
  std::promise<responder> first;
  upstream.answer_with([&](const server_request& request, responder reply) {
    if (request.fields.find("authorization")) reply.answer({.body = "alice's"});
    else if (request.fields.find("cookie")) reply.answer({.body = "bob's"});
    else if (request.fields.find("cache-control")) reply.answer({.body = "not stored"});
    else first.set_value(std::move(reply));
  });
  auto leader = std::async(std::launch::async, [&] { return summary(get("/a")); });
  auto reply = first.get_future().get();
  const auto follower = [&](std::string_view name, std::string_view value) {
    return std::async(std::launch::async,
                      [this, fields = block_of({{name, value}})] { return get("/a", fields); });
  };
  auto alice = follower("Authorization", "Bearer alice");
  auto bob = follower("Cookie", "sid=7");
  EXPECT_EQ(summary(get("/a", block_of({{"Cache-Control", "no-store"}}))), "200 not stored");
  await_requests(3);
  reply.answer({.body = "for any client"});
  EXPECT_EQ(leader.get(), "200 for any client");
  EXPECT_EQ(summary(alice.get()), "200 alice's");
  EXPECT_EQ(summary(bob.get()), "200 bob's");
}

TEST_F(Gateway, Rule14AnswersThatMayNotBeKeptAreNotShared) {
  configure = [](point_options& point) { point.single_flight = true; };
  start();
  std::vector<responder> waiting;
  std::mutex mutex;
  upstream.answer_with([&](const server_request&, responder reply) {
    const std::scoped_lock lock(mutex);
    waiting.push_back(std::move(reply));
  });
  std::vector<client_response> answers(3);
  {
    std::vector<std::jthread> clients;
    for (auto& answer : answers) clients.emplace_back([&] { answer = get("/a"); });
    await_requests(3);
    EXPECT_TRUE(eventually([&] { return count_of(waiting, mutex) > 0; }));
    upstream.answer(200, {}, "own");
    const std::scoped_lock lock(mutex);
    ASSERT_EQ(waiting.size(), 1U);
    waiting.front().answer({.fields = block_of({{"Set-Cookie", "a=b"}}), .body = "own"});
  }
  for (const auto& answer : answers) EXPECT_EQ(summary(answer), "200 own");
  EXPECT_EQ(upstream.requests(), 3);
}

TEST_F(Gateway, Rule17AnotherServerIsAskedFirst) {
  test::scripted_upstream second{
      [](const server_request&, responder reply) { reply.answer({.body = "second"}); }};
  routes.front().upstreams.push_back(second.url());
  start();
  upstream.stop();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(summary(get("/a")), "200 second");
  // Nothing was sent to the first one, so this is safe for any method.
  EXPECT_EQ(summary(send("POST", "/a", {}, "x")), "200 second");
}

TEST_F(Gateway, Rule17RetriesOnlyWhatMayBeRepeated) {
  configure = [](point_options& point) {
    point.retry = retry_options{.attempts = 2, .backoff = 1ms, .budget = 1};
  };
  start();
  std::atomic<int> failures = 1;
  upstream.answer_with([&](const server_request&, responder reply) {
    if (failures-- > 0) reply.answer({.status = 503, .body = "broken"});
    else reply.answer({.body = "good"});
  });
  EXPECT_EQ(summary(get("/a")), "200 good");
  EXPECT_EQ(upstream.requests(), 2);
  failures = 1;
  EXPECT_EQ(summary(send("POST", "/a", {}, "x")), "503 broken");
  EXPECT_EQ(upstream.requests(), 3);
}

TEST_F(Gateway, AnOpenBreakerAsksNobody) {
  configure = [](point_options& point) {
    point.breaker = breaker_options{};
    point.breaker->minimum = 2;
  };
  start();
  EXPECT_EQ(get("/a").status, 200);
  upstream.answer(503, {}, "broken");
  EXPECT_TRUE(eventually([&] {
    const auto answer = get("/a");
    return status_of(answer) == "holdfast;hit;ttl=0;detail=breaker-open";
  }));
  const auto asked = upstream.requests();
  EXPECT_EQ(summary(get("/a")), "200 live");
  const auto unserved = get("/b");
  EXPECT_EQ(unserved.status, 503);
  EXPECT_EQ(unserved.fields.find("Retry-After"), "1");
  EXPECT_EQ(upstream.requests(), asked);
}

TEST_F(Gateway, SoftExpiry) {
  configure = [](point_options& point) { point.soft_expiry = 10s; };
  start();
  EXPECT_EQ(summary(get("/a")), "200 live");
  upstream.answer(200, block_of({{"Cache-Control", "max-age=60"}}), "newer");
  const auto young = get("/a");
  EXPECT_EQ(summary(young), "200 live");
  EXPECT_EQ(status_of(young), "holdfast;hit;ttl=0");
  EXPECT_EQ(upstream.requests(), 1);
  clock->advance(11s);
  const auto older = get("/a");
  EXPECT_EQ(summary(older), "200 live");
  EXPECT_EQ(status_of(older), "holdfast;hit;ttl=-11;detail=refreshing");
  // A request that reads the old answer just before the refresh ends begins another refresh, so
  // this waits with requests that never ask the upstream.
  const auto only_cached = block_of({{"Cache-Control", "only-if-cached"}});
  EXPECT_TRUE(eventually([&] { return get("/a", only_cached).body == "newer"; }));
  EXPECT_EQ(summary(get("/a")), "200 newer");
  EXPECT_EQ(upstream.requests(), 2);
}

TEST_F(Gateway, TlsOnBothSides) {
  const test::certificate certificate("root");
  const net::tls_server_options files{.certificate = certificate.file(), .key = certificate.key()};
  const net::tls_server_context context(files);
  std::string large(300'000, 'x');
  http_server secure({.listen = {"127.0.0.1:0"}, .tls = &context},
                     [&](const server_request& request, responder reply) {
                       reply.answer({.body = request.target.path() == "/large" ? large : "live"});
                     });
  routes.front().upstreams = {"https://" + secure.addresses().front()};
  tls = std::make_shared<const net::tls_server_context>(files);
  upstream_tls.ca = certificate.file();
  start();
  EXPECT_EQ(summary(get("/a")), "200 live");
  EXPECT_EQ(get("/large").body, large);
}

TEST_F(Gateway, ACertificateThatIsNotTrustedIsAFailure) {
  const test::certificate certificate("root");
  const net::tls_server_context context(
      {.certificate = certificate.file(), .key = certificate.key()});
  http_server secure({.listen = {"127.0.0.1:0"}, .tls = &context},
                     [](const server_request&, responder reply) { reply.answer({}); });
  routes.front().upstreams = {"https://" + secure.addresses().front()};
  start();
  EXPECT_EQ(get("/a").status, 502);
}

TEST_F(Gateway, HostIsThatOfTheUpstreamOrOfTheClient) {
  start();
  EXPECT_EQ(get("/a").status, 200);
  EXPECT_NE(upstream.last_fields().find("Host: " + upstream.address() + "\n"), std::string::npos);
  TearDown();
  routes.front().forward_host = true;
  start();
  EXPECT_EQ(get("/a").status, 200);
  EXPECT_NE(upstream.last_fields().find("Host: " + gateway->addresses().front() + "\n"),
            std::string::npos);
}

TEST_F(Gateway, NothingIsHeldWithoutAHold) {
  routes.front().hold = 0;
  start();
  EXPECT_EQ(status_of(get("/a")), "holdfast;fwd=bypass;detail=streamed");
  upstream.stop();
  // The client has the end of a stream before it is kept.
  EXPECT_TRUE(eventually([&] { return summary(get("/a")) == "200 live"; }));
}

TEST_F(Gateway, ADisabledPointOnlyPasses) {
  configure = [](point_options& point) { point.enabled = false; };
  start();
  EXPECT_EQ(status_of(get("/a")), "holdfast;fwd=bypass");
  upstream.answer(503, {}, "broken");
  EXPECT_EQ(summary(get("/a")), "503 broken");
}

TEST_F(Gateway, AGetWithContentIsNotKept) {
  start();
  EXPECT_EQ(status_of(send("GET", "/a", {}, "content")), "holdfast;fwd=bypass");
  upstream.stop();
  EXPECT_EQ(get("/a").status, 502);
}

TEST_F(Gateway, OptionsOfAPointThatHaveNoEffectAreRefused) {
  configure = [](point_options& point) { point.soft_timeout = 1s; };
  EXPECT_THROW(start(), error);
  configure = [](point_options& point) { point.max_payload = 1000; };
  EXPECT_THROW(start(), error);
}

TEST_F(Gateway, Rule10TheUpstreamConfirmsWhatIsKept) {
  start();
  upstream.answer(200,
                  block_of({{"ETag", "\"v1\""},
                            {"Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT"},
                            {"Cache-Control", "max-age=5"},
                            {"Age", "3"},
                            {"Content-Type", "text/plain"}}),
                  "first");
  EXPECT_EQ(status_of(get("/a")), "holdfast;fwd=miss;stored");
  clock->advance(60s);
  upstream.answer(304, block_of({{"ETag", "\"v1\""}, {"Cache-Control", "max-age=9"}}), "");
  const auto confirmed = get("/a");
  EXPECT_EQ(summary(confirmed), "200 first");
  EXPECT_EQ(status_of(confirmed), "holdfast;fwd=miss;fwd-status=304;stored");
  EXPECT_EQ(confirmed.fields.find("Cache-Control"), "max-age=9");
  EXPECT_EQ(confirmed.fields.find("Content-Type"), "text/plain");
  EXPECT_FALSE(confirmed.fields.has("Age"));
  const auto sent = upstream.last_fields();
  EXPECT_NE(sent.find("If-None-Match: \"v1\"\n"), std::string::npos) << sent;
  EXPECT_NE(sent.find("If-Modified-Since: Thu, 01 Jan 2026 00:00:00 GMT\n"), std::string::npos);
  // The kept answer is as new as its confirmation.
  clock->advance(2s);
  upstream.answer(503, {}, "broken");
  const auto stale = get("/a");
  EXPECT_EQ(summary(stale), "200 first");
  EXPECT_EQ(stale.fields.find("Age"), "2");
  EXPECT_EQ(status_of(stale), "holdfast;fwd=stale;fwd-status=503;ttl=7");
}

TEST_F(Gateway, Rule10AClientWithTheConfirmedAnswerGets304) {
  start();
  upstream.answer(200, block_of({{"ETag", "\"v1\""}}), "first");
  EXPECT_EQ(get("/a").status, 200);
  upstream.answer(304, block_of({{"ETag", "\"v1\""}}), "");
  EXPECT_EQ(summary(get("/a", block_of({{"If-None-Match", "\"v1\""}}))), "304 ");
  EXPECT_EQ(summary(get("/a", block_of({{"If-None-Match", "\"other\""}}))), "200 first");
}

TEST_F(Gateway, Rule10AConfirmationOfSomethingElseIsNotUsed) {
  start();
  upstream.answer(200, block_of({{"ETag", "\"v1\""}}), "first");
  EXPECT_EQ(get("/a").status, 200);
  upstream.answer_with([](const server_request& request, responder reply) {
    if (request.fields.find("if-none-match"))
      reply.answer({.status = 304, .fields = block_of({{"ETag", "\"v2\""}})});
    else reply.answer({.fields = block_of({{"ETag", "\"v2\""}}), .body = "second"});
  });
  EXPECT_EQ(summary(get("/a")), "200 second");
}

TEST_F(Gateway, Rule10A304ThatNobodyAskedForIsAFailure) {
  start();
  upstream.answer(200, {}, "first");
  EXPECT_EQ(get("/a").status, 200);
  upstream.answer(304, {}, "");
  EXPECT_EQ(summary(get("/a")), "200 first");
  EXPECT_EQ(get("/b").status, 502);
}

TEST_F(Gateway, Rule10NoOneIsToldAboutTheAnswerOfAnother) {
  start();
  upstream.answer(200, block_of({{"ETag", "\"v1\""}}), "first");
  EXPECT_EQ(get("/a").status, 200);
  EXPECT_EQ(get("/a", block_of({{"Authorization", "Bearer bob"}})).status, 200);
  EXPECT_EQ(upstream.last_fields().find("If-None-Match"), std::string::npos);
  EXPECT_EQ(get("/a", block_of({{"Range", "bytes=0-1"}})).status, 200);
  EXPECT_EQ(upstream.last_fields().find("If-None-Match"), std::string::npos);
}

TEST_F(Gateway, DrillsTakePartInRequests) {
  start();
  EXPECT_EQ(get("/a").status, 200);
  const auto asked = upstream.requests();
  (void)engine->drill("r", {.part = 1});
  const auto drilled = get("/a");
  EXPECT_EQ(summary(drilled), "200 live");
  EXPECT_EQ(status_of(drilled), "holdfast;hit;ttl=0;detail=drill");
  const auto told = std::string(drilled.fields.find("Holdfast-Answer").value_or(""));
  EXPECT_NE(told.find(";cause=drill"), std::string::npos) << told;
  EXPECT_EQ(upstream.requests(), asked);
  // A drill makes no request fail: what is not kept comes from the upstream.
  EXPECT_EQ(status_of(get("/b")), "holdfast;fwd=miss;stored");
  const auto report = engine->end_drill("r");
  EXPECT_EQ(report.served, 1U);
  EXPECT_EQ(report.not_covered, 1U);
  EXPECT_EQ(status_of(get("/a")), "holdfast;fwd=miss;stored");
}

TEST_F(Gateway, ADrillGivesNoAnswerThatIsForbidden) {
  start();
  upstream.answer(200, block_of({{"Cache-Control", "no-cache"}}), "first");
  EXPECT_EQ(get("/a").status, 200);
  (void)engine->drill("r", {.part = 1});
  EXPECT_EQ(status_of(get("/a")), "holdfast;fwd=miss;stored");
  // An invalidated entry says that there is nothing.
  const auto page = store->find_all(place("r"), 10);
  ASSERT_EQ(page.entries.size(), 1U);
  EXPECT_TRUE(engine->invalidate_entry("r", page.entries.front().key));
  EXPECT_EQ(status_of(get("/a")), "holdfast;fwd=miss;stored");
}

/// A store that may wait, and counts how often it is asked.
class counting_store final : public store {
 public:
  explicit counting_store(std::shared_ptr<store> next) : next_(std::move(next)) {}
  using store::put;
  void put(std::span<const entry> entries) override { next_->put(entries); }
  std::optional<entry> find(place location, std::string_view key) override {
    ++finds;
    return next_->find(location, key);
  }
  entry_page find_all(place location, std::size_t limit, std::string_view after) override {
    return next_->find_all(location, limit, after);
  }
  bool erase(place location, std::string_view key, timestamp as_of) override {
    return next_->erase(location, key, as_of);
  }
  std::size_t expire(timestamp before, std::size_t limit) override {
    return next_->expire(before, limit);
  }
  std::uint64_t count(place location) override { return next_->count(location); }
  store_health health() noexcept override { return next_->health(); }

  std::atomic<int> finds = 0;

 private:
  std::shared_ptr<store> next_;
};

TEST_F(Gateway, AHotStaleAnswerAsksNoDatabase) {
  const auto database = std::make_shared<counting_store>(store);
  store = make_tiered_store(database, {.clock = clock});
  start();
  EXPECT_EQ(get("/a").status, 200);
  upstream.stop();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(summary(get("/a")), "200 live");
  EXPECT_EQ(database->finds, 0);
  // Another process may have written meanwhile.
  clock->advance(11s);
  EXPECT_EQ(summary(get("/a")), "200 live");
  EXPECT_EQ(database->finds, 1);
  EXPECT_EQ(get("/b").status, 502);
  EXPECT_EQ(database->finds, 2);
}

/// An upstream that sends these bytes after each request, and closes.
struct CutGateway : Gateway {
  std::mutex response_mutex{};
  std::string response{};
  std::unique_ptr<recording_server> raw =
      std::make_unique<recording_server>([this](recording_server::client& client) {
        std::array<char, 4096> buffer{};
        (void)::recv(client.socket(), buffer.data(), buffer.size(), 0);
        (void)client.send(current_response());
        ::shutdown(client.socket(), SHUT_WR);
      });

  void respond_with(std::string text) {
    const std::scoped_lock lock(response_mutex);
    response = std::move(text);
  }
  std::string current_response() {
    const std::scoped_lock lock(response_mutex);
    return response;
  }
  void start_raw() {
    routes.front().upstreams = {"http://127.0.0.1:" + std::to_string(raw->port())};
    start();
  }
};

TEST_F(CutGateway, Rule13AResponseCutAtEachByteIsReplaced) {
  start_raw();
  const std::string whole = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: b\r\n\r\nfirst";
  const std::string chunked =
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n0\r\n\r\n";
  respond_with(whole);
  ASSERT_EQ(summary(get("/a")), "200 first");
  for (const auto& text : {whole, chunked}) {
    for (std::size_t size = 0; size < text.size(); ++size) {
      respond_with(text.substr(0, size));
      const auto answer = get("/a");
      ASSERT_EQ(summary(answer), "200 first") << size;
      ASSERT_EQ(status_of(answer), "holdfast;fwd=stale;fwd-status=502;ttl=0;detail=cut") << size;
    }
    respond_with(text);
    ASSERT_EQ(status_of(get("/a")), "holdfast;fwd=miss;stored");
  }
}

TEST_F(CutGateway, Rule13ACutAfterTheHoldCutsTheClient) {
  start_raw();
  respond_with("HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n" + std::string(100'000, 'x'));
  EXPECT_NE(get("/a").result, exchange_status::complete);
  respond_with("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n186a0\r\n" +
               std::string(100'000, 'x') + "\r\n");
  EXPECT_NE(get("/a").result, exchange_status::complete);
  EXPECT_EQ(get("/a", block_of({{"Cache-Control", "only-if-cached"}})).status, 504);
}

TEST_F(CutGateway, IllFormedResponsesAreFailures) {
  start_raw();
  respond_with("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst");
  ASSERT_EQ(get("/a").status, 200);
  for (const char* const text :
       {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nfirst!",
        "HTTP/2 200 OK\r\n\r\n", "hello", "HTTP/1.1 101 Switching\r\n\r\n"}) {
    respond_with(text);
    const auto answer = get("/a");
    EXPECT_EQ(summary(answer), "200 first") << text;
    EXPECT_EQ(status_of(answer),
              "holdfast;fwd=stale;fwd-status=502;ttl=0;detail=" +
                  std::string(text == std::string("hello") ? "cut" : "malformed"))
        << text;
  }
}

TEST_F(CutGateway, ALargeFailureIsPassedOn) {
  start_raw();
  respond_with("HTTP/1.1 503 Busy\r\nContent-Length: 200000\r\n\r\n" + std::string(200'000, 'x'));
  const auto answer = get("/a");
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.body.size(), 200'000U);
}

TEST_F(CutGateway, EventsAreNotHeld) {
  test::gate gate;
  raw = std::make_unique<recording_server>([&](recording_server::client& client) {
    std::array<char, 4096> buffer{};
    (void)::recv(client.socket(), buffer.data(), buffer.size(), 0);
    (void)client.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: first\n\n");
    gate.wait();
  });
  start_raw();
  raw_client client(gateway->addresses().front());
  client.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_NE(client.read_until("data: first").find("data: first"), std::string::npos);
  // The upstream is not kept busy for a client that is gone.
  client.reset();
  EXPECT_TRUE(eventually([&] { return gateway->counts().streams == 0; }));
  gate.open();
  raw.reset();  // its thread uses the gate
}

TEST_F(Gateway, RequestsUnderWayAreAnsweredAtTheEnd) {
  start();
  std::vector<responder> waiting;
  std::mutex mutex;
  upstream.answer_with([&](const server_request&, responder reply) {
    const std::scoped_lock lock(mutex);
    waiting.push_back(std::move(reply));
  });
  client_response answer;
  std::jthread client([&] { answer = get("/a"); });
  EXPECT_TRUE(eventually([&] { return count_of(waiting, mutex) == 1; }));
  gateway->begin_drain();
  std::jthread stopping(
      [&] { EXPECT_TRUE(gateway->stop(std::chrono::steady_clock::now() + 60s).empty()); });
  {
    const std::scoped_lock lock(mutex);
    waiting.front().answer({.body = "last"});
  }
  stopping.join();
  client.join();
  EXPECT_EQ(summary(answer), "200 last");
}

TEST_F(Gateway, TheEndDoesNotWaitForAnUpstreamThatHangs) {
  start();
  std::vector<responder> waiting;
  upstream.answer_with(
      [&](const server_request&, responder reply) { waiting.push_back(std::move(reply)); });
  std::jthread client([&] { (void)get("/a"); });
  EXPECT_TRUE(eventually([&] { return upstream.requests() == 1; }));
  EXPECT_FALSE(gateway->stop(std::chrono::steady_clock::now() + 100ms).empty());
  upstream.stop();
}

}  // namespace
