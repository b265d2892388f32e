#pragma once

/// \file
/// AES-GCM under one key, with everything else given. Choosing a nonce is left to the caller, which is why this is not public.

#include <holdfast/version.hpp>

#include <cstddef>
#include <memory>
#include <span>

struct evp_cipher_ctx_st;  // OpenSSL's EVP_CIPHER_CTX

namespace HOLDFAST_NAMESPACE {

/// A key, ready for use, and the message that it is at: begin one with `seal` or `open`, go on with `update`, end with `finish` or `verify`.
/// What went wrong, or was never ended, is forgotten when the next one begins. The key's schedule is computed once and wiped at the end.
/// Thread-safety: one thread at a time; but any number may copy from one that nobody runs.
class HOLDFAST_API aes_gcm {
 public:
  static constexpr std::size_t tag_size = 16;
  /// Beyond this the sizes that OpenSSL counts with would not do; the callers check.
  static constexpr std::size_t max_size = std::size_t{1} << 30U;
  using tag_span = std::span<const std::byte, tag_size>;

  /// 16, 24 or 32 bytes. Throws errc::internal when OpenSSL cannot.
  explicit aes_gcm(std::span<const std::byte> key);
  /// The same key once more, for another thread: to look a cipher up and to schedule a key takes longer.
  aes_gcm(const aes_gcm& ready);
  aes_gcm& operator=(const aes_gcm&) = delete;
  ~aes_gcm();

  /// Never seal twice with one nonce.
  void seal(std::span<const std::byte> nonce, std::span<const std::byte> associated);
  void open(std::span<const std::byte> nonce, std::span<const std::byte> associated);
  /// A piece of the message, in place or to where there is as much room.
  void update(std::span<const std::byte> from, std::byte* to);
  /// After the last piece of a message that was sealed.
  void finish(std::span<std::byte, tag_size> tag);
  /// After the last piece of a message that was opened: whether it is what was sealed. If not, forget all of it.
  [[nodiscard]] bool verify(tag_span tag);

 private:
  struct forget {
    void operator()(evp_cipher_ctx_st* context) const noexcept;  // wipes the key's schedule
  };
  void begin(bool seals, std::span<const std::byte> nonce, std::span<const std::byte> associated);

  std::unique_ptr<evp_cipher_ctx_st, forget> with_;
  std::size_t nonce_size_ = 12;  // as OpenSSL begins
};

/// Throws errc::unavailable when the system has none.
HOLDFAST_API void fill_randomly(std::span<std::byte> bytes);

/// Overwrites what must not stay in memory; the compiler cannot leave it out.
HOLDFAST_API void wipe(std::span<std::byte> bytes) noexcept;

}  // namespace HOLDFAST_NAMESPACE
