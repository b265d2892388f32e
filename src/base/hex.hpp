#pragma once

#include <holdfast/version.hpp>

namespace HOLDFAST_NAMESPACE {

/// The value of a hexadecimal digit, or -1 if the character is not one.
[[nodiscard]] constexpr int hex_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace HOLDFAST_NAMESPACE
