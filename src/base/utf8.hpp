#pragma once

#include <holdfast/version.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace HOLDFAST_NAMESPACE {

namespace detail {
[[nodiscard]] HOLDFAST_API bool is_utf8_by_vectors(std::string_view text) noexcept;
}

/// Well-formed UTF-8: no overlong form, no surrogate, nothing beyond U+10FFFF.
/// Most texts are short and ASCII: eight bytes at a time, without a call. Long ones, and anything else, go to the vector code.
[[nodiscard]] inline bool is_utf8(std::string_view text) noexcept {
  if (text.size() >= 64) return detail::is_utf8_by_vectors(text);
  const char* p = text.data();
  std::size_t left = text.size();
  for (; left >= 8; p += 8, left -= 8) {
    std::uint64_t word;  // NOLINT(cppcoreguidelines-init-variables)
    std::memcpy(&word, p, 8);
    if ((word & 0x8080808080808080U) != 0) return detail::is_utf8_by_vectors(text);
  }
  for (; left != 0; ++p, --left) {
    if ((static_cast<unsigned char>(*p) & 0x80U) != 0) return detail::is_utf8_by_vectors(text);
  }
  return true;
}

/// How many code points a well-formed text has.
[[nodiscard]] HOLDFAST_API std::size_t count_code_points(std::string_view text) noexcept;

/// How many bytes the first `count` code points of a well-formed text take.
[[nodiscard]] HOLDFAST_API std::size_t code_point_prefix(std::string_view text, std::size_t count) noexcept;

/// Characters beyond ASCII that a terminal obeys (C1 controls), that end a line, or that show text in another order than it has: with
/// U+202E, `txt.exe` is shown as `exe.txt`.
[[nodiscard]] constexpr bool controls_display(char32_t code_point) noexcept {
  return (code_point >= 0x80 && code_point < 0xa0) || code_point == 0x61c || code_point == 0x200e || code_point == 0x200f ||
         (code_point >= 0x2028 && code_point <= 0x202e) || (code_point >= 0x2066 && code_point <= 0x2069);
}

/// The code point that begins a well-formed text, if it has 2 or 3 bytes. Otherwise 0: no longer one controls the display.
[[nodiscard]] constexpr char32_t short_code_point(std::string_view text) noexcept {
  const auto bits = [&](std::size_t i, unsigned mask) { return static_cast<char32_t>(static_cast<unsigned char>(text[i]) & mask); };
  const auto first = text.empty() ? 0U : static_cast<unsigned char>(text.front());
  if (first >= 0xc0 && first < 0xe0 && text.size() >= 2) return (bits(0, 0x1fU) << 6U) | bits(1, 0x3fU);
  if (first >= 0xe0 && first < 0xf0 && text.size() >= 3) return (bits(0, 0x0fU) << 12U) | (bits(1, 0x3fU) << 6U) | bits(2, 0x3fU);
  return 0;
}

/// Writes a code point into `to` (4 bytes of room) and returns its length; 0 when it is a surrogate or beyond U+10FFFF.
[[nodiscard]] HOLDFAST_API std::size_t encode_utf8(char32_t code_point, char* to) noexcept;

}  // namespace HOLDFAST_NAMESPACE
