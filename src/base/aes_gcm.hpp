#pragma once

/// \file
/// AES-GCM with one key. The caller chooses the nonces, which is easy to get wrong; therefore this
/// is not public.

#include <holdfast/version.hpp>

#include <cstddef>
#include <memory>
#include <span>

struct evp_cipher_ctx_st;  // OpenSSL's EVP_CIPHER_CTX

namespace HOLDFAST_NAMESPACE::detail {

/// A cipher with its key and the state of the current message:
///
///     seal, update..., finish     encrypts a message
///     open, update..., verify     decrypts a message
///
/// `seal` and `open` discard an unfinished message. The key schedule is computed once, and wiped by
/// the destructor.
/// Thread-safety: none. Several threads may copy from a cipher that is not in use.
class HOLDFAST_API aes_gcm {
 public:
  static constexpr std::size_t tag_size = 16;
  /// Limit of a message, because OpenSSL counts in int. Callers must check it.
  static constexpr std::size_t max_size = std::size_t{1} << 30U;
  using tag_span = std::span<const std::byte, tag_size>;

  /// The key has 16, 24 or 32 bytes. Throws errc::internal if OpenSSL fails.
  explicit aes_gcm(std::span<const std::byte> key);
  /// Copies the key schedule, which is faster than computing it.
  aes_gcm(const aes_gcm& other);
  aes_gcm& operator=(const aes_gcm&) = delete;
  ~aes_gcm();

  /// The caller must never use a nonce twice.
  void seal(std::span<const std::byte> nonce, std::span<const std::byte> associated);
  void open(std::span<const std::byte> nonce, std::span<const std::byte> associated);
  /// Processes a part of the message. `output` has the size of `input` and may be the same memory.
  void update(std::span<const std::byte> input, std::byte* output);
  /// Ends the message of `seal` and writes its tag.
  void finish(std::span<std::byte, tag_size> tag);
  /// Ends the message of `open`. Returns false if the tag is wrong; the caller must then discard
  /// the output.
  [[nodiscard]] bool verify(tag_span tag);

 private:
  struct context_deleter {
    void operator()(evp_cipher_ctx_st* context) const noexcept;  // wipes the key schedule
  };
  void begin(bool encrypt, std::span<const std::byte> nonce, std::span<const std::byte> associated);

  std::unique_ptr<evp_cipher_ctx_st, context_deleter> context_;
  std::size_t nonce_size_ = 12;  // the default of OpenSSL
};

/// Fills the span with random bytes. Throws errc::unavailable (transient) if the system fails.
HOLDFAST_API void fill_random(std::span<std::byte> bytes);

/// Overwrites a secret. The compiler cannot remove this call.
HOLDFAST_API void wipe(std::span<std::byte> bytes) noexcept;

}  // namespace HOLDFAST_NAMESPACE::detail
