// Reading and writing the JSON of the API.

#include <holdfast/error.hpp>

#include "serve/api/json_reader.hpp"
#include "serve/api/json_writer.hpp"
#include "serve/api/value_text.hpp"
#include "support/failure_of.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace {

using namespace holdfast;
using namespace holdfast::detail::serve;
using namespace std::chrono_literals;
using test::failure_of;

std::string refusal(const std::string& json, void (*read)(json_object&)) {
  const auto failure = failure_of([&] {
    auto object = json_object::parse(json);
    read(object);
  });
  EXPECT_EQ(failure.code(), errc::invalid_argument) << failure.what();
  return failure.path();
}

TEST(JsonReader, RefusesWhatIsNotAnObject) {
  for (const auto* text :
       {"", "{", "[]", "1", "null", "\"a\"", "{} {}", "{\"a\":}", "{'a':1}", "{\"a\":1,}",
        "{\"a\":\"\xFF\"}", "{\"a\":\"\x01\"}", "{\"a\":NaN}", "{\"a\":01}", "// {}",
        "{\"a\":1,\"a\":2}", "{\"a\":1e999}", "{\"a\":\"\\ud800\"}"})
    EXPECT_EQ(failure_of([&] { (void)json_object::parse(text); }).code(), errc::malformed) << text;
  EXPECT_EQ(failure_of([&] { (void)json_object::parse(std::string(100'000, '[')); }).code(),
            errc::malformed);
  std::string deep;
  for (int i = 0; i < 5000; ++i) deep += "{\"a\":";
  EXPECT_EQ(failure_of([&] { (void)json_object::parse(deep); }).code(), errc::malformed);
}

TEST(JsonReader, ReadsEveryType) {
  auto object = json_object::parse(
      R"({"t":"x","i":-5,"w":"9223372036854775807","b":true,"d":"15m","at":"2026-11-15T23:05:16.12Z",)"
      R"("l":["a","b"],"o":{"n":1},"os":[{"n":2},{}],"r":{"z":[1, 2.50]},"e":[1,"x",null],"nil":null})");
  EXPECT_EQ(object.required_text("t"), "x");
  EXPECT_EQ(object.integer("i"), -5);
  EXPECT_EQ(object.integer("w"), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(object.boolean("b"), true);
  EXPECT_EQ(object.duration("d"), 15min);
  EXPECT_EQ(object.time("at"), parse_time("2026-11-15T23:05:16.120000Z"));
  EXPECT_EQ(object.texts("l"), (std::vector<std::string>{"a", "b"}));
  auto inner = object.object("o");
  ASSERT_TRUE(inner);
  EXPECT_EQ(inner->integer("n"), 1);
  inner->finish();
  auto list = object.objects("os");
  ASSERT_TRUE(list);
  EXPECT_EQ(list->size(), 2U);
  EXPECT_EQ(list->front().integer("n"), 2);
  EXPECT_EQ(object.raw("r"), R"({"z":[1,2.5]})");
  EXPECT_EQ(object.raw_elements("e"), (std::vector<std::string>{"1", "\"x\"", "null"}));
  EXPECT_TRUE(object.has("nil"));
  EXPECT_EQ(object.text("nil"), std::nullopt);
  EXPECT_EQ(object.text("missing"), std::nullopt);
  EXPECT_EQ(object.names().front(), "t");
  object.finish();
}

TEST(JsonReader, NamesTheMemberWithAnotherType) {
  EXPECT_EQ(refusal(R"({"a":1})", [](json_object& o) { (void)o.text("a"); }), "a");
  EXPECT_EQ(refusal("{}", [](json_object& o) { (void)o.required_text("a"); }), "a");
  EXPECT_EQ(refusal(R"({"a":null})", [](json_object& o) { (void)o.required_text("a"); }), "a");
  for (const auto* value : {"1.5", "\"\"", "\"1x\"", "\" 1\"", "true", "9223372036854775808",
                            "\"9223372036854775808\"", "[1]", "1e3"})
    EXPECT_EQ(
        refusal("{\"a\":" + std::string(value) + "}", [](json_object& o) { (void)o.integer("a"); }),
        "a")
        << value;
  EXPECT_EQ(refusal(R"({"a":"true"})", [](json_object& o) { (void)o.boolean("a"); }), "a");
  EXPECT_EQ(refusal(R"({"a":["x",1]})", [](json_object& o) { (void)o.texts("a"); }), "a[1]");
  EXPECT_EQ(refusal(R"({"a":[]})", [](json_object& o) { (void)o.object("a"); }), "a");
  EXPECT_EQ(refusal(R"({"a":[{},3]})", [](json_object& o) { (void)o.objects("a"); }), "a[1]");
  EXPECT_EQ(refusal(R"({"a":{"b":{"c":1}}})",
                    [](json_object& o) { (void)o.object("a")->object("b")->text("c"); }),
            "a.b.c");
  auto list = json_object::parse_array(R"([{},{"x":1}])");
  EXPECT_EQ(failure_of([&] { (void)list[1].text("x"); }).path(), "[1].x");
  EXPECT_EQ(failure_of([] { (void)json_object::parse_array("{}"); }).code(), errc::malformed);
}

TEST(JsonReader, AMemberThatIsNotReadIsAnError) {
  auto object = json_object::parse(R"({"cuont":3,"lane":0})");
  (void)object.integer("count");
  (void)object.integer("lane");
  const auto failure = failure_of([&] { object.finish(); });
  EXPECT_EQ(failure.path(), "cuont");
  EXPECT_NE(failure.message().find("did you mean count?"), std::string::npos) << failure.what();
}

TEST(ValueText, Durations) {
  EXPECT_EQ(parse_duration("0ms"), 0ms);
  EXPECT_EQ(parse_duration("7d"), 168h);
  for (const auto* text : {"", "5", "s", "-1s", "1.5s", "5 s", "5S", "+5s", "1h30m", "5w",
                           "99999999999999999999s", "9223372036854775807d"})
    EXPECT_EQ(parse_duration(text), std::nullopt) << text;
  EXPECT_EQ(parse_duration("9223372036854775807ms"), std::chrono::milliseconds::max());
}

TEST(ValueText, Times) {
  EXPECT_EQ(parse_time("2026-11-15T23:05:16+01:00"), parse_time("2026-11-15T22:05:16Z"));
  EXPECT_EQ(parse_time("2024-02-29t00:00:00.000001z")->time_since_epoch().count() % 1000, 1);
  for (const auto* text :
       {"", "2026-11-15", "2026-11-15T23:05:16", "2026-13-15T23:05:16Z", "2026-02-29T00:00:00Z",
        "2026-11-15T24:00:00Z", "2026-11-15T23:60:00Z", "2026-11-15T23:05:60Z",
        "2026-11-15 23:05:16Z", "2026-11-15T23:05:16.Z", "2026-11-15T23:05:16.1234567Z",
        "2026-11-15T23:05:16+24:00", "2026-11-15T23:05:16Zx", "26-11-15T23:05:16Z"})
    EXPECT_EQ(parse_time(text), std::nullopt) << text;
}

TEST(JsonWriter, WritesCommasWhereTheyBelong) {
  json_writer out;
  out.begin_object().member("a", "x").member("b", true).member("c", std::uint64_t{7});
  out.key("l").begin_array().wide(1).null().begin_object().end_object().begin_array().end_array();
  out.end_array().key("r").raw("{\"z\":1}").member("d", 0.5).end_object();
  EXPECT_EQ(out.json(), R"({"a":"x","b":true,"c":7,"l":["1",null,{},[]],"r":{"z":1},"d":0.5})");
}

TEST(JsonWriter, NumbersAndTimes) {
  json_writer out;
  out.begin_array().number(std::numeric_limits<double>::infinity()).number(std::nan(""));
  out.number(std::numeric_limits<std::int64_t>::min())
      .wide(std::numeric_limits<std::int64_t>::min());
  out.number(std::numeric_limits<std::uint64_t>::max());
  out.time(*parse_time("2026-01-02T03:04:05.000006Z")).time(timestamp{}).end_array();
  EXPECT_EQ(out.take(),
            R"([null,null,-9223372036854775808,"-9223372036854775808",18446744073709551615,)"
            R"("2026-01-02T03:04:05.000006Z","1970-01-01T00:00:00.000000Z"])");
}

TEST(JsonWriter, TextIsAlwaysOneLineOfUtf8) {
  json_writer out;
  out.text("a\"\\\n\x01\xFF\xE2\x80\xA8</script>");
  EXPECT_EQ(out.json().find('\n'), std::string::npos);
  EXPECT_EQ(out.json().find('\xFF'), std::string::npos);
  EXPECT_NE(out.json().find("\xEF\xBF\xBD"), std::string::npos);
  auto again = json_object::parse("{\"t\":" + out.json() + "}");
  EXPECT_EQ(again.text("t"), "a\"\\\n\x01\xEF\xBF\xBD\xE2\x80\xA8</script>");
}

}  // namespace
