#pragma once

// What the tests of bytes on the wire share: hexadecimal text, published vectors, and an assertion about errors.

#include <holdfast/error.hpp>
#include <holdfast/key/value.hpp>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstddef>
#include <fstream>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace wire {

using holdfast::key::byte_string;

inline byte_string from_hex(std::string_view hex) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  byte_string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) bytes.push_back(static_cast<std::byte>(digit(hex[i]) * 16 + digit(hex[i + 1])));
  return bytes;
}

inline std::string to_hex(std::span<const std::byte> bytes) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string hex;
  for (const auto byte : bytes) {
    hex += digits[std::to_integer<unsigned>(byte) >> 4U];
    hex += digits[std::to_integer<unsigned>(byte) & 15U];
  }
  return hex;
}

/// `{"c0", 3}` is c0c0c0: long test data are written as what is repeated.
inline byte_string repeated(std::string_view hex, std::size_t count) {
  const byte_string once = from_hex(hex);
  byte_string bytes;
  bytes.reserve(once.size() * count);
  for (std::size_t i = 0; i < count; ++i) bytes.insert(bytes.end(), once.begin(), once.end());
  return bytes;
}
inline byte_string repeated(const nlohmann::json& piece) {
  return repeated(piece.at(0).get<std::string>(), piece.at(1).get<std::size_t>());
}

inline byte_string operator+(byte_string left, const byte_string& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

inline byte_string bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

/// A list of the published vectors that the repository carries. An empty one would prove nothing.
inline nlohmann::json vectors(const std::string& set, const std::string& group) {
  std::ifstream file(std::string(HOLDFAST_TEST_VECTORS) + '/' + set + ".json");
  if (!file) throw std::runtime_error("cannot read the vectors " + set);
  auto list = nlohmann::json::parse(file).at(group);
  if (list.empty()) throw std::runtime_error("no vectors in " + set + ", " + group);
  return list;
}

/// The error that a call ends with, or nothing.
inline std::optional<holdfast::error> error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const holdfast::error& thrown) {
    return thrown;
  }
  return std::nullopt;
}

}  // namespace wire

/// The call ends with this error; continue with `<<` to say which case it is.
#define EXPECT_ERROR(expected_code, call)                                                                                     \
  if (const auto thrown = wire::error_of([&] { static_cast<void>(call); }); !thrown) ADD_FAILURE() << "no error from " #call; \
  else EXPECT_EQ(holdfast::to_string(thrown->code()), holdfast::to_string(expected_code)) << thrown->what()
