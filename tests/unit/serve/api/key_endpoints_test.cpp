// POST /v1/keys gives what `holdfast key batch` gives.

#include <holdfast/key/batch.hpp>

#include "support/api_resources.hpp"

#include <gtest/gtest.h>

#include <string>

namespace {

using namespace holdfast;
using test::is_problem;

struct KeyEndpoints : ::testing::Test {
  test::api_resources api{};

  auto post(const std::string& query, const std::string& body,
            std::string_view type = "application/json", std::string_view bearer = "app key:make") {
    return api.send("POST", "/v1/keys" + query, bearer, body, {}, type);
  }
  static std::string line_of(key::batch_options options, std::string_view line) {
    std::string answer;
    key::batch(std::move(options)).run(line, answer);
    return answer;
  }
};

constexpr auto country =
    R"({"id":2,"name":"country:c","args":[{"t":"str","v":"F:R"}],"domain":"geo"})";

TEST_F(KeyEndpoints, ACaseGivesTheLineOfABatch) {
  for (const auto style : {key::style::escaped, key::style::exact}) {
    const auto line = line_of({.scheme = key::scheme::failover, .style = style}, country);
    const auto answer = post(
        style == key::style::exact ? "?scheme=failover&style=exact" : "?scheme=failover", country);
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.fields.find("Content-Type"), "application/json");
    EXPECT_EQ(answer.body + "\n", line);
  }
}

TEST_F(KeyEndpoints, EverySchemeAndDialect) {
  const std::string cachekit =
      R"({"id":"a","module":"m","qualname":"q","args":[],"kwargs":[],"serializer":"orjson"})";
  for (const auto& [name, dialect] : {std::pair{"current", key::dialect::current},
                                      {"py_0_17", key::dialect::py_0_17},
                                      {"v1_0", key::dialect::v1_0}}) {
    EXPECT_EQ(post("?scheme=cachekit-auto&dialect=" + std::string(name), cachekit).body + "\n",
              line_of({.scheme = key::scheme::cachekit_auto, .dialect = dialect}, cachekit));
  }
  const std::string interop = R"({"namespace":"n","operation":"o","args":[{"t":"int","v":"1"}]})";
  EXPECT_EQ(post("?scheme=interop", interop).body + "\n",
            line_of({.scheme = key::scheme::interop}, interop));
  const std::string value = R"({"value":{"t":"int","v":"1"}})";
  EXPECT_EQ(post("?scheme=interop-value", value).body + "\n",
            line_of({.scheme = key::scheme::interop_value}, value));
}

TEST_F(KeyEndpoints, EachLineGetsOneLine) {
  const std::string cases = std::string(country) + "\n\n{\"id\":7}\r\n" + country;
  std::string expected;
  key::batch batch({.scheme = key::scheme::failover});
  for (const std::string& line :
       {std::string(country), std::string(), std::string("{\"id\":7}\r"), std::string(country)})
    batch.run(line, expected);
  const auto answer = post("?scheme=failover", cases, "application/x-ndjson; charset=utf-8");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.fields.find("Content-Type"), "application/x-ndjson");
  EXPECT_EQ(answer.body, expected);
}

TEST_F(KeyEndpoints, AnInvalidCaseIsAProblemWithItsPath) {
  EXPECT_TRUE(is_problem(post("?scheme=failover", R"({"id":1,"args":[{"t":"int","v":"x"}]})"), 400,
                         "\"path\":\"args[0]"));
  EXPECT_TRUE(is_problem(post("?scheme=failover", "{"), 400, "malformed"));
  EXPECT_TRUE(is_problem(post("?scheme=failover", "[]"), 400, "a case must be a JSON object"));
  EXPECT_TRUE(is_problem(
      post("?scheme=interop-value", R"({"value":{"t":"int","v":"99999999999999999999999"}})"), 422,
      "out_of_range"));
}

TEST_F(KeyEndpoints, TheSchemeMustBeOneOfFour) {
  EXPECT_TRUE(is_problem(post("", country), 400, "failover, cachekit-auto, interop"));
  EXPECT_TRUE(is_problem(post("?scheme=md5", country), 400, "\"path\":\"scheme\""));
  EXPECT_TRUE(is_problem(post("?scheme=failover&style=loud", country), 400, "escaped, exact"));
  EXPECT_TRUE(
      is_problem(post("?scheme=cachekit-auto&dialect=x", country), 400, "current, py_0_17, v1_0"));
}

TEST_F(KeyEndpoints, ContentIsLimited) {
  const std::string large = R"({"id":")" + std::string(std::size_t{1} << 20U, 'x') + "\"}";
  EXPECT_TRUE(is_problem(post("?scheme=failover", large), 413, "application/x-ndjson"));
  EXPECT_EQ(post("?scheme=failover", large, "application/x-ndjson").status, 200);
  EXPECT_TRUE(
      is_problem(post("?scheme=failover", std::string(100'001, '\n'), "application/x-ndjson"), 413,
                 "100,000"));
  EXPECT_EQ(post("?scheme=failover", std::string((std::size_t{16} << 20U) + 1, 'x'),
                 "application/x-ndjson")
                .status,
            413);
}

TEST_F(KeyEndpoints, NeedTheScope) {
  EXPECT_EQ(post("?scheme=failover", country, "application/json", "app store:main:read").status,
            403);
  EXPECT_EQ(post("?scheme=failover", country, "application/json", "viewer").status, 403);
  EXPECT_EQ(post("?scheme=failover", country, "application/json", "app key:make @acme").status,
            200);
}

}  // namespace
