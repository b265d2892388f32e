#pragma once

// Helpers for tests of wire formats: hexadecimal text, published vectors, and an assertion about
// errors.

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
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(digit(hex[i]) * 16 + digit(hex[i + 1])));
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

/// `repeated("c0", 3)` is c0c0c0.
inline byte_string repeated(std::string_view hex, std::size_t count) {
  const byte_string part = from_hex(hex);
  byte_string bytes;
  bytes.reserve(part.size() * count);
  for (std::size_t i = 0; i < count; ++i) bytes.insert(bytes.end(), part.begin(), part.end());
  return bytes;
}
/// The same from a vector file: `["c0", 3]`.
inline byte_string repeated(const nlohmann::json& piece) {
  return repeated(piece.at(0).get<std::string>(), piece.at(1).get<std::size_t>());
}

inline byte_string operator+(byte_string a, const byte_string& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

inline byte_string bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

/// Reads a group of published vectors. Throws if there are none, because the test would pass then.
inline nlohmann::json vectors(const std::string& set, const std::string& group) {
  std::ifstream file(std::string(HOLDFAST_TEST_VECTORS) + '/' + set + ".json");
  if (!file) throw std::runtime_error("cannot read the vectors " + set);
  auto list = nlohmann::json::parse(file).at(group);
  if (list.empty()) throw std::runtime_error("no vectors in " + set + ", " + group);
  return list;
}

/// The error that a call throws, or nullopt.
inline std::optional<holdfast::error> error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const holdfast::error& thrown) {
    return thrown;
  }
  return std::nullopt;
}

}  // namespace wire

/// Expects that the call throws this error. Use `<<` to name the case.
#define EXPECT_ERROR(expected_code, call)                                              \
  if (const auto thrown = wire::error_of([&] { static_cast<void>(call); }); !thrown)   \
    ADD_FAILURE() << "no error from " #call;                                           \
  else                                                                                 \
    EXPECT_EQ(holdfast::to_string(thrown->code()), holdfast::to_string(expected_code)) \
        << thrown->what()
