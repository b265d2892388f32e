// What a client gets from a kept response: rules 10 to 12 of docs/gateway.md, and the fields that
// describe it.

#include "serve/gateway/answer_builder.hpp"

#include "unit/serve/gateway/request_fields.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace {

using namespace holdfast;
using namespace holdfast::detail;
using namespace holdfast::detail::serve;
using namespace holdfast::detail::serve::gateway;
using namespace std::chrono_literals;
using test::request_fields;
using test::response_of;
/// The API has routes, too.
using route = holdfast::detail::serve::gateway::route;

const timestamp midday{std::chrono::sys_days(std::chrono::year(2026) / 11 / 15) + 12h};

struct GatewayAnswer : ::testing::Test {
  route rules{.name = "r"};
  stored_response kept{.fields = response_of({{"ETag", "\"v1\""},
                                              {"Last-Modified", "Sun, 15 Nov 2026 10:00:00 GMT"},
                                              {"Date", "Sun, 15 Nov 2026 12:00:00 GMT"},
                                              {"Cache-Control", "max-age=10"},
                                              {"Content-Type", "text/plain"},
                                              {"Age", "3"}}),
                       .content = "0123456789"};
  kept_answer_facts facts{
      .as_of = midday, .expires = midday + 24h, .cause = cause_code::failed, .ref = "c7h2k9"};

  [[nodiscard]] server_response answer(test::field_list asked = {},
                                       std::string_view method = "GET") const {
    const request_fields fields(asked);
    const request_conditions conditions(fields);
    return kept_answer(
        rules, {.method = method, .conditions = conditions, .address = "127.0.0.1"}, kept, facts,
        {.forwarded = http::cache_status::forward_reason::stale, .forwarded_status = 503},
        midday + 412s);
  }
};

TEST_F(GatewayAnswer, SaysWhatItIs) {
  const auto response = answer();
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "0123456789");
  EXPECT_TRUE(response.has_date);
  EXPECT_EQ(response.fields.find("Age"), "415");
  EXPECT_EQ(response.fields.find("Via"), "1.1 holdfast");
  EXPECT_EQ(response.fields.find("Cache-Status"), "holdfast;fwd=stale;fwd-status=503;ttl=-405");
  EXPECT_EQ(response.fields.find("Holdfast-Answer"),
            "stored;as-of=@1794744000;expires=@1794830400;cause=failed;ref=\"c7h2k9\"");
  EXPECT_FALSE(response.fields.has("Warning"));
  rules.legacy_warning = true;
  EXPECT_EQ(answer().fields.find("Warning"), "111 - \"Revalidation Failed\"");
  rules.audience = status_audience::none;
  EXPECT_FALSE(answer().fields.has("Cache-Status"));
}

TEST_F(GatewayAnswer, Rule10ConditionalRequests) {
  const auto same = answer({{"If-None-Match", "W/\"v1\", \"v2\""}});
  EXPECT_EQ(same.status, 304);
  EXPECT_TRUE(same.body.empty());
  EXPECT_EQ(same.fields.find("ETag"), "\"v1\"");
  EXPECT_FALSE(same.fields.has("Content-Type"));
  EXPECT_EQ(same.fields.find("Age"), "415");
  EXPECT_EQ(answer({{"If-None-Match", "\"v2\""}}).status, 200);
  EXPECT_EQ(answer({{"If-Modified-Since", "Sun, 15 Nov 2026 10:00:00 GMT"}}).status, 304);
  EXPECT_EQ(answer({{"If-Modified-Since", "Sun, 15 Nov 2026 09:59:59 GMT"}}).status, 200);
  EXPECT_EQ(answer({{"If-Match", "\"v2\""}}).status, 412);
  kept.status = 404;
  EXPECT_EQ(answer({{"If-None-Match", "\"v1\""}}).status, 404);
}

TEST_F(GatewayAnswer, Rule11Ranges) {
  const auto part = answer({{"Range", "bytes=2-4"}});
  EXPECT_EQ(part.status, 206);
  EXPECT_EQ(part.body, "234");
  EXPECT_EQ(part.fields.find("Content-Range"), "bytes 2-4/10");
  EXPECT_EQ(answer({{"Range", "bytes=-3"}}).body, "789");
  EXPECT_EQ(answer({{"Range", "bytes=0-1,3-4"}}).status, 200);
  EXPECT_EQ(answer({{"Range", "bytes=10-"}}).status, 416);
  EXPECT_EQ(answer({{"Range", "bytes=2-4"}, {"If-Range", "\"v1\""}}).status, 206);
  EXPECT_EQ(answer({{"Range", "bytes=2-4"}, {"If-Range", "\"v0\""}}).status, 200);
}

TEST_F(GatewayAnswer, Rule12HeadFromAKeptGet) {
  const auto response = answer({}, "HEAD");
  EXPECT_EQ(response.status, 200);
  EXPECT_TRUE(response.body.empty());
  EXPECT_EQ(response.head_length, 10U);
}

TEST_F(GatewayAnswer, LiveAnswersKeepTheStatusOfOtherCaches) {
  const request_fields none{};
  const request_conditions conditions(none);
  const auto response = live_answer(
      rules, {.method = "GET", .conditions = conditions, .address = "::1"}, 200,
      response_of({{"Cache-Status", "origin; hit"}, {"Via", "1.1 o"}, {"Age", "7"}}), "x",
      {.forwarded = http::cache_status::forward_reason::miss, .stored = true}, midday);
  EXPECT_EQ(response.fields.find("Cache-Status"), "origin; hit, holdfast;fwd=miss;stored");
  EXPECT_EQ(response.fields.find("Via"), "1.1 o, 1.1 holdfast");
  EXPECT_EQ(response.fields.find("Age"), "7");
  EXPECT_FALSE(response.has_date);
}

}  // namespace
