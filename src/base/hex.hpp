#pragma once

/// \file
/// Hexadecimal digits: lower case when written, either case when read.

#include <holdfast/version.hpp>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail {

/// The value of a hexadecimal digit, or -1 if the character is not one.
[[nodiscard]] constexpr int hex_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// Writes two digits for each byte to `out`.
inline void to_hex(const unsigned char* bytes, std::size_t count, char* out) noexcept {
#ifdef __SSE2__
  // 16 bytes at a time. A loop over bytes would take half of the time that a key takes without its
  // hash.
  const __m128i low_bits = _mm_set1_epi8(0x0F);
  const __m128i nine = _mm_set1_epi8(9);
  const __m128i zero = _mm_set1_epi8('0');
  const __m128i to_letter = _mm_set1_epi8('a' - '0' - 10);
  const auto digits_of = [&](__m128i nibbles) {
    return _mm_add_epi8(_mm_add_epi8(nibbles, zero),
                        _mm_and_si128(_mm_cmpgt_epi8(nibbles, nine), to_letter));
  };
  for (; count >= 16; count -= 16, bytes += 16, out += 32) {
    const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
    const __m128i high = digits_of(_mm_and_si128(_mm_srli_epi16(block, 4), low_bits));
    const __m128i low = digits_of(_mm_and_si128(block, low_bits));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm_unpacklo_epi8(high, low));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 16), _mm_unpackhi_epi8(high, low));
  }
#endif
  static constexpr char digits[] = "0123456789abcdef";
  for (std::size_t i = 0; i < count; ++i) {
    *out++ = digits[bytes[i] >> 4U];
    *out++ = digits[bytes[i] & 15U];
  }
}

template <std::size_t Size>
[[nodiscard]] std::string to_hex(const std::array<unsigned char, Size>& bytes) {
  std::string text(Size * 2, '\0');
  to_hex(bytes.data(), Size, text.data());
  return text;
}

/// Appends two digits for each byte.
inline void append_hex(std::string& out, std::string_view bytes) {
  const auto offset = out.size();
  out.resize(offset + bytes.size() * 2);
  to_hex(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), out.data() + offset);
}

/// Writes one byte for each pair of digits to `out`. Returns false if the number of digits is odd
/// or a character is not a digit; `out` may have been written in part then.
[[nodiscard]] inline bool from_hex(std::string_view digits, unsigned char* out) noexcept {
  if (digits.size() % 2 != 0) return false;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    const int high = hex_digit(digits[i]);
    const int low = hex_digit(digits[i + 1]);
    if (high < 0 || low < 0) return false;
    *out++ = static_cast<unsigned char>(high * 16 + low);
  }
  return true;
}

}  // namespace HOLDFAST_NAMESPACE::detail
