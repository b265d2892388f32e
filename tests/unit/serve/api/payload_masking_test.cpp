// Payloads are cut out of JSON unchanged, and secrets in them are hidden.

#include "serve/api/payload_masking.hpp"

#include "serve/api/json_slices.hpp"

#include <gtest/gtest.h>

namespace {

using namespace holdfast::detail::serve;

TEST(PayloadMasking, HidesSecretsAtAnyDepth) {
  EXPECT_EQ(mask_json(R"({"user":"ann","Password": "p\"w" , "n":1.50})"),
            R"({"user":"ann","Password": "***" , "n":1.50})");
  EXPECT_EQ(mask_json(R"([{"a":{"access_token":{"x":[1,"]"]}}},{"iban":null}])"),
            R"([{"a":{"access_token":"***"}},{"iban":"***"}])");
  EXPECT_EQ(mask_json(R"({"pass\u0077ord":1})"), R"({"pass\u0077ord":"***"})");
  EXPECT_EQ(mask_json(R"(["password","token"])"), R"(["password","token"])");
  EXPECT_EQ(mask_json(R"({"text":"\"password\":1"})"), R"({"text":"\"password\":1"})");
  EXPECT_EQ(mask_json("7"), "7");
}

TEST(PayloadMasking, KnowsSecretNames) {
  for (const char* name : {"password", "clientSecret", "X-Api-Key", "Set-Cookie", "card",
                           "cardNumber", "IBAN", "pin", "Authorization", "refresh_token"})
    EXPECT_TRUE(is_secret_name(name)) << name;
  for (const char* name : {"name", "discard", "shipping", "euro", "company", ""})
    EXPECT_FALSE(is_secret_name(name)) << name;
}

TEST(JsonSlices, KeepsTheTextOfValues) {
  const std::string_view object = R"( { "a" : 1.50 , "b":{"x":"}"} ,"c":"q\"," , "d":[ 1 ,2] } )";
  EXPECT_EQ(member_slice(object, "a"), "1.50");
  EXPECT_EQ(member_slice(object, "b"), R"({"x":"}"})");
  EXPECT_EQ(member_slice(object, "c"), R"("q\",")");
  EXPECT_EQ(member_slice(object, "d"), "[ 1 ,2]");
  EXPECT_EQ(member_slice(object, "e"), "");
  EXPECT_EQ(member_slice("{}", "a"), "");
  const auto elements = element_slices(R"([ {"a":[1,2]} , "x,y", 7,null ])");
  ASSERT_EQ(elements.size(), 4U);
  EXPECT_EQ(elements[0], R"({"a":[1,2]})");
  EXPECT_EQ(elements[1], R"("x,y")");
  EXPECT_EQ(elements[2], "7");
  EXPECT_EQ(elements[3], "null");
}

TEST(JsonSlices, KnowsJsonTypes) {
  for (const char* type : {"application/json", "text/JSON ; charset=utf-8", "application/x+json"})
    EXPECT_TRUE(is_json_type(type)) << type;
  for (const char* type : {"text/plain", "json", "+json", ""}) EXPECT_FALSE(is_json_type(type));
}

}  // namespace
