// What the dispatcher refuses before an endpoint is called, and what it adds to every answer.

#include <holdfast/error.hpp>

#include "support/api_server.hpp"
#include "support/eventually.hpp"
#include "support/gate.hpp"
#include "support/raw_client.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace holdfast;
using namespace holdfast::detail::serve;
using test::api_server;

endpoint_table sample_table() {
  endpoint_table table;
  table.add(
      {.method = "GET", .path = "/healthz", .summary = "s", .answer = [](api_request& request) {
         return json_response(200, request.caller.identified ? "true" : "false");
       }});
  table.add({.method = "DELETE", .path = "/session", .summary = "s", .answer = [](api_request&) {
               return server_response{.status = 204};
             }});
  table.add({.method = "GET",
             .path = "/v1/stores/{store}/{name}",
             .summary = "s",
             .roles = {role::viewer, role::application},
             .scope = "store:{store}:read",
             .for_tenants = true,
             .query = {{.name = "limit", .type = parameter_type::integer},
                       {.name = "after"},
                       {.name = "reveal", .type = parameter_type::boolean},
                       {.name = "from", .type = parameter_type::time},
                       {.name = "age", .type = parameter_type::duration}},
             .answer = [](api_request& request) {
               return json_response(
                   200, request.path("store") + "/" + request.path("name") + " limit " +
                            std::to_string(request.query_integer("limit", 100, 1, 1000)) +
                            " after " + request.query("after").value_or("-") +
                            (request.query_flag("reveal") ? " reveal" : "") + " " +
                            std::string(request.fields.find("X-Note").value_or("-")));
             }});
  table.add({.method = "POST",
             .path = "/v1/act",
             .summary = "s",
             .roles = {role::operator_},
             .accepts = {"application/json", "application/x-ndjson"},
             .max_body = 100,
             .answer = [](api_request& request) { return json_response(200, request.body); }});
  table.add({.method = "PUT",
             .path = "/v1/any",
             .summary = "s",
             .roles = {role::operator_},
             .accepts = {"*/*"},
             .answer = [](api_request& request) { return json_response(200, request.body); }});
  table.add({.method = "POST",
             .path = "/v1/fail/{how}",
             .summary = "s",
             .roles = {role::viewer, role::operator_},
             .answer = [](api_request& request) -> server_response {
               if (request.path("how") == "defect") throw std::runtime_error("secret detail");
               if (request.path("how") == "status") return {.status = 99};
               throw error(errc::unavailable, "host db7 refused",
                           {.transient = true, .in_doubt = request.path("how") == "doubt"});
             }});
  return table;
}

struct Dispatcher : ::testing::Test {
  endpoint_table table = sample_table();
  api_server server{table};

  int status(std::string_view method, std::string_view target, std::string_view bearer = {},
             std::string_view body = {}, std::string_view type = "application/json") {
    return server.send(method, target, bearer, body, type).status;
  }
};

TEST_F(Dispatcher, AddsTheFieldsOfEveryAnswer) {
  std::set<std::string> references;
  for (const auto* target : {"/healthz", "/nothing", "/v1/act", "/v1/stores/a/b"}) {
    const auto answer = server.send("GET", target);
    EXPECT_EQ(answer.fields.find("Cache-Control"), "no-store") << target;
    EXPECT_EQ(answer.fields.find("X-Content-Type-Options"), "nosniff") << target;
    EXPECT_EQ(answer.fields.find("Cross-Origin-Resource-Policy"), "same-origin") << target;
    references.insert(std::string(answer.fields.find("Holdfast-Request").value_or("")));
  }
  EXPECT_EQ(references.size(), 4U);
  EXPECT_FALSE(references.contains(""));
}

TEST_F(Dispatcher, UnknownPathsAndMethods) {
  EXPECT_EQ(status("GET", "/v2"), 404);
  const auto wrong = server.send("DELETE", "/v1/act", "admin");
  EXPECT_EQ(wrong.status, 405);
  EXPECT_EQ(wrong.fields.find("Allow"), "OPTIONS, POST");
  const auto options = server.send("OPTIONS", "/healthz");
  EXPECT_EQ(options.status, 204);
  EXPECT_EQ(options.fields.find("Allow"), "GET, HEAD, OPTIONS");
  EXPECT_EQ(status("BREW", "/healthz"), 405);
  const auto head = server.send("HEAD", "/healthz");
  EXPECT_EQ(head.status, 200);
  EXPECT_TRUE(head.body.empty());
}

TEST_F(Dispatcher, ACallerNeedsATokenARoleAScopeAndNoForeignTenant) {
  const auto anonymous = server.send("GET", "/v1/stores/main/n");
  EXPECT_EQ(anonymous.status, 401);
  EXPECT_EQ(anonymous.fields.find("WWW-Authenticate"), "Bearer realm=\"holdfast\"");
  EXPECT_EQ(status("GET", "/v1/stores/main/n", "unknown"), 401);
  EXPECT_EQ(status("GET", "/v1/stores/main/n", "viewer"), 200);
  EXPECT_EQ(status("GET", "/v1/stores/main/n", "admin"), 200);
  const auto operator_only = server.send("GET", "/v1/stores/main/n", "operator");
  EXPECT_EQ(operator_only.status, 403);
  EXPECT_NE(operator_only.body.find("viewer or app"), std::string::npos) << operator_only.body;
  EXPECT_EQ(status("GET", "/v1/stores/main/n", "app store:main:read"), 200);
  EXPECT_EQ(status("GET", "/v1/stores/main/n", "app store:*:read"), 200);
  const auto scoped = server.send("GET", "/v1/stores/main/n", "app store:other:read");
  EXPECT_EQ(scoped.status, 403);
  EXPECT_NE(scoped.body.find("store:main:read"), std::string::npos) << scoped.body;
  // A colon in a parameter is not a part of a scope.
  EXPECT_EQ(status("GET", "/v1/stores/x:read/n", "app store:x:read:read"), 403);
  EXPECT_EQ(status("GET", "/v1/stores/*/n", "app store:main:read"), 403);
  // This endpoint keeps to the tenant of its caller, the other does not.
  EXPECT_EQ(status("GET", "/v1/stores/main/n", "viewer @acme"), 200);
  EXPECT_EQ(status("POST", "/v1/act", "operator @acme", "{}"), 403);
  EXPECT_EQ(status("POST", "/v1/act", "admin @acme", "{}"), 403);
}

TEST_F(Dispatcher, PublicEndpointsAnswerClientsWithAnOldToken) {
  EXPECT_EQ(server.send("GET", "/healthz", "expired").body, "false");
  EXPECT_EQ(server.send("GET", "/healthz", "viewer").body, "true");
  EXPECT_EQ(status("DELETE", "/session", "expired"), 204);
}

TEST_F(Dispatcher, OnlyDeclaredParameters) {
  const auto answer = [&](const std::string& query) {
    return server.send("GET", "/v1/stores/a/b?" + query, "viewer");
  };
  EXPECT_EQ(answer("limit=5&after=x%20y+z%2B").body, "a/b limit 5 after x y z+ -");
  EXPECT_EQ(answer("reveal=1").body, "a/b limit 100 after - reveal -");
  EXPECT_EQ(answer("reveal=false").body, "a/b limit 100 after - -");
  EXPECT_EQ(answer("from=2026-11-15T23:05:16Z&age=5m").status, 200);
  const auto unknown = answer("limt=5");
  EXPECT_EQ(unknown.status, 400);
  EXPECT_NE(unknown.body.find("'limit'"), std::string::npos) << unknown.body;
  for (const auto* bad :
       {"limit=5&limit=6", "limit=x", "limit=", "limit=5.0", "limit=0x5",
        "limit=99999999999999999999", "limit=1001", "limit=0", "reveal=yes", "from=yesterday",
        "age=5", "after=%FF", "after=%4", "=1", "%61fter=1&after=2", "a%00=1"})
    EXPECT_EQ(answer(bad).status, 400) << bad;
  EXPECT_EQ(status("GET", "/healthz?x=1"), 400);
}

TEST_F(Dispatcher, ContentHasATypeAndALimit) {
  EXPECT_EQ(status("POST", "/v1/act", "operator", "{}"), 200);
  EXPECT_EQ(status("POST", "/v1/act", "operator", "{}", "Application/JSON; charset=\"UTF-8\""),
            200);
  EXPECT_EQ(status("POST", "/v1/act", "operator", "{}", "application/json;charset=latin1"), 415);
  EXPECT_EQ(status("POST", "/v1/act", "operator", "{}", "text/plain"), 415);
  EXPECT_EQ(status("POST", "/v1/act", "operator", "{}", ""), 415);
  EXPECT_EQ(status("POST", "/v1/act", "operator", ""), 200);
  EXPECT_EQ(status("PUT", "/v1/any", "operator", "bytes", "image/png"), 200);
  EXPECT_EQ(status("PUT", "/v1/any", "operator", "bytes", ""), 200);
  EXPECT_EQ(status("GET", "/healthz", "", "{}"), 415);
  EXPECT_EQ(status("POST", "/v1/act", "operator", std::string(101, 'x')), 413);
  EXPECT_EQ(status("PUT", "/v1/any", "operator", std::string(1U << 20U, 'x')), 200);
  EXPECT_EQ(status("PUT", "/v1/any", "operator", std::string((1U << 20U) + 1, 'x')), 413);
}

TEST_F(Dispatcher, AForeignHostIsMisdirected) {
  const auto answer = [&](const std::string& host) {
    test::raw_client client(server.address());
    client.send("GET /healthz HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n");
    return client.read_to_end().substr(9, 3);
  };
  for (const auto* host : {"localhost", "LOCALHOST:7360", "localhost.", "127.0.0.1", "127.0.0.1:1"})
    EXPECT_EQ(answer(host), "200") << host;
  for (const auto* host : {"evil.example", "127.0.0.2", "localhost.evil.example", "[::1]"})
    EXPECT_EQ(answer(host), "421") << host;
  EXPECT_EQ(server.dispatcher().counts().foreign_hosts, 4U);
}

TEST_F(Dispatcher, ExceptionsBecomeProblems) {
  const auto viewer = server.send("POST", "/v1/fail/down", "viewer");
  EXPECT_EQ(viewer.status, 503);
  EXPECT_EQ(viewer.fields.find("Content-Type"), "application/problem+json");
  EXPECT_EQ(viewer.body.find("db7"), std::string::npos) << viewer.body;
  EXPECT_NE(viewer.body.find("\"transient\":true,\"inDoubt\":false"), std::string::npos);
  EXPECT_NE(server.send("POST", "/v1/fail/down", "operator").body.find("db7"), std::string::npos);
  const auto doubt = server.send("POST", "/v1/fail/doubt", "operator");
  EXPECT_EQ(doubt.status, 503);
  EXPECT_NE(doubt.body.find("urn:holdfast:problem:in_doubt"), std::string::npos) << doubt.body;
  const auto defect = server.send("POST", "/v1/fail/defect", "admin");
  EXPECT_EQ(defect.status, 500);
  EXPECT_EQ(defect.body.find("secret"), std::string::npos) << defect.body;
  EXPECT_EQ(status("POST", "/v1/fail/status", "admin"), 400);
  EXPECT_EQ(server.dispatcher().counts().defects, 1U);
}

TEST(DispatcherWorkers, AFullQueueIsRefusedAndTheLoopStaysFree) {
  test::gate gate;
  std::atomic<int> running = 0;
  endpoint_table table;
  table.add({.method = "GET", .path = "/slow", .summary = "s", .answer = [&](api_request&) {
               ++running;
               gate.wait();
               return json_response(200, "{}");
             }});
  table.add({.method = "GET",
             .path = "/now",
             .summary = "s",
             .start = [](const std::shared_ptr<api_request>&, responder answer) {
               answer.answer(json_response(200, "{}"));
             }});
  api_server server(table, {.threads = 2, .queue = 3});
  std::vector<std::jthread> clients;
  std::atomic<int> answered = 0;
  const auto add_client = [&] {
    clients.emplace_back([&] { answered += server.send("GET", "/slow").status == 200 ? 1 : 0; });
  };
  // One after the other: until a thread has taken a request, it is in the queue, too.
  for (int i = 0; i < 2; ++i) {
    add_client();
    ASSERT_TRUE(test::eventually([&] { return running == i + 1; }));
  }
  for (int i = 0; i < 3; ++i) add_client();
  ASSERT_TRUE(test::eventually([&] { return server.dispatcher().counts().workers.queued == 3; }));
  const auto refused = server.send("GET", "/slow");
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.fields.find("Retry-After"), "1");
  EXPECT_EQ(server.send("GET", "/now").status, 200);
  EXPECT_EQ(server.dispatcher().counts().overloaded, 1U);
  gate.open();
  clients.clear();
  EXPECT_EQ(answered, 5);
  EXPECT_EQ(server.dispatcher().close(std::chrono::steady_clock::now() + std::chrono::seconds(30)),
            0U);
}

TEST(DispatcherLog, ReportsEveryAnswerWithoutQueryValues) {
  std::mutex mutex;
  std::vector<std::string> lines;
  auto table = sample_table();
  api_server server(
      table, {.on_answer = [&](const answered_request& request) {
        const std::scoped_lock lock(mutex);
        lines.push_back(std::string(request.method) + " " + std::string(request.path) + " " +
                        std::string(request.endpoint) + " " + std::to_string(request.status) + " " +
                        std::string(request.caller) + " " + std::string(request.address) + " " +
                        std::to_string(request.content_bytes));
      }});
  (void)server.send("GET", "/v1/stores/a/b?after=secret&limit=1", "viewer");
  (void)server.send("POST", "/v1/act", "operator", "{}");
  (void)server.send("GET", "/nothing?q=secret");
  const std::scoped_lock lock(mutex);
  EXPECT_EQ(
      lines,
      (std::vector<std::string>{
          "GET /v1/stores/a/b?after&limit /v1/stores/{store}/{name} 200 viewer 127.0.0.1 0",
          "POST /v1/act /v1/act 200 operator 127.0.0.1 2", "GET /nothing?q  404  127.0.0.1 0"}));
}

TEST(HostNames, AWildcardAdmitsNumbersOnly) {
  const host_names any({"0.0.0.0:7360", "[::]:7360", "/run/socket"}, {"Holdfast.Example."});
  for (const auto* host : {"10.0.0.7", "10.0.0.7:80", "[fe80::1]:80", "holdfast.example:443", ""})
    EXPECT_TRUE(any.admits(host, "10.0.0.9")) << host;
  for (const auto* host : {"evil.example", "10.0.0.7.evil.example", "/run/socket", "[evil"})
    EXPECT_FALSE(any.admits(host, "10.0.0.9")) << host;
  EXPECT_TRUE(any.admits("evil.example", "unix"));
  const host_names six({"[0:0::1]:7360"}, {});
  EXPECT_TRUE(six.admits("[::1]:7360", "::1"));
  EXPECT_FALSE(six.admits("[::2]", "::1"));
}

TEST(HostNames, Loopback) {
  for (const auto* host : {"127.0.0.1", "127.1.2.3", "::1", "localhost", "unix", "/run/s"})
    EXPECT_TRUE(is_loopback(host)) << host;
  for (const auto* host : {"0.0.0.0", "::", "10.0.0.1", "127.evil.example", "", "128.0.0.1"})
    EXPECT_FALSE(is_loopback(host)) << host;
}

}  // namespace
