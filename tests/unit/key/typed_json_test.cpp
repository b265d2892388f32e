#include <holdfast/key/batch.hpp>
#include <holdfast/key/failover.hpp>
#include <holdfast/key/typed_json.hpp>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>

namespace {

using namespace holdfast::key;
using holdfast::errc;
using holdfast::error;

value read(std::string_view json, scheme target = scheme::interop_value) {
  return typed_json_reader(target).read(json);
}

error refused(std::string_view json, scheme target = scheme::cachekit_auto) {
  try {
    (void)read(json, target);
  } catch (const error& e) {
    return e;
  }
  ADD_FAILURE() << "accepted: " << json;
  return {errc::internal, "accepted"};
}

TEST(TypedJson, ReadsEveryForm) {
  using namespace std::chrono;
  EXPECT_EQ(read(R"({"t":"none"})"), value());
  EXPECT_EQ(read(R"({"t":"int","v":"-5"})"), value(-5));
  EXPECT_EQ(read(R"({"t":"int","v":7})"), value(7));
  EXPECT_EQ(read(R"({"t":"int","v":"+007"})"), value(7));
  EXPECT_EQ(read(R"({"t":"int","v":"18446744073709551615"})"),
            value(std::uint64_t{18446744073709551615U}));
  EXPECT_EQ(read(R"({"t":"bigint","v":"18446744073709551616"})"),
            value(big_integer{"18446744073709551616"}));
  EXPECT_EQ(read(R"({"t":"f64","v":"0x3ff8000000000000"})"), value(1.5));
  EXPECT_EQ(read(R"({"t":"double","bits":"0x3ff8000000000000","v":"ignored"})"), value(1.5));
  EXPECT_EQ(read(R"({"t":"float","bits":"0x3f800000"})"), value(1.0F));
  EXPECT_EQ(read(R"({"t":"char","v":"é"})"), value(character{U'é'}));
  EXPECT_EQ(read(R"({"t":"char","v":"😀"})"), value(character{U'😀'}));
  EXPECT_EQ(read(R"({"t":"bytes","v":"00fF"})"), value(byte_string{std::byte{0}, std::byte{255}}));
  EXPECT_EQ(read(R"({"t":"datetime","c":[2024,1,1,0,0,0,1],"off_us":3600000000})"),
            value(instant{sys_seconds{1'704'063'600s}, 1000, 1h}));
  EXPECT_EQ(read(R"({"t":"map","v":[[{"t":"str","v":"a"},{"t":"none"}]]})"),
            value(map{{{value("a"), value()}}}));
  EXPECT_EQ(
      read(R"({"t":"array","dtype":"i32","shape":[1],"le":"01000000"})", scheme::cachekit_auto),
      value(array_value{array_value::element::i32,
                        {std::byte{1}, std::byte{0}, std::byte{0}, std::byte{0}}}));
}

TEST(TypedJson, EveryRefusalHasACodeAndAPath) {
  EXPECT_EQ(refused("{").code(), errc::malformed);
  EXPECT_EQ(refused("").code(), errc::malformed);
  EXPECT_EQ(refused("\"\xff\"").code(), errc::ill_formed_text);
  EXPECT_EQ(refused("[]").code(), errc::invalid_argument);
  EXPECT_EQ(refused(R"({"v":1})").code(), errc::invalid_argument);
  EXPECT_EQ(refused(R"({"t":"complex"})").code(), errc::unsupported_type);
  EXPECT_EQ(refused(R"({"t":"int","v":"12x"})").code(), errc::invalid_argument);
  EXPECT_EQ(refused(R"({"t":"f64","v":"0x3ff8"})").code(), errc::invalid_argument);
  EXPECT_EQ(refused(R"({"t":"str","wtf8":"eda080"})").code(), errc::ill_formed_text);
  EXPECT_EQ(refused(R"({"t":"bytes","v":"0g"})").code(), errc::invalid_argument);
  EXPECT_EQ(refused(R"({"t":"uuid","v":"550e8400"})").code(), errc::invalid_argument);
  EXPECT_EQ(refused(R"({"t":"datetime","c":[2024,2,30,0,0,0,0],"off_us":0})").code(),
            errc::out_of_range);
  EXPECT_EQ(refused(R"({"t":"datetime","c":[2024,2,3,0,0,0,0],"off_us":null})").code(),
            errc::unsupported_type);
  EXPECT_EQ(refused(R"({"t":"datetime","c":[2024,2,3,0,0,0,0],"off_us":86400000000})").code(),
            errc::out_of_range);
  EXPECT_EQ(refused(R"({"t":"array","dtype":"f64","shape":[1,1],"le":"0000000000000000"})").code(),
            errc::unsupported_type);
  EXPECT_EQ(refused(R"({"t":"array","dtype":"f64","shape":[2],"le":"0000000000000000"})").code(),
            errc::invalid_argument);
  EXPECT_EQ(refused(R"({"t":"bytearray","v":""})").code(), errc::unsupported_type);
  EXPECT_EQ(refused(R"({"t":"object_identity","class":"a.B","hash":4294967296})", scheme::failover)
                .code(),
            errc::invalid_argument);
  const auto deep = refused(
      R"({"t":"list","v":[{"t":"none"},{"t":"map","v":[[{"t":"str","v":"a"},{"t":"list","v":[{"t":"char","v":"xy"}]}]]}]})");
  EXPECT_EQ(deep.path(), "value[1].items[\"a\"][0]");
}

TEST(TypedJson, ManyNestedListsAreAnErrorNotACrash) {
  for (const std::size_t levels : {1025UL, 2000UL, 1'000'000UL}) {
    std::string json;
    for (std::size_t i = 0; i < levels; ++i) json += R"({"t":"list","v":[)";
    for (std::size_t i = 0; i < levels; ++i) json += "]}";
    EXPECT_EQ(refused(json, scheme::interop).code(), errc::too_deep) << levels;
  }
}

nlohmann::json answer(batch_options options, std::string_view line) {
  std::string out;
  batch(std::move(options)).run(line, out);
  EXPECT_EQ(out.back(), '\n');
  EXPECT_EQ(out.find('\n'), out.size() - 1) << "exactly one line";
  return nlohmann::json::parse(out);
}

TEST(Batch, AnswersEveryScheme) {
  const auto failover =
      answer({.scheme = scheme::failover, .style = style::exact},
             R"({"id":1,"name":"country-by-code","domain":"","args":[{"t":"str","v":"FR"}]})");
  EXPECT_EQ(failover["raw_key"], "FR");
  EXPECT_EQ(failover["uuid"], "cd4502b1-d2d2-39ee-930f-13582ac674c1");
  EXPECT_EQ(answer({.scheme = scheme::failover}, R"({"id":1,"name":"n","args":null})")["raw_key"],
            "NO-ARG");
  const auto automatic = answer(
      {.scheme = scheme::cachekit_auto},
      R"({"id":"x","namespace":null,"module":"m","qualname":"f","args":[{"t":"int","v":"1"}],"kwargs":[["k",{"t":"none"}]]})");
  EXPECT_EQ(automatic["id"], "x");
  EXPECT_EQ(automatic["msgpack_hex"], "92910181a16bc0");
  EXPECT_EQ(answer({.scheme = scheme::interop},
                   R"({"id":[1],"namespace":"a","operation":"b","args":[]})")["canonical_hex"],
            "90");
  EXPECT_EQ(answer({.scheme = scheme::interop_value},
                   R"({"id":null,"value":{"t":"f64","v":"0x4000000000000000"}})")["hex"],
            "cb4000000000000000");
}

TEST(Batch, ABadCaseIsAnAnswer) {
  const auto error_of = [](std::string_view line) {
    return answer({.scheme = scheme::interop}, line);
  };
  EXPECT_EQ(error_of("")["error"]["code"], "malformed");
  EXPECT_EQ(error_of("[]")["error"]["code"], "invalid_argument");
  EXPECT_EQ(error_of(R"({"id":"broken","namespace":)")["id"], "broken") << "the id is still found";
  EXPECT_EQ(error_of(R"({"id":5,"namespace":"a","operation":"b"})")["error"]["path"], "args");
  EXPECT_EQ(error_of(R"({"id":5,"namespace":"A","operation":"b","args":[]})")["error"]["path"],
            "namespace");
  EXPECT_EQ(
      error_of(
          R"({"id":5,"namespace":"a","operation":"b","args":[{"t":"int","v":"18446744073709551616"}]})")
          ["error"]["code"],
      "out_of_range");
}

TEST(Batch, AnAnswerHasNoUnicodeLineEnds) {
  std::string out;
  batch({.scheme = scheme::failover, .style = style::exact})
      .run(
          "{\"id\":1,\"name\":\"n\",\"args\":[{\"t\":\"str\",\"v\":"
          "\"a\\n\\u0085\\u2028\\u2029\\u00e9\\u2020b\"}]}",
          out);
  EXPECT_NE(out.find("\"raw_key\":\"a\\n\\u0085\\u2028\\u2029é†b\""), std::string::npos) << out;
}

}  // namespace
