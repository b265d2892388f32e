#include "sql/mysql/greeting.hpp"

#include <gtest/gtest.h>

#include <span>
#include <string>

namespace {

using namespace std::string_literals;
using holdfast::detail::sql::mysql::greeting;

greeting read(const std::string& bytes) {
  return holdfast::detail::sql::mysql::read_greeting(std::as_bytes(std::span(bytes)));
}

/// The greeting of a server up to its first capabilities.
std::string packet(const std::string& version, const std::string& capabilities) {
  return "\x4a\0\0\0\x0a"s + version + "\0\1\0\0\0abcdefgh\0"s + capabilities;
}

TEST(MysqlGreeting, SaysWhetherTheServerOffersTls) {
  EXPECT_EQ(read(packet("10.11.19-MariaDB", "\xfe\xff"s)), greeting::offers_tls);
  EXPECT_EQ(read(packet("10.11.19-MariaDB", "\xfe\xf7"s)), greeting::without_tls);
  EXPECT_EQ(read(packet("", "\0\x08"s)), greeting::offers_tls);
  EXPECT_EQ(read(packet("", "\x08\0"s)), greeting::without_tls);
}

TEST(MysqlGreeting, IsNotJudgedBeforeItIsComplete) {
  const auto whole = packet("8.0.36", "\xff\xff"s);
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_EQ(read(whole.substr(0, length)), greeting::incomplete) << length;
  EXPECT_EQ(read(whole + "and more"), greeting::offers_tls);
}

TEST(MysqlGreeting, ThatHasNoEndIsRefused) {
  EXPECT_EQ(read("\xff\xff\xff\0\x0a"s +
                 std::string(holdfast::detail::sql::mysql::longest_greeting, 'v')),
            greeting::not_a_greeting);
}

TEST(MysqlGreeting, ThatEndsBeforeItsCapabilitiesIsRefused) {
  auto whole = packet("8.0.36", "\xff\xff"s);
  for (std::size_t length = 0; length < whole.size() - 4; ++length) {
    whole[0] = static_cast<char>(length);
    EXPECT_EQ(read(whole), greeting::not_a_greeting) << length;
  }
  whole[0] = static_cast<char>(whole.size() - 4);
  EXPECT_EQ(read(whole), greeting::offers_tls);
}

TEST(MysqlGreeting, HasVersion10) {
  auto whole = packet("8.0.36", "\xff\xff"s);
  for (int version = 0; version < 255; ++version) {
    whole[4] = static_cast<char>(version);
    EXPECT_EQ(read(whole), version == 10 ? greeting::offers_tls : greeting::not_a_greeting)
        << version;
  }
  EXPECT_EQ(read("HTTP/1.1 400 Bad Request\r\n"), greeting::not_a_greeting);
}

TEST(MysqlGreeting, MayBeAnErrorButNoProgress) {
  EXPECT_EQ(read("\x17\0\0\0\xff\x10\x04Too many connections"s), greeting::failure);
  EXPECT_EQ(read("\x17\0\0\0\xff\x10"s), greeting::incomplete);
  EXPECT_EQ(read("\x02\0\0\0\xff\x10"s), greeting::not_a_greeting);
  EXPECT_EQ(read("\x0b\0\0\0\xff\xff\xff\1\1"s), greeting::not_a_greeting);
}

}  // namespace
