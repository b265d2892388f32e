#include "redis/reply_reader.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace holdfast;
using detail::redis::reply_reader;
using redis::reply;

constexpr std::size_t limit = 1 << 20;

errc read_error(std::string_view bytes, std::size_t max_reply = limit) {
  reply_reader reader(max_reply);
  try {
    reader.feed(bytes);
    while (reader.next()) continue;
  } catch (const error& refused) {
    return refused.code();
  }
  ADD_FAILURE() << "was not refused: " << bytes.substr(0, 50);
  return errc::internal;
}

TEST(RedisReplyReader, ReadsEveryTypeInPiecesOfAnySize) {
  using namespace std::string_view_literals;
  const auto bytes =
      "+OK\r\n:-7\r\n$3\r\na\0b\r\n$-1\r\n*-1\r\n*3\r\n:1\r\n*0\r\n*2\r\n$0\r\n\r\n-WRONGTYPE no\r\n-ERR unknown command 'x'\r\n"sv;
  for (const std::size_t step : {std::size_t{1}, std::size_t{2}, std::size_t{7}, bytes.size()}) {
    reply_reader reader(limit);
    std::vector<reply> replies;
    for (std::size_t offset = 0; offset < bytes.size(); offset += step) {
      reader.feed(bytes.substr(offset, step));
      while (auto next = reader.next()) replies.push_back(std::move(*next));
    }
    EXPECT_TRUE(reader.empty());
    ASSERT_EQ(replies.size(), 7U);
    EXPECT_EQ(replies[0].text(), "OK");
    EXPECT_EQ(replies[1].integer(), -7);
    EXPECT_EQ(replies[2].text(), "a\0b"sv);
    EXPECT_TRUE(replies[3].is_nil());
    EXPECT_TRUE(replies[4].is_nil());
    ASSERT_EQ(replies[5].elements().size(), 3U);
    EXPECT_EQ(replies[5].elements()[0].integer(), 1);
    EXPECT_TRUE(replies[5].elements()[1].elements().empty());
    EXPECT_EQ(replies[5].elements()[2].elements()[0].text(), "");
    EXPECT_EQ(replies[5].elements()[2].elements()[1].problem().backend_code(), "WRONGTYPE");
    EXPECT_EQ(replies[6].problem().code(), errc::grammar);
  }
}

TEST(RedisReplyReader, MillionsOfNestedListsAreAnError) {
  std::string deep;
  for (int i = 0; i < 3'000'000; ++i) deep += "*1\r\n";
  EXPECT_EQ(read_error(deep), errc::too_deep);
}

TEST(RedisReplyReader, ListsMayBeNestedUpToTheLimit) {
  std::string lists;
  for (std::size_t i = 0; i < reply_reader::max_depth; ++i) lists += "*2\r\n+a\r\n";
  const std::string deepest = lists + ":1\r\n";
  for (const std::size_t step : {std::size_t{1}, deepest.size()}) {
    reply_reader reader(limit);
    std::optional<reply> complete;
    for (std::size_t offset = 0; offset < deepest.size(); offset += step) {
      EXPECT_FALSE(complete.has_value());
      reader.feed(deepest.substr(offset, step));
      complete = reader.next();
    }
    ASSERT_TRUE(complete.has_value());
    EXPECT_TRUE(reader.empty());
    const reply* inner = &*complete;
    for (std::size_t i = 0; i < reply_reader::max_depth; ++i) {
      ASSERT_EQ(inner->elements().size(), 2U);
      EXPECT_EQ(inner->elements()[0].text(), "a");
      inner = &inner->elements()[1];
    }
    EXPECT_EQ(inner->integer(), 1);
  }
  EXPECT_EQ(read_error(lists + "*1\r\n"), errc::too_deep);
}

TEST(RedisReplyReader, KeepsItsPlaceBetweenReplies) {
  reply_reader reader(limit);
  reader.feed("*2\r\n:1\r\n");
  EXPECT_FALSE(reader.next().has_value());
  EXPECT_FALSE(reader.empty());
  reader.feed(":2\r\n+next\r");
  EXPECT_EQ(reader.next()->elements()[1].integer(), 2);
  EXPECT_FALSE(reader.next().has_value());
  EXPECT_FALSE(reader.empty());
  reader.feed("\n");
  EXPECT_EQ(reader.next()->text(), "next");
  EXPECT_TRUE(reader.empty());
}

TEST(RedisReplyReader, OversizeIsAnErrorBeforeItTakesMemory) {
  EXPECT_EQ(read_error("*2147483647\r\n"), errc::too_large);
  EXPECT_EQ(read_error("$2000000\r\n" + std::string(2'000'000, 'x') + "\r\n"), errc::too_large);
  // An incomplete reply is refused as soon as the buffer exceeds the limit.
  reply_reader reader(1000);
  reader.feed("$100000\r\n");
  EXPECT_FALSE(reader.next().has_value());
  reader.feed(std::string(2'000, 'x'));
  EXPECT_THROW((void)reader.next(), error);
  // Many small texts in one list.
  std::string many = "*10000\r\n";
  for (int i = 0; i < 10'000; ++i) many += "$1\r\nx\r\n";
  EXPECT_EQ(read_error(many, 100'000), errc::too_large);
}

TEST(RedisReplyReader, LimitIsForEachReply) {
  reply_reader reader(1000);
  for (int i = 0; i < 100; ++i) {
    reader.feed("$900\r\n" + std::string(900, 'x') + "\r\n");
    ASSERT_TRUE(reader.next().has_value());
  }
}

TEST(RedisReplyReader, RefusesOtherProtocols) {
  EXPECT_EQ(read_error("HTTP/1.1 400 Bad Request\r\n"), errc::malformed);
  EXPECT_EQ(read_error("$-5\r\n"), errc::malformed);
  EXPECT_EQ(read_error("*99999999999999999999\r\n"), errc::malformed);
  EXPECT_EQ(read_error("%1\r\n+a\r\n+b\r\n"), errc::malformed);
  EXPECT_EQ(read_error("\r\n"), errc::malformed);
  EXPECT_EQ(read_error(":1x\r\n"), errc::malformed);
  EXPECT_EQ(read_error("$3\r\nabcde\r\n"), errc::malformed);
}

}  // namespace
