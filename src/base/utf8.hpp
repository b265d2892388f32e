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

/// Writes a code point into `to` (4 bytes of room) and returns its length; 0 when it is a surrogate or beyond U+10FFFF.
[[nodiscard]] HOLDFAST_API std::size_t encode_utf8(char32_t code_point, char* to) noexcept;

}  // namespace HOLDFAST_NAMESPACE
