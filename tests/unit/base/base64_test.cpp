#include "base/base64.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace holdfast::test {
namespace {

using detail::base64_instructions;
using detail::base64_size;
using detail::decode_base64;
using detail::decoded_base64_size;
using detail::encode_base64;

constexpr std::array all_instructions{base64_instructions::best, base64_instructions::avx2,
                                      base64_instructions::scalar};

std::string encoded(std::string_view bytes,
                    base64_instructions instructions = base64_instructions::best) {
  std::string text(base64_size(bytes.size()), '?');
  encode_base64(std::as_bytes(std::span(bytes)), text.data(), instructions);
  return text;
}

/// Decodes into a buffer of the exact size, so that a sanitizer detects an overflow.
std::optional<std::string> decoded(std::string_view text,
                                   base64_instructions instructions = base64_instructions::best) {
  const auto size = decoded_base64_size(text);
  if (!size) return std::nullopt;
  const std::vector<char> exact(text.begin(), text.end());
  std::vector<std::byte> bytes(*size);
  if (!decode_base64({exact.data(), exact.size()}, bytes.data(), instructions)) return std::nullopt;
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

std::string bytes_of(std::size_t size) {
  std::string bytes(size, '\0');
  std::uint32_t state = 12345 + static_cast<std::uint32_t>(size);
  for (char& byte : bytes)
    byte = static_cast<char>((state = state * 1664525U + 1013904223U) >> 24U);
  return bytes;
}

TEST(Base64, ThePublishedExamples) {
  const std::array<std::pair<const char*, const char*>, 7> examples{{{"", ""},
                                                                     {"f", "Zg=="},
                                                                     {"fo", "Zm8="},
                                                                     {"foo", "Zm9v"},
                                                                     {"foob", "Zm9vYg=="},
                                                                     {"fooba", "Zm9vYmE="},
                                                                     {"foobar", "Zm9vYmFy"}}};
  for (const auto& [plain, text] : examples) {
    EXPECT_EQ(encoded(plain), text);
    EXPECT_EQ(decoded(text), plain);
  }
}

TEST(Base64, AllInstructionsGiveTheSameResult) {
  for (std::size_t size = 0; size < 400; ++size) {
    const auto bytes = bytes_of(size);
    const auto text = encoded(bytes, base64_instructions::scalar);
    for (const auto instructions : all_instructions) {
      ASSERT_EQ(encoded(bytes, instructions), text) << size;
      ASSERT_EQ(decoded(text, instructions), bytes) << size;
    }
  }
}

TEST(Base64, EveryWrongCharacterIsSeenAnywhere) {
  const auto good = encoded(bytes_of(192));
  for (const auto instructions : all_instructions) {
    for (std::size_t position = 0; position < good.size(); ++position) {
      for (int c = 0; c < 256; ++c) {
        auto text = good;
        text[position] = static_cast<char>(c);
        const bool digit =
            std::string_view("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
                .find(static_cast<char>(c)) != std::string_view::npos;
        const bool padding = c == '=' && position + 1 == good.size();
        if (padding) continue;
        ASSERT_EQ(decoded(text, instructions).has_value(), digit)
            << "instructions " << static_cast<int>(instructions) << ", character " << c << " at "
            << position;
      }
    }
  }
}

TEST(Base64, RefusesWhatCouldBeWrittenAnotherWay) {
  for (const char* text : {"Zg=", "Zg", "Z===", "=", "====", "Zh==", "Zm9=", "Zg==Zg==", "Zm9v\n",
                           " Zm9v", "Zm9v=", "Zm-v", "Zm_v"}) {
    EXPECT_EQ(decoded(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace holdfast::test
