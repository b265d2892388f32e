#pragma once

/// \file
/// AES-GCM under one key, with everything else given. Choosing a nonce is left to the caller, which is why this is not public.

#include <holdfast/version.hpp>

#include <cstddef>
#include <memory>
#include <span>

namespace HOLDFAST_NAMESPACE {

/// The key's schedule is computed once and wiped at the end; it cannot be copied.
/// Thread-safety: every function may be called from any thread, and none blocks: a run has a context of its own.
class HOLDFAST_API aes_gcm {
 public:
  static constexpr std::size_t tag_size = 16;
  /// Beyond this the sizes that OpenSSL counts with would not do; the callers check.
  static constexpr std::size_t max_size = std::size_t{1} << 30U;

  /// 16, 24 or 32 bytes. Throws errc::internal when OpenSSL cannot.
  explicit aes_gcm(std::span<const std::byte> key);
  aes_gcm(const aes_gcm&) = delete;
  aes_gcm& operator=(const aes_gcm&) = delete;
  ~aes_gcm();

  struct context;

  /// One message, in as many pieces as one likes. It must not outlive its key.
  class HOLDFAST_API run {
   public:
    run(const run&) = delete;
    run& operator=(const run&) = delete;
    ~run();
    /// In place, or to where there is as much room.
    void update(std::span<const std::byte> from, std::byte* to);
    /// After the last piece of a message that was sealed.
    void finish(std::span<std::byte, tag_size> tag);
    /// After the last piece of a message that was opened: whether it is what was sealed. If not, forget all of it.
    [[nodiscard]] bool verify(std::span<const std::byte, tag_size> tag);

   private:
    friend class aes_gcm;
    run(const aes_gcm& of, std::unique_ptr<context> taken);
    const aes_gcm& of_;
    std::unique_ptr<context> held_;
  };

  /// Never seal twice with one nonce.
  [[nodiscard]] run seal(std::span<const std::byte> nonce, std::span<const std::byte> associated) const;
  [[nodiscard]] run open(std::span<const std::byte> nonce, std::span<const std::byte> associated) const;

 private:
  [[nodiscard]] run start(std::span<const std::byte> nonce, std::span<const std::byte> associated, bool seals) const;
  void give_back(std::unique_ptr<context> spare) const noexcept;

  struct spares;
  std::unique_ptr<spares> spares_;
};

/// Throws errc::unavailable when the system has none.
HOLDFAST_API void fill_randomly(std::span<std::byte> bytes);

/// Overwrites what must not stay in memory; the compiler cannot leave it out.
HOLDFAST_API void wipe(std::span<std::byte> bytes) noexcept;

}  // namespace HOLDFAST_NAMESPACE
