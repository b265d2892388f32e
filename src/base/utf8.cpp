#include "base/utf8.hpp"

#include <simdjson.h>

#include <cstdint>

namespace HOLDFAST_NAMESPACE::detail {

bool is_utf8_simd(std::string_view text) noexcept {
  return simdjson::validate_utf8(text.data(), text.size());
}

std::size_t count_code_points(std::string_view text) noexcept {
  std::size_t count = 0;
  for (const char c : text) count += continues_code_point(c) ? 0U : 1U;
  return count;
}

std::size_t prefix_size(std::string_view text, std::size_t count) noexcept {
  std::size_t size = 0;
  while (size < text.size()) {
    if (!continues_code_point(text[size]) && count-- == 0) break;
    ++size;
  }
  return size;
}

std::size_t code_point_size(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto continues = [&](std::size_t i) {
    return i < text.size() && continues_code_point(text[i]);
  };
  if (text.empty()) return 0;
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return continues(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    if (!continues(1) || !continues(2)) return 0;
    if (first == 0xe0 && byte(1) < 0xa0) return 0;
    if (first == 0xed && byte(1) > 0x9f) return 0;
    return 3;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    if (!continues(1) || !continues(2) || !continues(3)) return 0;
    if (first == 0xf0 && byte(1) < 0x90) return 0;
    if (first == 0xf4 && byte(1) > 0x8f) return 0;
    return 4;
  }
  return 0;
}

std::string replace_ill_formed(std::string_view text) {
  if (is_utf8(text)) return std::string(text);
  std::string result;
  while (!text.empty()) {
    const std::size_t size = code_point_size(text);
    result.append(size == 0 ? "\xEF\xBF\xBD" : text.substr(0, size));
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return result;
}

std::size_t encode_utf8(char32_t code_point, char* output) noexcept {
  const auto c = static_cast<std::uint32_t>(code_point);
  const auto tail = [](std::uint32_t bits) { return static_cast<char>(0x80U | (bits & 0x3FU)); };
  if (c < 0x80) {
    output[0] = static_cast<char>(c);
    return 1;
  }
  if (c < 0x800) {
    output[0] = static_cast<char>(0xC0U | (c >> 6U));
    output[1] = tail(c);
    return 2;
  }
  if (c >= 0xD800 && c < 0xE000) return 0;
  if (c < 0x10000) {
    output[0] = static_cast<char>(0xE0U | (c >> 12U));
    output[1] = tail(c >> 6U);
    output[2] = tail(c);
    return 3;
  }
  if (c > 0x10FFFF) return 0;
  output[0] = static_cast<char>(0xF0U | (c >> 18U));
  output[1] = tail(c >> 12U);
  output[2] = tail(c >> 6U);
  output[3] = tail(c);
  return 4;
}

}  // namespace HOLDFAST_NAMESPACE::detail
