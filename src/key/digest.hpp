#pragma once

#include <holdfast/version.hpp>

#include "key/output.hpp"

#include <openssl/types.h>
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

/// MD5 for bytes that come through an `output`, on a context that each thread keeps. It names rows as the Java library does;
/// it protects nothing.
class md5_stream {
 public:
  md5_stream() = default;
  md5_stream(const md5_stream&) = delete;
  md5_stream& operator=(const md5_stream&) = delete;
  ~md5_stream();

  [[nodiscard]] output sink() noexcept { return output(&drain, this); }
  /// Flushes the output and ends. Call once. Throws errc::unavailable where the system's cryptographic policy has no MD5.
  [[nodiscard]] digest128 finish(output& out);

 private:
  struct kept_context;
  static void drain(void* self, std::string_view piece);
  void start();

  EVP_MD_CTX* context_ = nullptr;
  kept_context* kept_ = nullptr;  // null when the thread's own context was taken and this one is ours to free
};

/// Writes lower-case hexadecimal digits, two for each byte.
void to_hex(const unsigned char* bytes, std::size_t count, char* to) noexcept;
[[nodiscard]] std::string to_hex(std::string_view bytes);

}  // namespace HOLDFAST_NAMESPACE::key
