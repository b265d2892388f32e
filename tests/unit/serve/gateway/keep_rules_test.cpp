// What is kept, for how long, and for whom: rules 3 to 8 of docs/gateway.md.

#include "serve/gateway/keep_rules.hpp"

#include <holdfast/error.hpp>

#include "serve/gateway/freshness.hpp"
#include "serve/gateway/stored_response.hpp"
#include "unit/serve/gateway/request_fields.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace {

using namespace holdfast;
using namespace holdfast::detail::serve::gateway;
using namespace std::chrono_literals;
using test::request_fields;
using test::response_of;
/// The API has routes, too.
using route = holdfast::detail::serve::gateway::route;

const timestamp noon{std::chrono::sys_days(std::chrono::year(2026) / 11 / 15) + 12h};

struct GatewayRules : ::testing::Test {
  route rules{.name = "r", .max_payload = 100};

  [[nodiscard]] std::string kept(test::field_list response, test::field_list request = {},
                                 int status = 200, std::size_t size = 10) const {
    const auto decision = decide_keep(rules, request_facts::of("GET", request_fields(request)),
                                      status, response_of(response), size);
    const auto action = decision.action == keep_action::keep         ? "keep"
                        : decision.action == keep_action::invalidate ? "invalidate"
                                                                     : "pass";
    return std::string(action) + (decision.reason.empty() ? "" : " ") +
           std::string(decision.reason);
  }
  [[nodiscard]] std::string refusal(test::field_list response, test::field_list request = {},
                                    std::chrono::seconds age = 60s) const {
    return std::string(refusal_of(rules, request_facts::of("GET", request_fields(request)),
                                  response_of(response), noon, noon + age));
  }
};

TEST_F(GatewayRules, Rule3Failures) {
  for (const int status : {500, 502, 503, 504}) EXPECT_TRUE(is_failure(rules, status)) << status;
  for (const int status : {200, 404, 429, 501, 505}) EXPECT_FALSE(is_failure(rules, status));
  rules.failures = {429};
  EXPECT_TRUE(is_failure(rules, 429));
}

TEST_F(GatewayRules, Rule4GoodAnswers) {
  for (const int status : {200, 203, 204, 300, 301, 308, 404, 410})
    EXPECT_EQ(kept({}, {}, status), "keep") << status;
  for (const int status : {302, 307, 304, 400, 401, 403, 429, 501})
    EXPECT_EQ(kept({}, {}, status), "pass status") << status;
  EXPECT_EQ(kept({}, {}, 206), "pass partial");
  EXPECT_EQ(kept({}, {}, 200, 101), "invalidate too-large");
}

TEST_F(GatewayRules, Rule5NotKept) {
  EXPECT_EQ(kept({{"Cache-Control", "no-store"}}), "invalidate no-store");
  EXPECT_EQ(kept({}, {{"Cache-Control", "no-store"}}), "pass request-no-store");
  EXPECT_EQ(kept({{"Cache-Control", "private"}}), "invalidate private");
  EXPECT_EQ(kept({{"Set-Cookie", "a=b"}}), "invalidate set-cookie");
  EXPECT_EQ(kept({{"Vary", "*"}}), "invalidate vary");
  EXPECT_EQ(kept({{"Vary", "Accept-Encoding, Accept-Language"}}), "invalidate vary");
  EXPECT_EQ(kept({{"Vary", "Accept-Encoding"}}), "keep");
  EXPECT_EQ(kept({}, {{"Authorization", "x"}}), "pass authorization");
  EXPECT_EQ(kept({}, {{"Cookie", "x"}}), "pass cookie");
  for (const char* const shared : {"public", "s-maxage=5", "must-revalidate"})
    EXPECT_EQ(kept({{"Cache-Control", shared}}, {{"Authorization", "x"}}), "keep") << shared;
  rules.vary = {"accept-language", "authorization", "cookie"};
  EXPECT_EQ(kept({{"Vary", "ACCEPT-Language"}}), "keep");
  EXPECT_EQ(kept({{"Cache-Control", "private"}}, {{"Authorization", "x"}, {"Cookie", "y"}}),
            "keep");
}

TEST_F(GatewayRules, Rule6SupersededAnswersMayBeKept) {
  rules.keep_superseded = true;
  EXPECT_EQ(kept({{"Cache-Control", "no-store"}}), "pass no-store");
}

TEST_F(GatewayRules, Rule7StaleAnswersThatAreForbidden) {
  EXPECT_EQ(refusal({{"Cache-Control", "max-age=10"}}), "");
  EXPECT_EQ(refusal({{"Cache-Control", "max-age=10, must-revalidate"}}),
            "forbidden-by=must-revalidate");
  EXPECT_EQ(refusal({{"Cache-Control", "max-age=10, proxy-revalidate"}}),
            "forbidden-by=proxy-revalidate");
  EXPECT_EQ(refusal({{"Cache-Control", "s-maxage=10"}}), "forbidden-by=s-maxage");
  EXPECT_EQ(refusal({{"Cache-Control", "no-cache"}}), "forbidden-by=no-cache");
  // They are about stale answers; this one is fresh, apart from no-cache.
  EXPECT_EQ(refusal({{"Cache-Control", "max-age=100, must-revalidate"}}), "");
  EXPECT_EQ(refusal({{"Cache-Control", "s-maxage=100"}}), "");
  EXPECT_EQ(refusal({{"Cache-Control", "max-age=100, no-cache"}}), "forbidden-by=no-cache");
  EXPECT_EQ(refusal({{"Cache-Control", "max-age=100, must-revalidate"}, {"Age", "50"}}),
            "forbidden-by=must-revalidate");
}

TEST_F(GatewayRules, Rule7TheOwnerMayOverride) {
  rules.overridden = {.must_revalidate = true, .no_cache = true};
  EXPECT_EQ(refusal({{"Cache-Control", "max-age=10, must-revalidate, no-cache"}}), "");
  EXPECT_EQ(refusal({{"Cache-Control", "s-maxage=10"}}), "forbidden-by=s-maxage");
}

TEST_F(GatewayRules, Rule5AnswersForOneCallerAreNotGivenToAnother) {
  EXPECT_EQ(refusal({}, {{"Authorization", "x"}}), "authorization");
  EXPECT_EQ(refusal({}, {{"Cookie", "x"}}), "cookie");
  EXPECT_EQ(refusal({{"Cache-Control", "public"}}, {{"Cookie", "x"}}), "");
}

TEST_F(GatewayRules, Rule8TheRequestMayRefuseStaleAnswers) {
  EXPECT_EQ(refusal({}, {{"Cache-Control", "stale-if-error=0"}}), "request-stale-if-error");
  EXPECT_EQ(refusal({}, {{"Cache-Control", "stale-if-error=60"}}), "request-stale-if-error");
  EXPECT_EQ(refusal({}, {{"Cache-Control", "stale-if-error=61"}}), "");
  EXPECT_EQ(refusal({}, {{"Cache-Control", "no-cache, max-age=0"}}), "");
  rules.obey_request_no_cache = true;
  EXPECT_EQ(refusal({}, {{"Cache-Control", "no-cache"}}), "request-no-cache");
  EXPECT_EQ(refusal({}, {{"Pragma", "no-cache"}}), "request-no-cache");
}

TEST_F(GatewayRules, Rule8HowLong) {
  const expiry usual(24h);
  const auto time_of = [&](test::field_list response) {
    return keep_until(rules, response_of(response), usual, noon) - noon;
  };
  EXPECT_EQ(time_of({}), 24h);
  EXPECT_EQ(time_of({{"Cache-Control", "stale-if-error=60"}}), 60s);
  EXPECT_EQ(time_of({{"Cache-Control", "max-age=10, stale-if-error=60"}}), 70s);
  EXPECT_EQ(time_of({{"Cache-Control", "max-age=10, stale-if-error=60"}, {"Age", "4"}}), 66s);
  EXPECT_EQ(time_of({{"Cache-Control", "stale-if-error=0"}}), 0s);
  EXPECT_EQ(time_of({{"Cache-Control", "stale-if-error=99999999"}}), 7 * 24h);
}

TEST(GatewayFreshness, Rule1ReuseWithinASoftExpiry) {
  const auto decision = [](test::field_list response, test::field_list request,
                           std::chrono::seconds age) {
    switch (decide_reuse(request_facts::of("GET", request_fields(request)), response_of(response),
                         noon, noon + age, 10s)) {
      case reuse::none:
        return "ask";
      case reuse::young:
        return "give";
      case reuse::refresh:
        break;
    }
    return "refresh";
  };
  EXPECT_STREQ(decision({}, {}, 10s), "give");
  EXPECT_STREQ(decision({}, {}, 11s), "refresh");
  EXPECT_STREQ(decision({{"Cache-Control", "max-age=5"}}, {}, 4s), "give");
  EXPECT_STREQ(decision({{"Cache-Control", "max-age=5"}}, {}, 5s), "ask");
  EXPECT_STREQ(decision({{"Cache-Control", "max-age=50"}}, {}, 20s), "refresh");
  EXPECT_STREQ(decision({{"Expires", "0"}}, {}, 0s), "ask");
  EXPECT_STREQ(decision({}, {{"Cache-Control", "no-cache"}}, 0s), "ask");
  EXPECT_STREQ(decision({}, {{"Pragma", "no-cache"}}, 0s), "ask");
  EXPECT_STREQ(decision({}, {{"Cache-Control", "max-age=0"}}, 0s), "ask");
  EXPECT_STREQ(decision({}, {{"Cache-Control", "max-age=3"}}, 2s), "give");
  EXPECT_STREQ(decision({}, {{"Cache-Control", "min-fresh=1"}}, 0s), "ask");
  EXPECT_STREQ(decision({{"Cache-Control", "max-age=5"}}, {{"Cache-Control", "min-fresh=3"}}, 2s),
               "give");
  EXPECT_STREQ(decision({{"Cache-Control", "max-age=5"}}, {{"Cache-Control", "min-fresh=3"}}, 3s),
               "ask");
}

TEST(GatewayFreshness, LifetimeAndAge) {
  const auto lifetime = [](test::field_list response) {
    return freshness_lifetime(response_of(response), noon);
  };
  EXPECT_EQ(lifetime({}), 0s);
  EXPECT_EQ(lifetime({{"Cache-Control", "max-age=5"}}), 5s);
  EXPECT_EQ(lifetime({{"Cache-Control", "max-age=5, s-maxage=7"}}), 7s);
  EXPECT_EQ(lifetime({{"Date", "Sun, 15 Nov 2026 11:00:00 GMT"},
                      {"Expires", "Sun, 15 Nov 2026 11:00:09 GMT"}}),
            9s);
  EXPECT_EQ(lifetime({{"Expires", "Sun, 15 Nov 2026 12:00:09 GMT"}}), 9s);
  EXPECT_EQ(lifetime({{"Expires", "0"}}), 0s);
  EXPECT_EQ(age_at(response_of({{"Age", "10"}}), noon, noon + 5s), 15s);
  EXPECT_EQ(age_at(response_of({{"Age", "10, 3"}}), noon, noon - 5s), 10s);
  EXPECT_EQ(age_at(response_of({{"Age", "-1"}}), noon, noon + 1s), 1s);
}

TEST(GatewayStoredResponse, RoundTrip) {
  const stored_response response{
      .status = 404,
      .fields = response_of({{"ETag", "\"\xE9\xFF\""}, {"X-Empty", ""}, {"X", "a: b"}}),
      .target = "/a?q=***",
      .content = std::string("\x00\xFFline\nline", 11)};
  EXPECT_EQ(decode(encode(response, payload_form::bytes)), response);
  EXPECT_EQ(decode(encode(response, payload_form::text)), response);
  const stored_response empty{.status = 204, .target = "/"};
  EXPECT_EQ(encode(empty, payload_form::text), R"({"status":204,"fields":[],"target":"/"})");
  EXPECT_EQ(decode(encode(empty, payload_form::bytes)), empty);
  const stored_response marker{.target = "/a", .invalid = "no-store"};
  EXPECT_EQ(encode(marker, payload_form::text), R"({"invalid":"no-store","target":"/a"})");
  EXPECT_EQ(decode(encode(marker, payload_form::text)).invalid, "no-store");
}

TEST(GatewayStoredResponse, DamagedPayloadsAreRefused) {
  for (const char* const payload :
       {"", "x", "[]", R"({"status":99,"fields":[]})", R"({"status":200,"fields":["x"]})",
        R"({"status":200,"fields":["a b: c"]})", R"({"status":200,"fields":["a: b\r\nc: d"]})",
        "{\"status\":200,\"fields\":[],\"encoding\":\"base64\"}\n?"})
    EXPECT_THROW((void)decode(payload), error) << payload;
}

TEST(GatewayStoredResponse, QueryValuesAreMasked) {
  EXPECT_EQ(masked_target("/a"), "/a");
  EXPECT_EQ(masked_target("/a?token=secret&x=&secret"), "/a?token=***&x=***&***");
}

}  // namespace
