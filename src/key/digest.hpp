#pragma once

/// \file
/// The hash functions of keys: BLAKE2b and MD5.

#include <holdfast/version.hpp>

#include "key/output.hpp"

#include <sodium.h>

#include <array>
#include <cstddef>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::key {

using digest256 = std::array<unsigned char, 32>;
using digest128 = std::array<unsigned char, 16>;

/// Unkeyed BLAKE2b with a 32-byte digest.
[[nodiscard]] digest256 blake2b_256(std::string_view bytes);

/// The same for bytes that are written to an `output`.
class blake2b_256_stream {
 public:
  [[nodiscard]] output sink() noexcept { return output(&drain, this); }
  /// Flushes the output and returns the digest. Call it once.
  [[nodiscard]] digest256 finish(output& out);

 private:
  static void drain(void* self, std::string_view piece);

  bool started_ = false;
  crypto_generichash_state state_;
};

/// BLAKE2b of two concatenated texts with a 16-byte digest, keyed if the key is not empty.
[[nodiscard]] digest128 blake2b_128(std::string_view first, std::string_view second,
                                    std::string_view key);

/// BLAKE2b with a 2-byte digest, from which CacheKit derives serializer codes. It differs from the
/// first bytes of a longer digest.
[[nodiscard]] std::array<unsigned char, 2> blake2b_16(std::string_view bytes);

/// MD5 of bytes that are written to an `output`. The Java library names rows with it; it is not
/// used for protection.
class md5_stream {
 public:
  /// Throws errc::unavailable if the system's cryptographic policy forbids MD5.
  md5_stream();
  [[nodiscard]] output sink() noexcept { return output(&drain, this); }
  /// Flushes the output and returns the digest. Call it once.
  [[nodiscard]] digest128 finish(output& out);

 private:
  static void drain(void* self, std::string_view piece);

  // Holds an MD5_CTX. OpenSSL declares it only if OPENSSL_API_COMPAT is set, so this header does
  // not include it.
  struct alignas(8) context {
    unsigned char bytes[96];  // NOLINT(*-avoid-c-arrays): filled by MD5_Init
  } context_;
};

}  // namespace HOLDFAST_NAMESPACE::detail::key
