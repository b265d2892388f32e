// Targets, dates, structured fields, caching, conditions, ranges, cookies, problems.

#include <holdfast/error.hpp>

#include "http/cache_control.hpp"
#include "http/cache_status.hpp"
#include "http/conditional.hpp"
#include "http/cookie.hpp"
#include "http/date.hpp"
#include "http/problem.hpp"
#include "http/request_reader.hpp"
#include "http/structured_field.hpp"
#include "http/target.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace holdfast;
using namespace holdfast::detail::http;
using namespace std::chrono_literals;

/// Normalises a target. `refused` if it is.
std::string normalised(std::string_view text) {
  const auto parsed = target::parse(text);
  return parsed ? parsed->text() : "refused";
}

TEST(Target, IsNormalised) {
  const std::map<std::string_view, std::string_view> cases = {
      {"/", "/"},
      {"/a/b?c=d&e", "/a/b?c=d&e"},
      {"/%61%7e%2D%5f%2E/x", "/a~-_./x"},
      {"/%e4%bd%a0", "/%E4%BD%A0"},
      {"/a%3fb%20", "/a%3Fb%20"},
      {"/a/./b/../c", "/a/c"},
      {"/a/%2e%2E/c", "/c"},
      {"/a/b/..", "/a/"},
      {"/a/.", "/a/"},
      {"/.", "/"},
      {"/a/..", "/"},
      {"//a//b/", "//a//b/"},
      {"//..//", "//"},
      {"/a/...", "/a/..."},
      {"/.a/..b/c..", "/.a/..b/c.."},
      {"/%252e%252e/", "/%252e%252e/"},
      {"/..;/a", "/..;/a"},
      {"/a?", "/a?"},
      {"/a?b=%2f%5c%0a&c=../..", "/a?b=%2F%5C%0A&c=../.."},
      {"/a?x[]={|}^`\\", "/a?x[]={|}^`\\"},
      {"http://h/x?y", "/x?y"},
      {"https://h", "/"},
      {"http://h?y", "/?y"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(normalised(text), expected) << text;
}

TEST(Target, IsRefused) {
  for (const std::string_view text :
       {"",      "a",      "/a%2Fb",   "/a%2f",    "/a%5Cb",  "/a%5c",  "/a%00",  "/a%0A",
        "/%7F",  "/%1f",   "/..",      "/a/../..", "/%2e%2e", "/../a",  "/a%",    "/a%2",
        "/a%zz", "/a%%41", "/a\\b",    "/a b",     "/a\"b",   "/a<b",   "/a[b",   "/a{b",
        "/a|b",  "/a^b",   "/a`b",     "/a#b",     "/\x80",   "/a?b c", "/a?%00", "/a?%4",
        "/a?\"", "/a?<",   "ftp://h/", "*",        "/a?\x7F"})
    EXPECT_EQ(normalised(text), "refused") << text;
}

TEST(Target, PartsAndParameters) {
  const auto parsed = target::parse("/a%20b?x=1&y&=z&&x=%2");
  EXPECT_FALSE(parsed);
  const auto good = target::parse("/a%20b?x=1&y&=z&&x=%20");
  ASSERT_TRUE(good);
  EXPECT_EQ(good->path(), "/a%20b");
  EXPECT_EQ(good->query(), "x=1&y&=z&&x=%20");
  std::string seen;
  for_each_parameter(good->query(), [&](std::string_view name, std::string_view value) {
    seen.append(name).append("=").append(value).append(" ");
  });
  EXPECT_EQ(seen, "x=1 y= =z x=%20 ");
  EXPECT_EQ(percent_decode(good->path()), "/a b");
  EXPECT_EQ(percent_decode("%4"), std::nullopt);
  EXPECT_FALSE(target::parse("/a")->has_query());
}

constexpr std::chrono::sys_seconds now = std::chrono::sys_days{std::chrono::year(2026) / 11 / 18};

TEST(HttpDate, ReadsThreeFormsAndWritesOne) {
  const std::chrono::sys_seconds time =
      std::chrono::sys_days{std::chrono::year(1994) / 11 / 6} + 8h + 49min + 37s;
  EXPECT_EQ(format_date(time), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(parse_date("Sun, 06 Nov 1994 08:49:37 GMT", now), time);
  EXPECT_EQ(parse_date("Sunday, 06-Nov-94 08:49:37 GMT", now), time);
  EXPECT_EQ(parse_date("Sun Nov  6 08:49:37 1994", now), time);
  EXPECT_EQ(parse_date("Sun Nov 06 08:49:37 1994", now), time);
  for (auto second = std::chrono::sys_seconds{}; second < std::chrono::sys_seconds{4'000'000'000s};
       second += 86'399'999s)
    EXPECT_EQ(parse_date(format_date(second), now), second);
}

TEST(HttpDate, TwoDigitYearsAreAtMost50YearsAhead) {
  const auto year_of = [](std::string_view text) {
    const auto time = parse_date(text, now);
    return time ? static_cast<int>(
                      std::chrono::year_month_day(std::chrono::floor<std::chrono::days>(*time))
                          .year())
                : 0;
  };
  EXPECT_EQ(year_of("Friday, 06-Nov-76 08:49:37 GMT"), 2076);
  EXPECT_EQ(year_of("Sunday, 06-Nov-77 08:49:37 GMT"), 1977);
}

TEST(HttpDate, RefusesTheRest) {
  for (const std::string_view text :
       {"", "Sun, 6 Nov 1994 08:49:37 GMT", "Mon, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 UTC",
        "sun, 06 nov 1994 08:49:37 gmt", "Sun, 06 Nov 1994 24:49:37 GMT",
        "Sun, 06 Nov 1994 08:60:37 GMT", "Sun, 06 Nov 1994 08:49:61 GMT",
        "Thu, 31 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT ", "784111777", "-1",
        "Sun, 06-Nov-94 08:49:37 GMT", "Sun Nov 6 08:49:37 1994"})
    EXPECT_EQ(parse_date(text, now), std::nullopt) << text;
}

// ---- structured fields ----

namespace sf = holdfast::detail::http::structured;

TEST(StructuredField, ItemsAreWrittenAsTheyWereRead) {
  for (const std::string_view text : {"42",
                                      "-42",
                                      "0",
                                      "999999999999999",
                                      "-999999999999999",
                                      "4.5",
                                      "-0.001",
                                      "123456789012.125",
                                      "1.0",
                                      "\"hello\"",
                                      "\"a\\\"b\\\\c\"",
                                      "\"\"",
                                      "foo123/456",
                                      "*x:y",
                                      "a!#$%&'*+-.^_`|~:/",
                                      ":aGVsbG8=:",
                                      "::",
                                      "?1",
                                      "?0",
                                      "@1659578233",
                                      "@-1",
                                      "%\"f%c3%bc%25%22 x\"",
                                      "a;b;c=1;d=\"x\"",
                                      "1;a=?0;*b=tok"}) {
    const auto item = sf::parse_item(text);
    ASSERT_TRUE(item) << text;
    EXPECT_EQ(sf::serialize(*item), text);
  }
  EXPECT_EQ(sf::serialize(*sf::parse_item("  1.50;  a=1;b;a=2  ")), "1.5;a=2;b");
  EXPECT_EQ(sf::serialize(*sf::parse_item("-0")), "0");
  EXPECT_EQ(sf::parse_item("-1.25")->value, sf::bare_item(sf::decimal{-1250}));
  EXPECT_EQ(sf::parse_item("007")->value, sf::bare_item(std::int64_t{7}));
}

TEST(StructuredField, IllFormedItemsAreRefused) {
  for (const std::string_view text : {"",
                                      " ",
                                      "-",
                                      "--1",
                                      "1.",
                                      ".1",
                                      "1.1234",
                                      "1234567890123.1",
                                      "1000000000000000",
                                      "1..2",
                                      "\"a",
                                      "\"a\\",
                                      "\"a\\b\"",
                                      "\"\x7F\"",
                                      "\"\xC3\xBC\"",
                                      "\"a\nb\"",
                                      ":a:",
                                      ":aGVsbG8:",
                                      ":aGVsbG8=",
                                      ":a b=:",
                                      "?",
                                      "?2",
                                      "?true",
                                      "@",
                                      "@1.5",
                                      "@x",
                                      "%x",
                                      "%\"a",
                                      "%\"%C3%BC\"",
                                      "%\"%zz\"",
                                      "%\"%c3\"",
                                      "%\"%f\"",
                                      "a b",
                                      "1 2",
                                      "a;",
                                      "a;A",
                                      "a;b=",
                                      "a; ;b",
                                      "(1)",
                                      "=1",
                                      "1,2",
                                      "\ta",
                                      "a\t",
                                      "[1]",
                                      "{",
                                      "\xC3"})
    EXPECT_FALSE(sf::parse_item(text)) << text;
}

TEST(StructuredField, Lists) {
  for (const std::string_view text : {"", "a", "a, b;c", "(), (1 2);x, ((", "(a;b \"c\")"}) {
    if (text.find("((") != std::string_view::npos) {
      EXPECT_FALSE(sf::parse_list(text));
      continue;
    }
    const auto list = sf::parse_list(text);
    ASSERT_TRUE(list) << text;
    EXPECT_EQ(sf::serialize(*list), text);
  }
  EXPECT_EQ(sf::serialize(*sf::parse_list("a \t,\t  b,( 1   2 )")), "a, b, (1 2)");
  for (const std::string_view text :
       {",", "a,", "a,,b", ",a", "a b", "(1", "(1,2)", "1)", "(1)2", "(1\t2)", "(a)b"})
    EXPECT_FALSE(sf::parse_list(text)) << text;
}

TEST(StructuredField, Dictionaries) {
  for (const std::string_view text :
       {"", "a=1, b=?0, c;x=1, d=(1 2);y", "*a_b-c.9=\"x\"", "u=2, i"}) {
    const auto dictionary = sf::parse_dictionary(text);
    ASSERT_TRUE(dictionary) << text;
    EXPECT_EQ(sf::serialize(*dictionary), text);
  }
  EXPECT_EQ(sf::serialize(*sf::parse_dictionary("a=1,b=2,a=3")), "a=3, b=2");
  EXPECT_EQ(sf::serialize(*sf::parse_dictionary("a=?1")), "a");
  for (const std::string_view text : {",", "a=1,", "a=", "A=1", "a =1", "a= 1", "1=a", "a=1 b=2"})
    EXPECT_FALSE(sf::parse_dictionary(text)) << text;
}

TEST(StructuredField, ValuesThatCannotBeWrittenAreRefused) {
  const auto write = [](sf::bare_item value) {
    (void)sf::serialize(sf::item{std::move(value), {}});
  };
  EXPECT_THROW(write(std::int64_t{1'000'000'000'000'000}), error);
  EXPECT_THROW(write(sf::decimal{1'000'000'000'000'000}), error);
  EXPECT_THROW(write(std::string("a\nb")), error);
  EXPECT_THROW(write(sf::token{"a b"}), error);
  EXPECT_THROW(write(sf::token{""}), error);
  EXPECT_THROW(write(sf::token{"1"}), error);
  EXPECT_THROW(write(sf::display_string{"\xFF"}), error);
  EXPECT_THROW((void)sf::serialize(sf::dictionary{{"A", sf::item{true, {}}}}), error);
  EXPECT_EQ(sf::serialize(sf::item{sf::byte_sequence{std::string("\0\xFF", 2)}, {}}), ":AP8=:");
}

// ---- caching, conditions, ranges ----

/// Fields as a reader gives them.
class request_fields {
 public:
  explicit request_fields(const std::string& lines)
      : text_("GET / HTTP/1.1\r\nHost: a\r\n" + lines + "\r\n") {
    EXPECT_EQ(reader_.read_head(text_), read_status::complete) << lines;
  }
  [[nodiscard]] const fields& get() const { return reader_.head().fields; }

 private:
  std::string text_;
  request_reader reader_{};
};

TEST(CacheControl, ReadsDirectives) {
  const request_fields request(
      "Cache-Control: Max-Age=60, no-cache=\"a, b\", private\r\n"
      "cache-control: s-maxage=\"5\" , "
      "stale-if-error=99999999999999999999,x-unknown=\"no-store\"\r\n");
  const auto directives = cache_control::of(request.get());
  EXPECT_EQ(directives.max_age, 60s);
  EXPECT_EQ(directives.s_maxage, 5s);
  EXPECT_EQ(directives.stale_if_error, std::chrono::seconds(std::int64_t{1} << 31U));
  EXPECT_TRUE(directives.no_cache);
  EXPECT_TRUE(directives.is_private);
  EXPECT_FALSE(directives.no_store) << "it is the argument of another directive";
  EXPECT_FALSE(directives.is_public);
}

TEST(CacheControl, IsCautious) {
  const auto age_of = [](std::string_view value) {
    cache_control directives;
    directives.add(value);
    return directives.max_age;
  };
  for (const std::string_view value :
       {"max-age", "max-age=", "max-age=x", "max-age=-5", "max-age=1.5", "max-age=60, max-age=0"})
    EXPECT_EQ(age_of(value), 0s) << value;
  EXPECT_EQ(age_of("max-age=7,max-age=9"), 7s);
  EXPECT_EQ(age_of("xmax-age=7"), std::nullopt);
  cache_control any;
  any.add("max-stale, only-if-cached, immutable, must-understand");
  EXPECT_EQ(any.max_stale, std::chrono::seconds(std::int64_t{1} << 31U));
  EXPECT_TRUE(any.only_if_cached && any.immutable && any.must_understand);
}

TEST(CacheStatus, IsWrittenAsTheRfcSays) {
  using reason = cache_status::forward_reason;
  EXPECT_EQ(to_field({.forwarded = reason::miss, .stored = true}), "holdfast;fwd=miss;stored");
  EXPECT_EQ(to_field({.forwarded = reason::stale, .forwarded_status = 503, .time_to_live = -412}),
            "holdfast;fwd=stale;fwd-status=503;ttl=-412");
  EXPECT_EQ(to_field({.hit = true, .time_to_live = -412, .detail = "breaker-open"}),
            "holdfast;hit;ttl=-412;detail=breaker-open");
  EXPECT_EQ(to_field({.hit = true, .detail = "two words"}, "origin;hit"),
            "origin;hit, holdfast;hit;detail=\"two words\"");
  EXPECT_EQ(to_field({.forwarded = reason::miss, .collapsed = true, .key = "a\"b"}),
            "holdfast;fwd=miss;collapsed;key=\"a\\\"b\"");
  EXPECT_THROW((void)to_field({.hit = true, .forwarded = reason::miss}), error);
  EXPECT_THROW((void)to_field({.hit = true, .detail = "a\nb"}), error);
}

TEST(Conditional, EntityTags) {
  EXPECT_TRUE(parse_entity_tag("\"\""));
  EXPECT_TRUE(parse_entity_tag("W/\"a\"")->weak);
  for (const std::string_view text :
       {"", "a", "\"a", "a\"", "w/\"a\"", "W/a", "\"a b\"", "\"a\"b\"", "\"", "\"a\x7F\""})
    EXPECT_FALSE(parse_entity_tag(text)) << text;
  const auto strong = *parse_entity_tag("\"a\"");
  const auto weak = *parse_entity_tag("W/\"a\"");
  EXPECT_TRUE(matches_strongly(strong, strong));
  EXPECT_FALSE(matches_strongly(strong, weak));
  EXPECT_TRUE(matches_weakly(strong, weak));
}

TEST(Conditional, Preconditions) {
  const validators current{.tag = parse_entity_tag("\"v2\""),
                           .last_modified = parse_date("Sun, 06 Nov 1994 08:49:37 GMT", now)};
  const auto evaluated = [&](const std::string& lines, std::string_view method = "GET",
                             bool exists = true) {
    const request_fields request(lines);
    return evaluate(method, request.get(), exists ? std::optional(current) : std::nullopt, now);
  };
  const std::string same = "Sun, 06 Nov 1994 08:49:37 GMT\r\n";
  const std::string before = "Sun, 06 Nov 1994 08:49:36 GMT\r\n";
  EXPECT_EQ(evaluated(""), precondition::proceed);
  EXPECT_EQ(evaluated("If-None-Match: \"v1\", W/\"v2\"\r\n"), precondition::not_modified);
  EXPECT_EQ(evaluated("If-None-Match: \"v1\"\r\nIf-None-Match: \"v2\"\r\n"),
            precondition::not_modified);
  EXPECT_EQ(evaluated("If-None-Match: *\r\n"), precondition::not_modified);
  EXPECT_EQ(evaluated("If-None-Match: *\r\n", "PUT"), precondition::failed);
  EXPECT_EQ(evaluated("If-None-Match: *\r\n", "PUT", false), precondition::proceed);
  EXPECT_EQ(evaluated("If-None-Match: v2\r\n"), precondition::proceed);
  EXPECT_EQ(evaluated("If-None-Match: \"v1\"\r\nIf-Modified-Since: " + same), precondition::proceed)
      << "If-Modified-Since does not count beside If-None-Match";
  EXPECT_EQ(evaluated("If-Modified-Since: " + same), precondition::not_modified);
  EXPECT_EQ(evaluated("If-Modified-Since: " + before), precondition::proceed);
  EXPECT_EQ(evaluated("If-Modified-Since: yesterday\r\n"), precondition::proceed);
  EXPECT_EQ(evaluated("If-Modified-Since: " + same, "POST"), precondition::proceed);
  EXPECT_EQ(evaluated("If-Match: \"v2\"\r\n"), precondition::proceed);
  EXPECT_EQ(evaluated("If-Match: W/\"v2\"\r\n"), precondition::failed);
  EXPECT_EQ(evaluated("If-Match: *\r\n", "PUT", false), precondition::failed);
  EXPECT_EQ(evaluated("If-Unmodified-Since: " + before), precondition::failed);
  EXPECT_EQ(evaluated("If-Unmodified-Since: " + same), precondition::proceed);
}

TEST(Range, Parts) {
  const auto range_of = [](const std::string& value, std::uint64_t size = 10) {
    const request_fields request("Range: " + value + "\r\n");
    return read_range("GET", request.get(), {}, size, now);
  };
  EXPECT_EQ(range_of("bytes=0-4").ranges, (std::vector<byte_range>{{0, 4}}));
  EXPECT_EQ(range_of("BYTES=5-").ranges, (std::vector<byte_range>{{5, 9}}));
  EXPECT_EQ(range_of("bytes=-3").ranges, (std::vector<byte_range>{{7, 9}}));
  EXPECT_EQ(range_of("bytes=-30").ranges, (std::vector<byte_range>{{0, 9}}));
  EXPECT_EQ(range_of("bytes=0-0, 9-99,20-30").ranges, (std::vector<byte_range>{{0, 0}, {9, 9}}));
  EXPECT_EQ(range_of("bytes=10-").status, range_status::unsatisfiable);
  EXPECT_EQ(range_of("bytes=-0").status, range_status::unsatisfiable);
  EXPECT_EQ(range_of("bytes=-1", 0).status, range_status::unsatisfiable);
  for (const std::string_view value : {"bytes=", "bytes=a-b", "bytes=4-1", "bytes=1", "lines=0-1",
                                       "bytes 0-1", "bytes=--1", "bytes=0-1,x", "bytes=+1-2"})
    EXPECT_EQ(range_of(std::string(value)).status, range_status::whole) << value;
  std::string many = "bytes=0-0";
  for (int i = 0; i < 16; ++i) many += ",0-0";
  EXPECT_EQ(range_of(many).status, range_status::whole) << "17 parts";
  EXPECT_EQ(content_range({0, 4}, 10), "bytes 0-4/10");
}

TEST(Range, IfRangeMustMatch) {
  const validators current{.tag = parse_entity_tag("\"v2\""),
                           .last_modified = parse_date("Sun, 06 Nov 1994 08:49:37 GMT", now)};
  const auto status_of = [&](const std::string& condition, std::string_view method = "GET") {
    const request_fields request("Range: bytes=0-1\r\nIf-Range: " + condition + "\r\n");
    return read_range(method, request.get(), current, 10, now).status;
  };
  EXPECT_EQ(status_of("\"v2\""), range_status::partial);
  EXPECT_EQ(status_of("W/\"v2\""), range_status::whole);
  EXPECT_EQ(status_of("\"v1\""), range_status::whole);
  EXPECT_EQ(status_of("Sun, 06 Nov 1994 08:49:37 GMT"), range_status::partial);
  EXPECT_EQ(status_of("Sun, 06 Nov 1994 08:49:38 GMT"), range_status::whole);
  EXPECT_EQ(status_of("\"v2\"", "HEAD"), range_status::whole);
}

// ---- cookies, problems ----

TEST(Cookie, IsFound) {
  const request_fields request("Cookie: a=1; session=abc=def ;b=2\r\nCookie: c=3\r\n");
  EXPECT_EQ(find_cookie(request.get(), "session"), "abc=def");
  EXPECT_EQ(find_cookie(request.get(), "c"), "3");
  EXPECT_EQ(find_cookie(request.get(), "d"), std::nullopt);
  EXPECT_EQ(find_cookie(request_fields("Cookie: a=1; a=2\r\n").get(), "a"), std::nullopt);
  EXPECT_EQ(find_cookie(request_fields("Cookie: a=\"1\"\r\n").get(), "a"), std::nullopt);
  EXPECT_EQ(find_cookie(request_fields("Cookie: ;;a;=\r\n").get(), "a"), std::nullopt);
}

TEST(Cookie, IsWritten) {
  EXPECT_EQ(to_field(cookie{.name = "__Host-holdfast", .value = "x"}),
            "__Host-holdfast=x; Path=/; Secure; HttpOnly; SameSite=Strict");
  EXPECT_EQ(to_field(cookie{.name = "a",
                            .max_age = 0s,
                            .secure = false,
                            .http_only = false,
                            .site = cookie::same_site::lax}),
            "a=; Path=/; Max-Age=0; SameSite=Lax");
  EXPECT_THROW((void)to_field(cookie{.name = "a b"}), error);
  EXPECT_THROW((void)to_field(cookie{.name = "a", .value = "x;y"}), error);
  EXPECT_THROW((void)to_field(cookie{.name = "a", .value = "x\r\ny"}), error);
  EXPECT_THROW((void)to_field(cookie{.name = "a", .path = "x"}), error);
  EXPECT_THROW((void)to_field(cookie{.name = "a", .path = "/;x"}), error);
  EXPECT_THROW((void)to_field(cookie{.name = "__Host-a", .path = "/x"}), error);
  EXPECT_THROW((void)to_field(cookie{.name = "__Secure-a", .secure = false}), error);
}

TEST(Problem, IsOneLineOfJson) {
  EXPECT_EQ(to_json({.status = 404}), R"({"title":"Not Found","status":404})");
  EXPECT_EQ(to_json({.type = "urn:x",
                     .title = "t",
                     .status = 503,
                     .detail = "a \"b\"\n\xFF",
                     .instance = "/i",
                     .members = {{"inDoubt", "true"}}}),
            "{\"type\":\"urn:x\",\"title\":\"t\",\"status\":503,\"detail\":\"a "
            "\\\"b\\\"\\n\xEF\xBF\xBD\",\"instance\":\"/i\",\"inDoubt\":true}");
}

}  // namespace
