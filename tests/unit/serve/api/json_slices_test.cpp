// Payloads are cut out of JSON unchanged.

#include "serve/api/json_slices.hpp"

#include <gtest/gtest.h>

namespace {

using namespace holdfast::detail::serve;

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
