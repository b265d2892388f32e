#pragma once

#include <holdfast/version.hpp>

#include "key/output.hpp"

#include <sodium.h>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::key {

using digest256 = std::array<unsigned char, 32>;
using digest128 = std::array<unsigned char, 16>;

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
void to_hex(const unsigned char* bytes, std::size_t count, char* to) noexcept;
[[nodiscard]] std::string to_hex(std::string_view bytes);

}  // namespace HOLDFAST_NAMESPACE::key
