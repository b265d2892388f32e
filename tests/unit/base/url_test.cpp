#include "base/url.hpp"

#include <holdfast/error.hpp>

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace {

using namespace holdfast;

TEST(Url, IsTakenApart) {
  const auto all = detail::parse_url(
      "postgresql://us%40er:p%3Ass@db.example:5433/"
      "my%20db?sslmode=verify-full&application_name=a%26b");
  EXPECT_EQ(all.scheme, "postgresql");
  EXPECT_EQ(all.user, "us@er");
  EXPECT_EQ(all.password, "p:ss");
  EXPECT_EQ(all.host, "db.example");
  EXPECT_EQ(all.port, 5433U);
  EXPECT_EQ(all.path, "my db");
  EXPECT_EQ(all.parameters.at("sslmode"), "verify-full");
  EXPECT_EQ(all.parameters.at("application_name"), "a&b");

  EXPECT_EQ(detail::parse_url("mysql://[::1]:3307/x").host, "::1");
  EXPECT_EQ(detail::parse_url("mysql://[::1]:3307/x").port, 3307U);
  EXPECT_EQ(detail::parse_url("mysql://h/x").user, std::nullopt);
  EXPECT_EQ(detail::parse_url("sqlite:a/b.db").path, "a/b.db");
  EXPECT_FALSE(detail::parse_url("sqlite:a/b.db").has_authority);
  EXPECT_EQ(detail::parse_url("sqlite:///a/b.db").path, "a/b.db");
  EXPECT_TRUE(detail::parse_url("sqlite:///a/b.db").has_authority);
}

TEST(Url, NamesSeveralHosts) {
  const auto list = detail::parse_url_of_hosts("mysql://u:p,w@h1:3307,[::1],h%2C2:1/x");
  EXPECT_EQ(list.password, "p,w");
  ASSERT_EQ(list.hosts.size(), 3U);
  EXPECT_EQ(list.hosts[0].name, "h1");
  EXPECT_EQ(list.hosts[0].port, 3307U);
  EXPECT_EQ(list.hosts[1].name, "::1");
  EXPECT_EQ(list.hosts[1].port, std::nullopt);
  EXPECT_EQ(list.hosts[2].name, "h,2");
  EXPECT_EQ(list.hosts[2].port, 1U);
  EXPECT_EQ(list.host, "h1");
  EXPECT_EQ(list.port, 3307U);
  EXPECT_TRUE(detail::parse_url_of_hosts("sqlite:a.db").hosts.empty());
  for (const char* bad :
       {"mysql://h1,,h2/x", "mysql://h1,/x", "mysql://,h1/x", "mysql://h1:0,h2/x"})
    EXPECT_THROW((void)detail::parse_url_of_hosts(bad), holdfast::error) << bad;
  EXPECT_THROW((void)detail::parse_url("https://h1,h2/x"), holdfast::error)
      << "where one is expected, none may be ignored";
  EXPECT_EQ(detail::without_password("mysql://u:secret@h1:1,h2:2/x"), "mysql://u:***@h1:1,h2:2/x");
}

TEST(Url, MistakesAreNamedWithoutThePassword) {
  for (const char* bad :
       {"", "plain", ":x", "mysql://h:0/x", "mysql://h:99999/x", "mysql://h:1x/x", "mysql://[::1/x",
        "mysql://[::1]x/y", "mysql://h/%zz", "mysql://h/%4", "mysql://h/x?a", "mysql://h/x?=1",
        "mysql://h/x?a=1&a=2", "mysql://u:secret@h:x/y"}) {
    try {
      (void)detail::parse_url(bad);
      ADD_FAILURE() << "accepted: " << bad;
    } catch (const holdfast::error& e) {
      EXPECT_EQ(e.code(), holdfast::errc::invalid_argument) << bad;
      EXPECT_EQ(std::string(e.what()).find("secret"), std::string::npos);
    }
  }
}

TEST(Url, HasNoNulCharacter) {
  using namespace std::string_view_literals;
  for (const auto bad :
       {"mysql://[::1\0]/x"sv, "mysql://h\0/x"sv, "sqlite:a\0b"sv, "mysql://h/%00"sv}) {
    EXPECT_THROW((void)detail::parse_url(bad), holdfast::error) << bad;
  }
}

TEST(Url, CanBeShown) {
  EXPECT_EQ(detail::without_password("mysql://u:secret@h/x"), "mysql://u:***@h/x");
  EXPECT_EQ(detail::without_password("mysql://u:s:e@c@h/x?y=1"), "mysql://u:***@h/x?y=1");
  EXPECT_EQ(detail::without_password("mysql://u@h:1/x"), "mysql://u@h:1/x");
  EXPECT_EQ(detail::without_password("sqlite:a.db"), "sqlite:a.db");
  EXPECT_EQ(detail::without_password("mysql://u:a/b?c@h/x"), "mysql://u:***@h/x");
  EXPECT_EQ(detail::without_password("redis://secret@h"), "redis://***@h");
  EXPECT_EQ(detail::without_password("postgresql://h/x?password=a%26b&user=u"),
            "postgresql://h/x?password=***&user=u");
  EXPECT_EQ(detail::without_password("postgresql://h/x?user=u&%70ass%57ORD=secret"),
            "postgresql://h/x?user=u&%70ass%57ORD=***");
  EXPECT_EQ(detail::without_password("postgresql://h/x?sslpassword=s"),
            "postgresql://h/x?sslpassword=***");
  EXPECT_EQ(detail::without_password("https://h/x?token=s"), "https://h/x?token=***");
  EXPECT_EQ(detail::without_password("odbc:Driver=x;pwd = {a;}}b};UID=u"),
            "odbc:Driver=x;pwd =***;UID=u");
  EXPECT_EQ(detail::without_password("ODBC:Password=s"), "ODBC:Password=***");
  EXPECT_EQ(detail::without_password("a password=x in other words"), "a password=x in other words");
}

TEST(Url, SecretsAreMaskedInMessages) {
  EXPECT_EQ(detail::without_secrets(
                "no command 'postgresql://u:pw@h/x?password=p w'; see 'holdfast --help'"),
            "no command 'postgresql://u:***@h/x?password=***; see 'holdfast --help'");
  EXPECT_EQ(detail::without_secrets(
                "the variable a:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8= is not set"),
            "the variable a:*** is not set");
  EXPECT_EQ(detail::without_secrets("'AAECAwQFBgcICQoLDA0ODw=='"), "'***'");
  EXPECT_EQ(
      detail::without_secrets("x 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"),
      "x ***");
  for (const auto* text :
       {"cannot read '/var/lib/application/directory/with/a/long/name': No such file",
        "2024-01-31T12:00:00.000000Z", "fe378bef-459d-3ba5-bfb1-b6c2c8654d4c",
        "--payload-column=bytes"})
    EXPECT_EQ(detail::without_secrets(text), text);
}

}  // namespace
