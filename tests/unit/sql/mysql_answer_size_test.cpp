#include "sql/mysql/answer_size.hpp"

#include <gtest/gtest.h>

#include <span>
#include <string>

namespace {

using namespace std::string_literals;
using holdfast::detail::sql::mysql::answer_size;

TEST(MysqlAnswerSize, CountsBytesAndPacketsHoweverTheyArrive) {
  const auto bytes = "\3\0\0\1abc\0\0\0\2"s + "\x2c\1\0\3"s + std::string(300, 'x') + "\1\0"s;
  const auto expected = bytes.size() + 3 * answer_size::cost_of_packet;
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
    answer_size size;
    for (std::size_t at = 0; at < bytes.size(); at += piece)
      size.add(std::as_bytes(std::span(bytes)).subspan(at, std::min(piece, bytes.size() - at)));
    EXPECT_EQ(size.cost(), expected) << piece;
  }
}

TEST(MysqlAnswerSize, ARestartKeepsThePlaceInThePacket) {
  const auto bytes = "\5\0\0\1abcde\1\0\0\2x"s;
  answer_size size;
  size.add(std::as_bytes(std::span(bytes)).first(6));
  size.restart();
  EXPECT_EQ(size.cost(), 0U);
  size.add(std::as_bytes(std::span(bytes)).subspan(6));
  EXPECT_EQ(size.cost(), bytes.size() - 6 + answer_size::cost_of_packet);
}

}  // namespace
