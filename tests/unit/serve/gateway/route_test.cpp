// Routes and keys: rules 9 and 15 of docs/gateway.md.

#include "serve/gateway/route.hpp"

#include "serve/gateway/forwarding.hpp"
#include "serve/gateway/route_key.hpp"
#include "unit/serve/gateway/request_fields.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace {

using namespace holdfast::detail;
using namespace holdfast::detail::serve::gateway;
using holdfast::test::request_fields;
using holdfast::test::response_of;
/// The API has routes, too.
using route = holdfast::detail::serve::gateway::route;

std::string route_name(const route_table& table, std::string_view host, std::string_view path) {
  const auto* const match = table.find(host, path);
  return match == nullptr ? "none" : match->name;
}

TEST(GatewayRoutes, TheLongestPathWins) {
  const route_table table(
      std::vector<route>{{.name = "all"},
                         {.name = "api", .path = "/api"},
                         {.name = "countries", .path = "/api/countries/"},
                         {.name = "shop", .path = "/api", .host = "shop.example"}});
  EXPECT_EQ(route_name(table, "a", "/"), "all");
  EXPECT_EQ(route_name(table, "a", "/apix"), "all");
  EXPECT_EQ(route_name(table, "a", "/api"), "api");
  EXPECT_EQ(route_name(table, "a", "/api/x"), "api");
  EXPECT_EQ(route_name(table, "a", "/api/countries/FR"), "countries");
  EXPECT_EQ(route_name(table, "a", "/api/countries"), "countries");
  EXPECT_EQ(route_name(table, "Shop.Example:8080", "/api/x"), "shop");
  EXPECT_EQ(route_name(table, "shop.example", "/api/countries/FR"), "countries");
  EXPECT_EQ(
      route_name(route_table(std::vector{route{.name = "v6", .host = "[::1]"}}), "[::1]:80", "/"),
      "v6");
}

TEST(GatewayRoutes, NoRouteForTheHost) {
  const route_table table(std::vector{route{.name = "shop", .host = "shop.example"}});
  EXPECT_EQ(route_name(table, "other.example", "/"), "none");
  EXPECT_EQ(route_name(table, "", "/"), "none");
}

struct GatewayKeys : ::testing::Test {
  route_keys keys{"a secret"};
  route rules{.name = "r"};

  std::string key(std::string_view target, const http::fields& request,
                  std::string_view host = "a") const {
    const auto parsed = http::target::parse(target);
    return parsed ? keys.of_request(rules, source_of(*parsed, host), request) : "refused";
  }
};

TEST_F(GatewayKeys, TheKeyIsWhatIsForwarded) {
  const request_fields none{};
  EXPECT_EQ(key("/a%7Eb/./c?x=1", none), key("/a~b/c?x=1", none));
  EXPECT_NE(key("/a?x=1", none), key("/a?x=2", none));
  EXPECT_NE(key("/a", none), key("/a?", none));
  EXPECT_EQ(key("/a", none, "one"), key("/a", none, "two"));
  for (const char* const target : {"/a%2Fb", "/a%5Cb", "/a%00", "/a/../../b", "/a?%00"})
    EXPECT_EQ(key(target, none), "refused") << target;
  rules.forward_host = true;
  EXPECT_NE(key("/a", none, "one"), key("/a", none, "two"));
  EXPECT_EQ(key("/a", none, "ONE:80"), key("/a", none, "one:80"));
  EXPECT_NE(key("/a", none, "one:80"), key("/a", none, "one:81"));
}

TEST_F(GatewayKeys, IgnoredParametersAreNotForwarded) {
  rules.ignored_parameters = {"utm_*", "ref"};
  const auto target = http::target::parse("/a?utm_source=x&id=1&ref=y&refs=2");
  ASSERT_TRUE(target);
  EXPECT_EQ(target_text(rules, source_of(*target, "a")), "/a?id=1&refs=2");
  const auto only = http::target::parse("/a?utm_source=x");
  ASSERT_TRUE(only);
  EXPECT_EQ(target_text(rules, source_of(*only, "a")), "/a");
}

TEST_F(GatewayKeys, FieldsOfVaryBelongToTheKey) {
  const request_fields german{{"Accept-Language", "de"}};
  const request_fields french{{"accept-language", "fr"}};
  EXPECT_EQ(key("/a", german), key("/a", french));
  rules.vary = {"accept-language", "x-tier"};
  EXPECT_NE(key("/a", german), key("/a", french));
  // The end of one value is not the beginning of the next.
  EXPECT_NE(key("/a", request_fields{{"accept-language", "de\nx-tier=1"}}),
            key("/a", request_fields{{"accept-language", "de"}, {"x-tier", "1"}}));
  EXPECT_NE(key("/a", request_fields{}), key("/a", request_fields{{"accept-language", ""}}));
  EXPECT_NO_THROW((void)key("/a", request_fields{{"accept-language", "\xFF\xFE"}}));
}

TEST_F(GatewayKeys, Rule9FieldsThatConnectionNamesAreNotForwardedSoTheyAreNotInTheKey) {
  rules.vary = {"x-tenant"};
  const request_fields hidden{{"X-Tenant", "acme"}, {"Connection", "close, X-TENANT"}};
  EXPECT_EQ(key("/a", hidden), key("/a", request_fields{}));
  EXPECT_NE(key("/a", hidden), key("/a", request_fields{{"X-Tenant", "acme"}}));
}

TEST_F(GatewayKeys, CredentialsAreHashed) {
  rules.vary = {"authorization", "cookie"};
  const request_fields alice{{"Authorization", "Bearer alice-secret"},
                             {"Cookie", "s=alice-secret"}};
  const request_fields bob{{"Authorization", "Bearer bob"}};
  EXPECT_NE(key("/a", alice), key("/a", bob));
  EXPECT_EQ(key("/a", alice).find("alice-secret"), std::string::npos);
  EXPECT_NE(keyed_hash("one", "text"), keyed_hash("two", "text"));
  EXPECT_EQ(keyed_hash("one", "text").size(), 32U);
}

TEST_F(GatewayKeys, AcceptEncodingIsGzipOrNothing) {
  const auto accepted = [](std::string_view value) {
    return accepts_gzip(request_fields{{"Accept-Encoding", value}});
  };
  EXPECT_TRUE(accepted("br, gzip;q=0.5"));
  EXPECT_TRUE(accepted("*"));
  EXPECT_TRUE(accepted("GZIP"));
  EXPECT_FALSE(accepted("gzip;q=0"));
  EXPECT_FALSE(accepted("gzip; q=0.00"));
  EXPECT_FALSE(accepted("br"));
  EXPECT_FALSE(accepts_gzip(request_fields{}));
  EXPECT_EQ(key("/a", request_fields{{"Accept-Encoding", "gzip, br"}}),
            key("/a", request_fields{{"Accept-Encoding", "deflate, gzip"}}));
  EXPECT_NE(key("/a", request_fields{{"Accept-Encoding", "gzip"}}), key("/a", request_fields{}));
}

TEST_F(GatewayKeys, AllAnswersOfATargetCanBeInvalidated) {
  const auto target = http::target::parse("/a?x=1");
  ASSERT_TRUE(target);
  const auto source = source_of(*target, "a");
  EXPECT_EQ(keys.of_target(rules, source),
            (std::vector{key("/a?x=1", request_fields{}),
                         key("/a?x=1", request_fields{{"Accept-Encoding", "gzip"}})}));
  rules.vary = {"accept-language"};
  EXPECT_EQ(keys.of_target(rules, source),
            std::vector{route_keys::invalidation_key(rules, source)});
}

TEST(GatewayForwarding, HopByHopFieldsEndHere) {
  const request_fields request{{"Host", "a"},
                               {"Connection", "close, X-Internal"},
                               {"X-Internal", "1"},
                               {"Keep-Alive", "5"},
                               {"Proxy-Authorization", "Basic x"},
                               {"TE", "trailers"},
                               {"Upgrade", "h2c"},
                               {"Expect", "100-continue"},
                               {"Accept", "text/html"},
                               {"Accept-Encoding", "br, gzip"},
                               {"X-Forwarded-Host", "evil"},
                               {"X-Original-URL", "/admin"},
                               {"X-Rewrite-URL", "/admin"},
                               {"X-HTTP-Method-Override", "DELETE"},
                               {"X-Forwarded-For", "1.2.3.4"},
                               {"Via", "1.0 before"},
                               {"If-None-Match", "\"a\""},
                               {"If-Modified-Since", "Sun, 06 Nov 1994 08:49:37 GMT"},
                               {"Range", "bytes=0-1"}};
  const client_facts client{.address = "10.0.0.7", .host = "a"};
  EXPECT_EQ(forwarded_request({.name = "r"}, "GET", request, client).text(),
            "Accept: text/html\r\nRange: bytes=0-1\r\nAccept-Encoding: gzip\r\n"
            "Via: 1.0 before, 1.1 holdfast\r\nForwarded: for=10.0.0.7;proto=http\r\n"
            "X-Forwarded-For: 10.0.0.7\r\nX-Forwarded-Proto: http\r\n");
  const auto of_post = forwarded_request({.name = "r"}, "POST", request, client);
  EXPECT_TRUE(of_post.has("If-None-Match"));
}

TEST(GatewayForwarding, AProxyOfTheOwnerIsBelieved) {
  const request_fields request{
      {"X-Forwarded-For", "1.2.3.4"}, {"X-Forwarded-Proto", "https"}, {"Forwarded", "for=1.2.3.4"}};
  const auto block =
      forwarded_request({.name = "r", .forward_host = true}, "GET", request,
                        {.address = "fe80::1", .host = "shop.example", .trusted = true});
  EXPECT_EQ(block.find("X-Forwarded-For"), "1.2.3.4, fe80::1");
  EXPECT_EQ(block.find("X-Forwarded-Proto"), "https");
  EXPECT_EQ(block.find("Forwarded"),
            "for=1.2.3.4, for=\"[fe80::1]\";proto=http;host=\"shop.example\"");
  EXPECT_EQ(block.find("X-Forwarded-Host"), "shop.example");
}

TEST(GatewayForwarding, ResponsesLoseTheFieldsOfTheirConnection) {
  const request_fields response{
      {"Connection", "X-Trace"}, {"X-Trace", "1"},  {"Transfer-Encoding", "chunked"},
      {"Content-Length", "5"},   {"ETag", "\"a\""}, {"Proxy-Authenticate", "Basic"}};
  EXPECT_EQ(passed_response(response), response_of({{"ETag", "\"a\""}}));
}

}  // namespace
