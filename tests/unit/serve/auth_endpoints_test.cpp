// /v1/session, /v1/tokens and /v1/audit over HTTP.

#include "unit/serve/auth_fixture.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <string>
#include <utility>

namespace {

using namespace holdfast;
using namespace holdfast::detail::serve;
using namespace std::chrono_literals;
using test::auth_server;
using test::auth_state;
using test::bearer;
using test::cookie_of_answer;
using test::status_of_answer;
using test::text_between;

const std::string own_page = "Sec-Fetch-Site: same-origin\r\n";

class AuthEndpoints : public ::testing::Test {
 protected:
  auth_state state{};
  auth_server server{state};

  std::string add(token_settings settings) {
    const auto token = add_token(server.auth().database(), std::move(settings));
    server.auth().reload();
    return token.secret;
  }
  std::string sign_in(const std::string& secret) {
    return server.post("/v1/session", own_page, "{\"token\":\"" + secret + "\"}");
  }
};

TEST_F(AuthEndpoints, ASessionBeginsAndEnds) {
  const auto secret = add({.name = "ops", .role = role::operator_});
  const auto answer = sign_in(secret);
  ASSERT_EQ(status_of_answer(answer), 200) << answer;
  EXPECT_NE(answer.find("{\"name\":\"ops\",\"role\":\"operator\",\"tenant\":\"\",\"scopes\":[],"
                        "\"endsAt\":\"2026-01-01T12:00:00.000000Z\"}"),
            std::string::npos)
      << answer;
  EXPECT_EQ(answer.find(secret.substr(12)), std::string::npos);
  const auto cookie = cookie_of_answer(answer);
  const auto who = server.call("GET", "/v1/session", cookie);
  EXPECT_EQ(status_of_answer(who), 200);
  EXPECT_NE(who.find("\"name\":\"ops\""), std::string::npos);
  EXPECT_EQ(status_of_answer(server.call("GET", "/v1/tokens", cookie)), 403);      // not an admin
  EXPECT_EQ(status_of_answer(server.call("DELETE", "/v1/session", cookie)), 403);  // no origin
  const auto end = server.call("DELETE", "/v1/session", cookie + own_page);
  EXPECT_EQ(status_of_answer(end), 204);
  EXPECT_NE(end.find("Max-Age=0"), std::string::npos) << end;
  EXPECT_EQ(status_of_answer(server.call("GET", "/v1/session", cookie)), 401);
  EXPECT_EQ(status_of_answer(server.call("DELETE", "/v1/session", cookie + own_page)), 204);
}

TEST_F(AuthEndpoints, TheCookieHasItsFlags) {
  const auto secret = add({});
  const auto plain = text_between(sign_in(secret), "Set-Cookie: ", "\r\n");
  EXPECT_TRUE(plain.starts_with("holdfast=")) << plain;
  for (const auto* flag : {"; Path=/", "; HttpOnly", "; SameSite=Strict", "; Max-Age=43200"})
    EXPECT_NE(plain.find(flag), std::string::npos) << plain;
  EXPECT_EQ(plain.find("Secure"), std::string::npos);
  EXPECT_EQ(plain.find("Domain"), std::string::npos);
  auth_server encrypted(state, {.https = true});
  const auto answer = encrypted.post("/v1/session", own_page, "{\"token\":\"" + secret + "\"}");
  const auto cookie = text_between(answer, "Set-Cookie: ", "\r\n");
  EXPECT_TRUE(cookie.starts_with("__Host-holdfast=")) << answer;
  EXPECT_NE(cookie.find("; Secure"), std::string::npos) << cookie;
  EXPECT_EQ(cookie.find("Domain"), std::string::npos);
}

TEST_F(AuthEndpoints, SignInTakesJsonOfItsOwnPageOnly) {
  const auto secret = add({});
  const auto body = "{\"token\":\"" + secret + "\"}";
  EXPECT_EQ(status_of_answer(server.post("/v1/session", "Sec-Fetch-Site: cross-site\r\n", body)),
            403);
  EXPECT_EQ(status_of_answer(server.post("/v1/session", "Origin: http://evil.example\r\n", body)),
            403);
  EXPECT_EQ(status_of_answer(server.call("POST", "/v1/session",
                                         own_page + "Content-Type: text/plain\r\n", body)),
            415);
  for (const auto* wrong : {"", "[]", "{}", "{\"token\":1}", "{\"token\":\"a\",\"link\":\"b\"}",
                            "{\"token\":\"a\",\"x\":1}"}) {
    state.clock->advance(1min);
    const auto answer = server.post("/v1/session", own_page, wrong);
    EXPECT_EQ(status_of_answer(answer), 400) << wrong << answer;
  }
}

TEST_F(AuthEndpoints, SignInIsThrottled) {
  const auto secret = add({});
  for (int i = 0; i < 5; ++i) {
    const auto answer = sign_in("hf_aaaaaaaa_planted-secret");
    EXPECT_EQ(status_of_answer(answer), 401);
    EXPECT_EQ(answer.find("planted-secret"), std::string::npos);
  }
  const auto refused = sign_in(secret);
  EXPECT_EQ(status_of_answer(refused), 429);
  EXPECT_EQ(text_between(refused, "Retry-After: ", "\r\n"), "12");
  EXPECT_TRUE(cookie_of_answer(refused).empty());
  // Requests with a token are not throttled.
  EXPECT_EQ(status_of_answer(server.call("GET", "/v1/session", bearer(secret))), 200);
  state.clock->advance(12s);
  EXPECT_EQ(status_of_answer(sign_in(secret)), 200);
}

TEST_F(AuthEndpoints, TheLinkOfTheFirstStartSignsInOnce) {
  const auto credentials = server.auth().create_first_credentials("http://x");
  const auto secret = credentials->link.substr(credentials->link.find('=') + 1);
  const auto body = "{\"link\":\"" + secret + "\"}";
  const auto answer = server.post("/v1/session", own_page, body);
  ASSERT_EQ(status_of_answer(answer), 200) << answer;
  const auto cookie = cookie_of_answer(answer);
  EXPECT_EQ(status_of_answer(server.call("GET", "/v1/tokens", cookie)), 200);
  EXPECT_EQ(status_of_answer(server.post("/v1/session", own_page, body)), 401);
}

TEST_F(AuthEndpoints, ASecondSignInEndsTheSessionBefore) {
  const auto secret = add({});
  const auto cookie = cookie_of_answer(sign_in(secret));
  const auto second =
      server.post("/v1/session", own_page + cookie, "{\"token\":\"" + secret + "\"}");
  EXPECT_EQ(status_of_answer(second), 200);
  EXPECT_EQ(status_of_answer(server.call("GET", "/v1/session", cookie)), 401);
  EXPECT_EQ(status_of_answer(server.call("GET", "/v1/session", cookie_of_answer(second))), 200);
}

TEST_F(AuthEndpoints, AdminsAddListAndRevokeTokens) {
  const auto admin = bearer(add({.name = "root", .role = role::admin}));
  const auto added = server.post(
      "/v1/tokens", admin,
      R"({"name":"shop","role":"app","scopes":["outbox:orders:publish"],"tenant":"acme","expiresIn":"1h","rate":"5/s"})");
  ASSERT_EQ(status_of_answer(added), 201) << added;
  EXPECT_NE(added.find("Cache-Control: no-store"), std::string::npos);
  const auto secret = text_between(added, "\"token\":\"", "\"");
  const auto id = text_between(added, "Location: /v1/tokens/", "\r\n");
  EXPECT_EQ(token_id_of(secret), id);
  EXPECT_EQ(status_of_answer(server.call("GET", "/v1/session", bearer(secret))), 200);
  const auto list = server.call("GET", "/v1/tokens", admin);
  EXPECT_NE(list.find("\"name\":\"shop\",\"role\":\"app\",\"scopes\":[\"outbox:orders:publish\"],"
                      "\"tenant\":\"acme\",\"rate\":\"5/s\",\"state\":\"active\""),
            std::string::npos)
      << list;
  EXPECT_EQ(list.find(secret.substr(12)), std::string::npos);
  EXPECT_NE(list.find("\"lastUsedAt\":\"2026-01-01T"), std::string::npos) << list;
  EXPECT_EQ(status_of_answer(server.call("DELETE", "/v1/tokens/" + id, admin)), 204);
  EXPECT_EQ(status_of_answer(server.call("GET", "/v1/session", bearer(secret))), 401);
  EXPECT_EQ(status_of_answer(server.call("DELETE", "/v1/tokens/zzzzzzzz", admin)), 404);
  EXPECT_EQ(status_of_answer(server.call("DELETE", "/v1/tokens/root", admin)), 404);  // no id
}

TEST_F(AuthEndpoints, TokensAreListedInPages) {
  const auto admin = bearer(add({.name = "root", .role = role::admin}));
  (void)add({});
  (void)add({});
  const auto first = server.call("GET", "/v1/tokens?limit=2", admin);
  const auto next = text_between(first, "\"next\":\"", "\"");
  ASSERT_EQ(next.size(), 8U) << first;
  const auto second = server.call("GET", "/v1/tokens?limit=2&after=" + next, admin);
  EXPECT_EQ(second.find("\"next\""), std::string::npos);
  EXPECT_EQ(status_of_answer(second), 200);
  EXPECT_EQ(status_of_answer(server.call("GET", "/v1/tokens?limit=0", admin)), 400);
  EXPECT_EQ(status_of_answer(server.call("GET", "/v1/tokens?limit=1001", admin)), 400);
}

TEST_F(AuthEndpoints, InvalidTokensAreRefused) {
  const auto admin = bearer(add({.name = "root", .role = role::admin}));
  for (const auto* body :
       {"{\"role\":\"root\"}", "{\"expiresIn\":\"99999999999d\"}", "{\"expiresIn\":\"0s\"}",
        "{\"expiresIn\":90}", "{\"scopes\":\"a\"}", "{\"scope\":[\"a\"]}", "{\"rate\":5}",
        "{\"rate\":\"5\"}", "{\"role\":\"admin\",\"tenant\":\"acme\"}", "{\"name\":\"\\u0000\"}"}) {
    const auto answer = server.post("/v1/tokens", admin, body);
    EXPECT_EQ(status_of_answer(answer), 400) << body << answer;
  }
  EXPECT_EQ(status_of_answer(server.post("/v1/tokens", admin, "{\"name\":\"root\"}")), 409);
}

TEST_F(AuthEndpoints, OnlyAdminsOfAllTenantsSeeTokensAndTheAuditLog) {
  for (const auto each : {role::viewer, role::operator_, role::application}) {
    const auto token = bearer(add({.role = each}));
    for (const auto* path : {"/v1/tokens", "/v1/audit"})
      EXPECT_EQ(status_of_answer(server.call("GET", path, token)), 403) << path;
    EXPECT_EQ(status_of_answer(server.post("/v1/tokens", token, "{}")), 403);
    EXPECT_EQ(status_of_answer(server.call("DELETE", "/v1/tokens/zzzzzzzz", token)), 403);
  }
  EXPECT_EQ(status_of_answer(server.call("GET", "/v1/tokens")), 401);
  EXPECT_EQ(status_of_answer(server.call("GET", "/v1/audit")), 401);
}

TEST_F(AuthEndpoints, TheAuditLogHasWhoDidWhat) {
  const auto root = add({.name = "root", .role = role::admin});
  const auto admin = bearer(root);
  (void)server.post("/v1/tokens", admin, "{\"name\":\"shop\"}");
  (void)sign_in(root);
  (void)sign_in("hf_wrong");
  const auto all = server.call("GET", "/v1/audit", admin);
  EXPECT_NE(all.find("\"caller\":\"root\",\"address\":\"127.0.0.1\",\"tenant\":\"\","
                     "\"action\":\"token.add\",\"subject\":\"shop\",\"count\":1,"
                     "\"result\":\"done\""),
            std::string::npos)
      << all;
  EXPECT_NE(all.find("\"caller\":\"unknown\",\"address\":\"127.0.0.1\",\"tenant\":\"\","
                     "\"action\":\"session.start\",\"subject\":\"token\",\"count\":0,"
                     "\"result\":\"refused: 401\""),
            std::string::npos)
      << all;
  EXPECT_EQ(all.find(root.substr(12)), std::string::npos);
  EXPECT_EQ(all.find("hf_wrong"), std::string::npos);
  const auto one = server.call("GET", "/v1/audit?action=session.start&limit=1", admin);
  const auto next = text_between(one, "\"next\":\"", "\"");
  EXPECT_EQ(next.size(), 32U);
  const auto rest = server.call("GET", "/v1/audit?action=session.start&after=" + next, admin);
  EXPECT_NE(rest.find("\"result\":\"done\""), std::string::npos) << rest;
  EXPECT_EQ(rest.find("\"next\""), std::string::npos);
  const auto none = server.call("GET", "/v1/audit?from=2027-01-01T00:00:00Z", admin);
  EXPECT_NE(none.find("{\"items\":[]}"), std::string::npos) << none;
}

TEST_F(AuthEndpoints, NoSecretIsInTheLogOrTheDatabase) {
  const auto root = add({.name = "root", .role = role::admin});
  const auto cookie = cookie_of_answer(sign_in(root));
  (void)server.call("GET", "/v1/tokens?after=" + root, bearer(root));
  (void)server.post("/v1/tokens", bearer(root), "{\"name\":\"" + root + "\"}");
  (void)sign_in(root + "x");
  {
    auto session = server.auth().database().write("test");
    session.connection().run("DROP TABLE HOLDFAST_SERVE_SESSION");
  }
  const auto failed = sign_in(root);
  EXPECT_EQ(status_of_answer(failed), 503) << failed;
  const auto value = text_between(cookie, "holdfast=", "\r");
  for (const auto& secret : {root.substr(12), value}) {
    EXPECT_EQ(state.log.text().find(secret), std::string::npos) << state.log.text();
    EXPECT_EQ(failed.find(secret), std::string::npos);
  }
}

/// Keeps what is published.
class kept_events final : public event_sink {
 public:
  void publish(std::string_view kind, std::string json) noexcept override {
    const std::scoped_lock lock(mutex_);
    text_.append(kind).append(" ").append(json).append("\n");
  }
  [[nodiscard]] std::string text() {
    const std::scoped_lock lock(mutex_);
    return text_;
  }

 private:
  std::mutex mutex_{};
  std::string text_{};
};

TEST(AuthEvents, EntriesOfTheAuditLogArePublished) {
  auth_state state;
  kept_events events;
  auth_server server(state, {}, &events);
  server.auth().audit().record({.caller = "a", .action = "b"});
  EXPECT_TRUE(events.text().starts_with("audit {\"id\":\"")) << events.text();
  EXPECT_NE(events.text().find("\"caller\":\"a\""), std::string::npos);
}

}  // namespace
