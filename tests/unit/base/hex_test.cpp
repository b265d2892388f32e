#include "base/hex.hpp"

#include <gtest/gtest.h>

namespace holdfast::test {
namespace {

using detail::append_hex;
using detail::from_hex;

TEST(Hex, WritesAndReadsEveryByte) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  std::string hex;
  append_hex(hex, bytes);
  EXPECT_EQ(hex.substr(0, 6), "000102");
  EXPECT_EQ(hex.substr(hex.size() - 4), "feff");
  std::string read(bytes.size(), '\0');
  ASSERT_TRUE(from_hex(hex, reinterpret_cast<unsigned char*>(read.data())));
  EXPECT_EQ(read, bytes);
}

TEST(Hex, ReadsBothCasesAndRefusesOtherText) {
  unsigned char byte = 0;
  EXPECT_TRUE(from_hex("aF", &byte));
  EXPECT_EQ(byte, 0xAFU);
  EXPECT_FALSE(from_hex("a", &byte));
  EXPECT_FALSE(from_hex("0g", &byte));
  EXPECT_FALSE(from_hex("+1", &byte));
}

}  // namespace
}  // namespace holdfast::test
