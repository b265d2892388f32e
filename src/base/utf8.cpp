#include "base/utf8.hpp"

#include <simdjson.h>

#include <cstdint>

namespace HOLDFAST_NAMESPACE {

bool detail::is_utf8_by_vectors(std::string_view text) noexcept { return simdjson::validate_utf8(text.data(), text.size()); }

namespace {
constexpr bool starts_code_point(char c) noexcept { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }
}  // namespace

std::size_t count_code_points(std::string_view text) noexcept {
  std::size_t count = 0;
  for (const char c : text) count += starts_code_point(c) ? 1U : 0U;
  return count;
}

std::size_t code_point_prefix(std::string_view text, std::size_t count) noexcept {
  std::size_t at = 0;
  while (at < text.size()) {
    if (starts_code_point(text[at]) && count-- == 0) break;
    ++at;
  }
  return at;
}

std::size_t encode_utf8(char32_t code_point, char* to) noexcept {
  const auto c = static_cast<std::uint32_t>(code_point);
  const auto tail = [](std::uint32_t bits) { return static_cast<char>(0x80U | (bits & 0x3FU)); };
  if (c < 0x80) {
    to[0] = static_cast<char>(c);
    return 1;
  }
  if (c < 0x800) {
    to[0] = static_cast<char>(0xC0U | (c >> 6U));
    to[1] = tail(c);
    return 2;
  }
  if (c >= 0xD800 && c < 0xE000) return 0;
  if (c < 0x10000) {
    to[0] = static_cast<char>(0xE0U | (c >> 12U));
    to[1] = tail(c >> 6U);
    to[2] = tail(c);
    return 3;
  }
  if (c > 0x10FFFF) return 0;
  to[0] = static_cast<char>(0xF0U | (c >> 18U));
  to[1] = tail(c >> 12U);
  to[2] = tail(c >> 6U);
  to[3] = tail(c);
  return 4;
}

}  // namespace HOLDFAST_NAMESPACE
