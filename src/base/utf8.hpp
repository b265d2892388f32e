#pragma once

/// \file
/// UTF-8: validation, code points, encoding.

#include <holdfast/version.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail {

/// As is_utf8, with SIMD instructions: for long texts and texts that are not ASCII.
[[nodiscard]] HOLDFAST_API bool is_utf8_simd(std::string_view text) noexcept;

/// Returns true if the text is well-formed UTF-8: no overlong form, no surrogate, nothing beyond
/// U+10FFFF. Most texts are short and ASCII; they are checked inline, eight bytes at a time.
[[nodiscard]] inline bool is_utf8(std::string_view text) noexcept {
  if (text.size() >= 64) return is_utf8_simd(text);
  const char* p = text.data();
  std::size_t remaining = text.size();
  for (; remaining >= 8; p += 8, remaining -= 8) {
    std::uint64_t word;  // NOLINT(cppcoreguidelines-init-variables)
    std::memcpy(&word, p, 8);
    if ((word & 0x8080808080808080U) != 0) return is_utf8_simd(text);
  }
  for (; remaining != 0; ++p, --remaining) {
    if ((static_cast<unsigned char>(*p) & 0x80U) != 0) return is_utf8_simd(text);
  }
  return true;
}

/// Returns true for a byte that is not the first one of its code point.
[[nodiscard]] constexpr bool continues_code_point(char byte) noexcept {
  return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

/// The number of code points of a well-formed text.
[[nodiscard]] HOLDFAST_API std::size_t count_code_points(std::string_view text) noexcept;

/// The size in bytes of the first `count` code points of a well-formed text.
[[nodiscard]] HOLDFAST_API std::size_t prefix_size(std::string_view text,
                                                   std::size_t count) noexcept;

/// The size in bytes of the first code point, or 0 if the text is empty or does not begin with a
/// well-formed one.
[[nodiscard]] HOLDFAST_API std::size_t code_point_size(std::string_view text) noexcept;

/// Replaces each byte that is not part of well-formed UTF-8 by U+FFFD.
[[nodiscard]] HOLDFAST_API std::string replace_ill_formed(std::string_view text);

/// Characters beyond ASCII that a terminal obeys (C1 controls), that end a line, or that change the
/// order in which text is shown: with U+202E, `txt.exe` is shown as `exe.txt`.
[[nodiscard]] constexpr bool controls_display(char32_t code_point) noexcept {
  return (code_point >= 0x80 && code_point < 0xA0) || code_point == 0x61C || code_point == 0x200E ||
         code_point == 0x200F || (code_point >= 0x2028 && code_point <= 0x202E) ||
         (code_point >= 0x2066 && code_point <= 0x2069);
}

/// Returns the first code point of a well-formed text if it has 2 or 3 bytes, otherwise 0: none of
/// the longer ones controls the display.
[[nodiscard]] constexpr char32_t short_code_point(std::string_view text) noexcept {
  const auto bits = [&](std::size_t i, unsigned mask) {
    return static_cast<char32_t>(static_cast<unsigned char>(text[i]) & mask);
  };
  const auto first = text.empty() ? 0U : static_cast<unsigned char>(text.front());
  if (first >= 0xC0 && first < 0xE0 && text.size() >= 2)
    return (bits(0, 0x1FU) << 6U) | bits(1, 0x3FU);
  if (first >= 0xE0 && first < 0xF0 && text.size() >= 3)
    return (bits(0, 0x0FU) << 12U) | (bits(1, 0x3FU) << 6U) | bits(2, 0x3FU);
  return 0;
}

/// Writes a code point to `output`, which has room for 4 bytes, and returns its length. Returns 0
/// for a surrogate or a number beyond U+10FFFF.
[[nodiscard]] HOLDFAST_API std::size_t encode_utf8(char32_t code_point, char* output) noexcept;

}  // namespace HOLDFAST_NAMESPACE::detail
