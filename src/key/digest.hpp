#pragma once

#include <holdfast/version.hpp>

#include "key/output.hpp"

#include <sodium.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::key {

using digest256 = std::array<unsigned char, 32>;
using digest128 = std::array<unsigned char, 16>;

/// Characters of a 32-byte digest in hexadecimal.
inline constexpr std::size_t digest256_hex_length = 64;

/// Unkeyed BLAKE2b with a 32-byte digest.
[[nodiscard]] digest256 blake2b_256(std::string_view bytes);

/// The same for bytes that come through an `output`.
class blake2b_256_stream {
 public:
  [[nodiscard]] output sink() noexcept { return output(&drain, this); }
  /// Flushes the output and ends. Call once.
  [[nodiscard]] digest256 finish(output& out);

 private:
  static void drain(void* self, std::string_view piece);

  bool started_ = false;
  crypto_generichash_state state_;
};

/// BLAKE2b with a 16-byte digest, keyed when the key is not empty.
[[nodiscard]] digest128 blake2b_128(std::string_view a, std::string_view b, std::string_view key);

/// BLAKE2b with a 2-byte digest (which is not the beginning of a longer one), as CacheKit derives serializer codes.
[[nodiscard]] std::array<unsigned char, 2> blake2b_16(std::string_view bytes);

/// MD5 for bytes that come through an `output`. It names rows as the Java library does; it protects nothing.
class md5_stream {
 public:
  /// Throws errc::unavailable where the system's cryptographic policy has no MD5.
  md5_stream();
  [[nodiscard]] output sink() noexcept { return output(&drain, this); }
  /// Flushes the output and ends. Call once.
  [[nodiscard]] digest128 finish(output& out);

 private:
  static void drain(void* self, std::string_view piece);

  // OpenSSL's MD5_CTX, whose header stays out of ours: it is only declared on request.
  struct alignas(8) context {
    unsigned char bytes[96];  // NOLINT(*-avoid-c-arrays): filled by MD5_Init
  } context_;
};

/// Writes lower-case hexadecimal digits, two for each byte.
inline void to_hex(const unsigned char* bytes, std::size_t count, char* to) noexcept {
#ifdef __SSE2__
  // Sixteen bytes at a time: half of the time that is ours in a key goes here otherwise.
  const __m128i low_bits = _mm_set1_epi8(0x0F);
  const __m128i nine = _mm_set1_epi8(9);
  const __m128i zero = _mm_set1_epi8('0');
  const __m128i to_letter = _mm_set1_epi8('a' - '0' - 10);
  const auto digits_of = [&](__m128i nibbles) {
    return _mm_add_epi8(_mm_add_epi8(nibbles, zero), _mm_and_si128(_mm_cmpgt_epi8(nibbles, nine), to_letter));
  };
  for (; count >= 16; count -= 16, bytes += 16, to += 32) {
    const __m128i all = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
    const __m128i high = digits_of(_mm_and_si128(_mm_srli_epi16(all, 4), low_bits));
    const __m128i low = digits_of(_mm_and_si128(all, low_bits));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm_unpacklo_epi8(high, low));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 16), _mm_unpackhi_epi8(high, low));
  }
#endif
  static constexpr char digits[] = "0123456789abcdef";
  for (std::size_t i = 0; i < count; ++i) {
    *to++ = digits[bytes[i] >> 4U];
    *to++ = digits[bytes[i] & 15U];
  }
}
[[nodiscard]] std::string to_hex(std::string_view bytes);

}  // namespace HOLDFAST_NAMESPACE::key
