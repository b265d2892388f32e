// Secrets in payloads and URLs are hidden.

#include "serve/auth/masking.hpp"

#include <gtest/gtest.h>

#include <string>

namespace {

using namespace holdfast::detail::serve;

TEST(AuthMasking, NamesOfSecrets) {
  for (const auto* name :
       {"password",    "Password",     "userPassword", "user_password", "PASSWORD_HASH", "token",
        "accessToken", "access-token", "secret",       "clientSecret",  "iban",          "IBAN",
        "debtor_iban", "card",         "cardHolder",   "card_number",   "creditCard",    "pin",
        "apiKey",      "api_key",      "x-api-key",    "Authorization", "set-cookie",    "cvc",
        "ssn",         "pwd",          "privateKey",   "session_id"})
    EXPECT_TRUE(is_sensitive_name(name)) << name;
  for (const auto* name : {"", "name", "discard", "spin", "key", "partitionKey", "author", "span",
                           "company", "cardinality", "id", "amount", "bypass"})
    EXPECT_FALSE(is_sensitive_name(name)) << name;
}

TEST(AuthMasking, MembersAtAnyDepth) {
  EXPECT_EQ(mask_json(R"({"a":1,"password":"x","b":[{"iban":{"no":"DE1"}},{"c":null}]})"),
            R"({"a":1,"password":"***","b":[{"iban":"***"},{"c":null}]})");
  EXPECT_EQ(mask_json(R"({"token":null,"card":false})"), R"({"token":null,"card":"***"})");
  EXPECT_EQ(mask_json(R"([18446744073709551615,-9223372036854775808,1.5,"ü\"",true])"),
            R"([18446744073709551615,-9223372036854775808,1.5,"ü\"",true])");
  EXPECT_EQ(mask_json("\"text\""), "\"text\"");
  // The name may be written with an escape.
  EXPECT_EQ(mask_json(R"({"p\u0061ssword":"x"})"), R"({"password":"***"})");
  EXPECT_EQ(mask_json(R"({"password":"x","password":"y"})"),
            R"({"password":"***","password":"***"})");
}

TEST(AuthMasking, WhatIsNotJsonIsNotShown) {
  for (const auto* text : {"", "{", "password=x", "{\"a\":1}x", "\"\xFF\""})
    EXPECT_FALSE(mask_json(text)) << text;
  EXPECT_FALSE(mask_json(std::string(100'000, '[')));
  // As deep as the parser admits.
  const auto deep = std::string(1'000, '[') + std::string(1'000, ']');
  EXPECT_EQ(mask_json(deep), deep);
}

TEST(AuthMasking, ValuesOfUrls) {
  EXPECT_EQ(mask_url("/v1/a?code=FR&x="), "/v1/a?code=***&x=***");
  EXPECT_EQ(mask_url("/v1/a"), "/v1/a");
  EXPECT_EQ(mask_url("/v1/a?secret"), "/v1/a?***");
  EXPECT_EQ(mask_url("/v1/a?"), "/v1/a?***");
  EXPECT_EQ(mask_url("https://u:p@h/a?b=c#token=d"), "https://u:***@h/a?b=***#***");
  EXPECT_EQ(mask_url("/a#b?c=d"), "/a#***");
}

}  // namespace
