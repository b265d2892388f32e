// Who sends a request: tokens, sessions, proxies, open servers; requests of foreign pages.

#include <holdfast/error.hpp>

#include "serve/auth/identity.hpp"
#include "serve/auth/request_origin.hpp"
#include "support/failure_of.hpp"
#include "unit/serve/auth_fixture.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <variant>

namespace {

using namespace holdfast;
using namespace holdfast::detail::serve;
using namespace std::chrono_literals;
using test::auth_state;
using test::built_request;
using test::failure_of;

class AuthRequests : public ::testing::Test {
 protected:
  auth_state state{};

  static std::variant<caller, server_response> ask(identity& auth, built_request& request) {
    return auth.requests().identify(request.view());
  }
  /// 0 for an identified caller, 1 for another, else the status of the refusal.
  static int verdict(identity& auth, built_request&& request) {
    const auto result = ask(auth, request);
    if (const auto* refusal = std::get_if<server_response>(&result)) return refusal->status;
    return std::get<caller>(result).identified ? 0 : 1;
  }
  static std::string token(identity& auth, token_settings settings) {
    auto added = add_token(auth.database(), std::move(settings));
    auth.reload();
    return added.secret;
  }
};

TEST_F(AuthRequests, ABearerTokenNamesItsCaller) {
  identity auth(state.options());
  const auto secret = token(auth, {.name = "shop",
                                   .role = role::application,
                                   .scopes = {"outbox:orders:publish"},
                                   .tenant = "acme"});
  built_request request("POST", {{"authorization", "bEARER " + secret}}, "", "10.1.2.3");
  const auto result = ask(auth, request);
  ASSERT_TRUE(std::holds_alternative<caller>(result));
  const auto& actor = std::get<caller>(result);
  EXPECT_EQ(actor.name, "shop");
  EXPECT_EQ(actor.role, role::application);
  EXPECT_EQ(actor.tenant, "acme");
  EXPECT_EQ(actor.address, "10.1.2.3");
  EXPECT_TRUE(actor.has_scope("outbox:orders:publish"));
  EXPECT_FALSE(actor.has_scope("outbox:payments:publish"));
  EXPECT_FALSE(actor.has_scope("outbox:orders"));
}

TEST_F(AuthRequests, OtherAuthorizationsAreRefused) {
  identity auth(state.options());
  const auto secret = token(auth, {});
  EXPECT_EQ(verdict(auth, {"GET", {{"Authorization", "Bearer " + secret}}}), 0);
  EXPECT_EQ(verdict(auth, {"GET", {{"Authorization", secret}}}), 401);
  EXPECT_EQ(verdict(auth, {"GET", {{"Authorization", ""}}}), 401);
  EXPECT_EQ(verdict(auth, {"GET", {{"Authorization", "Bearer"}}}), 401);
  EXPECT_EQ(verdict(auth, {"GET", {{"Authorization", "Basic dTpw"}}}), 401);
  EXPECT_EQ(verdict(auth, {"GET", {{"Authorization", "Bearer " + secret + " "}}}), 401);
  EXPECT_EQ(
      verdict(
          auth,
          {"GET", {{"Authorization", "Bearer " + secret}, {"Authorization", "Bearer " + secret}}}),
      400);
  EXPECT_EQ(verdict(auth, {"GET", {}}), 1);
}

TEST_F(AuthRequests, RefusalsSayWhyAndRepeatNoSecret) {
  identity auth(state.options());
  const auto secret = token(auth, {.name = "old", .lifetime = 1h});
  state.clock->advance(2h);
  for (const auto& sent : {secret, make_token_text().secret, std::string("hf_planted-secret")}) {
    built_request request("GET", {{"Authorization", "Bearer " + sent}});
    const auto result = ask(auth, request);
    const auto& refusal = std::get<server_response>(result);
    EXPECT_EQ(refusal.status, 401);
    EXPECT_TRUE(refusal.fields.has("WWW-Authenticate"));
    EXPECT_EQ(refusal.body.find(sent), std::string::npos);
    EXPECT_EQ((refusal.body + refusal.fields.text()).find(sent.substr(3)), std::string::npos);
  }
  EXPECT_EQ(state.log.text().find(secret.substr(12)), std::string::npos);
}

TEST_F(AuthRequests, ATokenWithARateIsLimited) {
  identity auth(state.options());
  const auto secret = token(auth, {.rate = 2});
  const auto send = [&] { return verdict(auth, {"GET", {{"Authorization", "Bearer " + secret}}}); };
  for (int i = 0; i < 4; ++i) EXPECT_EQ(send(), 0) << i;
  built_request request("GET", {{"Authorization", "Bearer " + secret}});
  const auto result = ask(auth, request);
  const auto& refusal = std::get<server_response>(result);
  EXPECT_EQ(refusal.status, 429);
  EXPECT_EQ(refusal.fields.find("Retry-After"), "1");
  auth.reload();  // does not fill the bucket
  EXPECT_EQ(send(), 429);
  state.clock->advance(500ms);
  EXPECT_EQ(send(), 0);
  EXPECT_EQ(send(), 429);
}

TEST_F(AuthRequests, OriginsOfPages) {
  const auto of = [](built_request&& request, bool https = false) {
    return origin_of(request.view(), https);
  };
  EXPECT_EQ(of({"POST", {{"Sec-Fetch-Site", "same-origin"}}}), request_origin::own);
  EXPECT_EQ(of({"POST", {{"Sec-Fetch-Site", "same-site"}}}), request_origin::foreign);
  EXPECT_EQ(of({"POST", {{"Sec-Fetch-Site", "cross-site"}}}), request_origin::foreign);
  EXPECT_EQ(of({"POST", {{"Sec-Fetch-Site", "Same-Origin"}}}), request_origin::foreign);
  EXPECT_EQ(of({"GET", {{"Sec-Fetch-Site", "none"}}}), request_origin::navigation);
  EXPECT_EQ(of({"GET", {{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Mode", "navigate"}}}),
            request_origin::navigation);
  EXPECT_EQ(of({"POST", {{"Sec-Fetch-Site", "same-origin"}, {"Sec-Fetch-Site", "cross-site"}}}),
            request_origin::foreign);
  // The word of the browser counts, not the Origin beside it.
  EXPECT_EQ(of({"POST", {{"Sec-Fetch-Site", "cross-site"}, {"Origin", "http://127.0.0.1:7360"}}}),
            request_origin::foreign);
  EXPECT_EQ(of({"POST", {{"Origin", "http://127.0.0.1:7360"}}}), request_origin::own);
  EXPECT_EQ(of({"POST", {{"Origin", "https://127.0.0.1:7360"}}}), request_origin::own);  // a proxy
  EXPECT_EQ(of({"POST", {{"Origin", "http://127.0.0.1:7360"}}}, true), request_origin::foreign);
  EXPECT_EQ(of({"POST", {{"Origin", "https://127.0.0.1:7360"}}}, true), request_origin::own);
  EXPECT_EQ(of({"POST", {{"Origin", "http://127.0.0.1:8080"}}}), request_origin::foreign);
  EXPECT_EQ(of({"POST", {{"Origin", "http://127.0.0.1"}}}), request_origin::foreign);
  EXPECT_EQ(of({"POST", {{"Origin", "http://127.0.0.1:7360.evil"}}}), request_origin::foreign);
  EXPECT_EQ(of({"POST", {{"Origin", "null"}}}), request_origin::foreign);
  EXPECT_EQ(of({"POST", {}}), request_origin::unknown);
}

TEST_F(AuthRequests, ASessionNeedsARequestOfItsOwnPage) {
  identity auth(state.options());
  const auto secret = token(auth, {.name = "ops", .role = role::operator_});
  const auto id = std::string(*token_id_of(secret));
  const auto value = "holdfast=" + auth.sessions().start(auth.database(), id, "ops");
  const std::string json = "application/json";
  const auto with = [&](std::string_view method, std::string_view site, std::string_view type,
                        std::string body) {
    if (type.empty())
      return verdict(auth, {method, {{"Cookie", value}, {"Sec-Fetch-Site", site}}, body});
    return verdict(
        auth,
        {method, {{"Cookie", value}, {"Sec-Fetch-Site", site}, {"Content-Type", type}}, body});
  };
  EXPECT_EQ(verdict(auth, {"GET", {{"Cookie", value}}}), 0);
  EXPECT_EQ(with("POST", "same-origin", json, "{}"), 0);
  EXPECT_EQ(with("POST", "same-origin", "Application/JSON; charset=utf-8", "{}"), 0);
  EXPECT_EQ(with("DELETE", "same-origin", "", ""), 0);
  // A form of another page, with each of the types that forms have, and fetch.
  for (const auto* type : {"application/x-www-form-urlencoded", "multipart/form-data; boundary=x",
                           "text/plain", "application/json", ""}) {
    EXPECT_EQ(with("POST", "cross-site", type, "{}"), 403) << type;
    EXPECT_EQ(with("POST", "same-site", type, "{}"), 403) << type;
    EXPECT_EQ(with("POST", "none", type, "{}"), 403) << type;
  }
  for (const auto* type :
       {"text/plain", "application/json-patch", "application/json, text/plain", ""})
    EXPECT_EQ(with("POST", "same-origin", type, "{}"), 403) << type;
  // A DELETE with content, and one of another page.
  EXPECT_EQ(with("DELETE", "same-origin", "text/plain", "x"), 403);
  EXPECT_EQ(with("DELETE", "cross-site", "", ""), 403);
  // An image or a script of another page.
  EXPECT_EQ(with("GET", "cross-site", "", ""), 403);
  // Old browsers send an Origin only; a program sends neither.
  EXPECT_EQ(
      verdict(auth,
              {"POST",
               {{"Cookie", value}, {"Origin", "http://127.0.0.1:7360"}, {"Content-Type", json}},
               "{}"}),
      0);
  EXPECT_EQ(
      verdict(auth, {"POST",
                     {{"Cookie", value}, {"Origin", "http://evil.example"}, {"Content-Type", json}},
                     "{}"}),
      403);
  EXPECT_EQ(verdict(auth, {"POST", {{"Cookie", value}, {"Content-Type", json}}, "{}"}), 403);
  // A token needs none of it.
  EXPECT_EQ(verdict(auth, {"POST",
                           {{"Authorization", "Bearer " + secret},
                            {"Sec-Fetch-Site", "cross-site"},
                            {"Content-Type", "text/plain"}},
                           "x"}),
            0);
}

TEST_F(AuthRequests, AForeignPageCannotSignABrowserIn) {
  identity auth(state.options());
  EXPECT_EQ(verdict(auth, {"POST", {{"Sec-Fetch-Site", "cross-site"}}, "{}"}), 403);
  EXPECT_EQ(verdict(auth, {"POST", {{"Origin", "http://evil.example"}}, "{}"}), 403);
  EXPECT_EQ(
      verdict(auth, {"POST", {{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Mode", "navigate"}}}),
      403);
  EXPECT_EQ(verdict(auth, {"POST", {}, "{}"}), 1);
}

TEST_F(AuthRequests, SessionsEnd) {
  identity auth(state.options());
  const auto value = "holdfast=" + auth.sessions().start(auth.database(), "", "first-start");
  const auto send = [&] { return verdict(auth, {"GET", {{"Cookie", value}}}); };
  state.clock->advance(29min);
  EXPECT_EQ(send(), 0);
  state.clock->advance(29min);
  EXPECT_EQ(send(), 0);  // the request before kept it
  state.clock->advance(30min);
  EXPECT_EQ(send(), 1);

  const auto busy = "holdfast=" + auth.sessions().start(auth.database(), "", "first-start");
  for (int i = 0; i < 12 * 4 - 1; ++i) {
    state.clock->advance(15min);
    ASSERT_EQ(verdict(auth, {"GET", {{"Cookie", busy}}}), 0) << i;
  }
  state.clock->advance(15min);
  EXPECT_EQ(verdict(auth, {"GET", {{"Cookie", busy}}}), 1);  // 12 hours
}

TEST_F(AuthRequests, ASessionEndsWithItsToken) {
  identity auth(state.options());
  const auto secret = token(auth, {.name = "ops", .role = role::operator_, .tenant = "acme"});
  const auto id = std::string(*token_id_of(secret));
  const auto value = "holdfast=" + auth.sessions().start(auth.database(), id, "ops");
  built_request request("GET", {{"Cookie", value}});
  const auto result = ask(auth, request);
  EXPECT_EQ(std::get<caller>(result).role, role::operator_);
  EXPECT_EQ(std::get<caller>(result).tenant, "acme");
  (void)revoke_token(auth.database(), id);
  auth.reload();
  EXPECT_EQ(verdict(auth, {"GET", {{"Cookie", value}}}), 1);
}

TEST_F(AuthRequests, CookiesOfTheWrongNameOrTwiceDoNotCount) {
  identity auth(state.options());
  identity tls(state.options({.https = true}));
  const auto value = auth.sessions().start(auth.database(), "", "first-start");
  tls.reload();
  EXPECT_EQ(verdict(auth, {"GET", {{"Cookie", "holdfast=" + value}}}), 0);
  EXPECT_EQ(verdict(tls, {"GET", {{"Cookie", "__Host-holdfast=" + value}}}), 0);
  // Another port or a page without TLS can set a cookie without the prefix.
  EXPECT_EQ(verdict(tls, {"GET", {{"Cookie", "holdfast=" + value}}}), 1);
  EXPECT_EQ(verdict(auth, {"GET", {{"Cookie", "__Host-holdfast=" + value}}}), 1);
  EXPECT_EQ(verdict(auth, {"GET", {{"Cookie", "holdfast=x; holdfast=" + value}}}), 1);
  EXPECT_EQ(verdict(auth, {"GET", {{"Cookie", "holdfast="}}}), 1);
  EXPECT_EQ(verdict(auth, {"GET", {{"Cookie", "holdfast=" + std::string(43, 'A')}}}), 1);
}

TEST_F(AuthRequests, AProxyNamesUsersFromItsAddressOnly) {
  identity auth(state.options(
      {.proxy = trusted_proxy{.field = "X-Forwarded-User",
                              .addresses = {"10.0.0.5", "unix"},
                              .roles = {{"alice", role::admin}, {"*", role::viewer}}}}));
  const auto user = [&](std::string_view peer, std::string_view name) {
    built_request request("GET", {{"X-Forwarded-User", name}}, "", peer);
    return ask(auth, request);
  };
  EXPECT_EQ(std::get<caller>(user("10.0.0.5", "alice")).role, role::admin);
  EXPECT_EQ(std::get<caller>(user("10.0.0.5", "alice")).name, "user:alice");
  EXPECT_EQ(std::get<caller>(user("unix", "bob")).role, role::viewer);
  for (const auto* peer : {"127.0.0.1", "10.0.0.50", "10.0.0.6", ""})
    EXPECT_FALSE(std::get<caller>(user(peer, "alice")).identified) << peer;
  for (const auto* name : {"", "a b", "a\x01", "\xC3\xA9"})
    EXPECT_EQ(std::get<server_response>(user("unix", name)).status, 403) << name;
  EXPECT_EQ(std::get<server_response>(user("unix", std::string(101, 'a'))).status, 403);
  EXPECT_EQ(
      verdict(auth,
              {"GET", {{"X-Forwarded-User", "bob"}, {"X-Forwarded-User", "alice"}}, "", "unix"}),
      403);
  // The user is added to requests of foreign pages, too.
  EXPECT_EQ(verdict(auth, {"POST",
                           {{"X-Forwarded-User", "alice"}, {"Sec-Fetch-Site", "cross-site"}},
                           "{}",
                           "unix"}),
            403);
  EXPECT_EQ(verdict(auth, {"POST", {{"X-Forwarded-User", "alice"}}, "{}", "unix"}), 403);
  EXPECT_EQ(verdict(auth, {"POST",
                           {{"X-Forwarded-User", "alice"},
                            {"Sec-Fetch-Site", "same-origin"},
                            {"Content-Type", "application/json"}},
                           "{}",
                           "unix"}),
            0);
}

TEST_F(AuthRequests, ACertificateNamesItsClient) {
  identity auth(state.options({.https = true}));
  const auto now = std::chrono::floor<std::chrono::seconds>(state.clock->now());
  const detail::net::peer_certificate shown{.names = {"dns:billing.example", "cn:billing"},
                                            .fingerprint = "sha256:00ff",
                                            .not_after = now + 1h};
  const auto request_with = [&](std::string_view method, built_request::field_list fields) {
    built_request request(method, fields, "{}");
    request.certificate = &shown;
    return ask(auth, request);
  };
  const auto status = [&](std::string_view method, built_request::field_list fields = {}) {
    const auto result = request_with(method, fields);
    if (const auto* refusal = std::get_if<server_response>(&result)) return refusal->status;
    return std::get<caller>(result).identified ? 0 : 1;
  };
  EXPECT_EQ(status("GET"), 1) << "no client is configured";

  const certificate_client billing{.name = "billing",
                                   .certificates = {"dns:other.example", "dns:billing.example"},
                                   .role = role::application,
                                   .scopes = {"outbox:orders:publish"},
                                   .tenant = "acme"};
  auth.set_clients({billing});
  const auto result = request_with("POST", {});
  ASSERT_TRUE(std::holds_alternative<caller>(result));
  const auto& actor = std::get<caller>(result);
  EXPECT_EQ(actor.name, "client:billing");
  EXPECT_TRUE(actor.identified);
  EXPECT_EQ(actor.role, role::application);
  EXPECT_EQ(actor.tenant, "acme");
  EXPECT_TRUE(actor.has_scope("outbox:orders:publish"));
  EXPECT_FALSE(actor.has_scope("outbox:payments:publish"));

  // A browser shows the certificate to this server for a page of another site, too.
  EXPECT_EQ(status("POST", {{"Sec-Fetch-Site", "cross-site"}}), 403);
  EXPECT_EQ(status("GET", {{"Sec-Fetch-Site", "cross-site"}}), 403);
  EXPECT_EQ(status("POST", {{"Origin", "https://elsewhere.example"}}), 403);
  EXPECT_EQ(status("POST", {{"Sec-Fetch-Site", "same-origin"}}), 0);

  // A token says more than the connection.
  const auto secret = token(auth, {.name = "ops", .role = role::operator_});
  const auto with_token = request_with("GET", {{"Authorization", "Bearer " + secret}});
  EXPECT_EQ(std::get<caller>(with_token).name, "ops");
  EXPECT_EQ(status("GET", {{"Authorization", "Bearer hf_wrong"}}), 401);

  auth.set_clients({{.name = "shop", .certificates = {"cn:shop"}}});
  const auto unknown = request_with("GET", {});
  EXPECT_EQ(std::get<server_response>(unknown).status, 401);
  EXPECT_NE(std::get<server_response>(unknown).body.find("sha256:00ff"), std::string::npos);
  auto by_fingerprint = billing;
  by_fingerprint.certificates = {"sha256:00ff"};
  auth.set_clients({by_fingerprint});
  EXPECT_EQ(status("GET"), 0);
  auth.set_clients({by_fingerprint, {.name = "second", .certificates = {"cn:billing"}}});
  EXPECT_EQ(status("GET"), 401) << "ambiguous";
  auth.set_clients({billing});
  state.clock->advance(1h);
  EXPECT_EQ(status("GET"), 0) << "the last second";
  state.clock->advance(1s);
  EXPECT_EQ(status("GET"), 401) << "the connection is older than the end of its certificate";
}

TEST_F(AuthRequests, AnOpenServerAdmitsUnknownCertificates) {
  identity auth(state.options({.https = true, .open = true}));
  const detail::net::peer_certificate shown{
      .names = {"cn:billing"}, .not_after = std::chrono::sys_days(std::chrono::year(2900) / 1 / 1)};
  built_request request("GET", {});
  request.certificate = &shown;
  auth.set_clients({{.name = "shop", .certificates = {"cn:shop"}}});
  EXPECT_EQ(std::get<caller>(ask(auth, request)).name, "local");
  auth.set_clients({{.name = "billing", .certificates = {"cn:billing"}, .role = role::viewer}});
  EXPECT_EQ(std::get<caller>(ask(auth, request)).role, role::viewer);
}

TEST(CertificateText, HasTheFormOfCertificates) {
  EXPECT_EQ(certificate_text("dns:Billing.Example"), "dns:billing.example");
  EXPECT_EQ(certificate_text("cn:Billing"), "cn:Billing");
  EXPECT_EQ(certificate_text("uri:spiffe://Shop"), "uri:spiffe://Shop");
  EXPECT_EQ(certificate_text("email:A@b"), "email:A@b");
  std::string digits;
  std::string pairs;
  for (int i = 0; i < 32; ++i) {
    digits += "ab";
    pairs += i == 0 ? "AB" : ":AB";
  }
  EXPECT_EQ(certificate_text("sha256:" + pairs), "sha256:" + digits);
  for (const auto& text : {std::string(), std::string("billing.example"), std::string("dns:"),
                           std::string("sha256:ab"), "sha256:" + digits + "g", "sha1:" + digits})
    EXPECT_EQ(failure_of([&] { (void)certificate_text(text); }).code(), errc::invalid_argument)
        << text;
}

TEST_F(AuthRequests, AUserWithoutARoleIsRefused) {
  identity auth(state.options({.proxy = trusted_proxy{.field = "X-Forwarded-User",
                                                      .addresses = {"unix"},
                                                      .roles = {{"alice", role::admin}}}}));
  EXPECT_EQ(verdict(auth, {"GET", {{"X-Forwarded-User", "bob"}}, "", "unix"}), 403);
  EXPECT_EQ(verdict(auth, {"GET", {}, "", "unix"}), 1);
}

TEST_F(AuthRequests, InvalidProxiesAreRefused) {
  for (const auto& proxy : {trusted_proxy{.field = "", .addresses = {"unix"}},
                            trusted_proxy{.field = "a b", .addresses = {"unix"}},
                            trusted_proxy{.field = "Cookie", .addresses = {"unix"}},
                            trusted_proxy{.field = "X-User", .addresses = {}}})
    EXPECT_EQ(failure_of([&] { const identity auth(state.options({.proxy = proxy})); }).code(),
              errc::invalid_argument);
}

TEST_F(AuthRequests, AnOpenServerIsOpenToThisMachineOnly) {
  identity auth(state.options({.open = true}));
  built_request request("GET", {});
  EXPECT_EQ(std::get<caller>(ask(auth, request)).role, role::admin);
  EXPECT_EQ(verdict(auth, {"POST", {}, "{}"}), 0);
  EXPECT_EQ(verdict(auth, {"POST", {}, "{}", "unix"}), 0);
  EXPECT_EQ(verdict(auth, {"POST", {}, "{}", "::1"}), 0);
  EXPECT_EQ(verdict(auth, {"POST", {}, "{}", "192.0.2.1"}), 1);
  EXPECT_EQ(verdict(auth, {"POST", {}, "{}", ""}), 1);
  // A page in a browser of this machine, and a proxy that forwards requests of others.
  EXPECT_EQ(verdict(auth, {"POST", {{"Sec-Fetch-Site", "cross-site"}}, "{}"}), 403);
  EXPECT_EQ(verdict(auth, {"GET", {{"Sec-Fetch-Site", "cross-site"}}}), 403);
  EXPECT_EQ(verdict(auth, {"POST", {{"Origin", "http://127.0.0.1:8080"}}, "{}"}), 403);
  EXPECT_EQ(verdict(auth, {"POST", {{"Sec-Fetch-Site", "same-origin"}}, "{}"}), 0);
  for (const auto* name : {"Forwarded", "X-Forwarded-For", "X-Real-IP", "Via"})
    EXPECT_EQ(verdict(auth, {"POST", {{name, "192.0.2.1"}}, "{}"}), 1) << name;
  // A wrong token is not taken for no token.
  EXPECT_EQ(verdict(auth, {"GET", {{"Authorization", "Bearer x"}}}), 401);
}

}  // namespace
