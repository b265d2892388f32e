#pragma once

/// \file
/// Encryption of cached values as every CacheKit library does it: AES-256-GCM
/// under a key derived from a master key and the tenant. The associated data
/// bind a value to its tenant, cache key and form, so that one cannot be put
/// in the place of another.

#include <holdfast/key/value.hpp>
#include <holdfast/version.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::key {

/// 32 secret bytes that are wiped when they go. They cannot be printed.
/// Thread-safety: immutable after construction, apart from assignment. Fork: the child has a copy, as of all memory.
class HOLDFAST_API secret {
 public:
  static constexpr std::size_t size = 32;

  secret(const secret&) noexcept = default;
  secret& operator=(const secret&) noexcept = default;
  ~secret();

  /// The same secret? Takes the same time wherever they differ.
  [[nodiscard]] bool operator==(const secret& other) const noexcept;

  /// The bytes themselves: for a key store or a test, never for a log.
  [[nodiscard]] std::span<const std::byte, size> reveal() const noexcept { return bytes_; }

  template <class Stream>
  friend Stream& operator<<(Stream&, const secret&) = delete;

 protected:
  explicit secret(std::span<const std::byte, size> bytes) noexcept;

 private:
  std::array<std::byte, size> bytes_{};
};

/// What all keys are derived from. Thread-safety and fork: as secret.
class HOLDFAST_API master_key : public secret {
 public:
  /// Exactly 64 hexadecimal digits, either case; no prefix, no spaces. This is the form that all libraries share
  /// (`CACHEKIT_MASTER_KEY`). Throws errc::invalid_argument, with a message that does not repeat the text.
  [[nodiscard]] static master_key from_hex(std::string_view digits);
  /// Exactly 32 bytes. Throws errc::invalid_argument.
  [[nodiscard]] static master_key from_bytes(std::span<const std::byte> bytes);

 private:
  using secret::secret;
};

/// A key for one tenant and one purpose. Thread-safety and fork: as secret.
class HOLDFAST_API derived_key : public secret {
 private:
  using secret::secret;
  friend HOLDFAST_API derived_key derive_key(const master_key& master, std::string_view tenant, std::string_view domain);
};

/// The key of a tenant for a purpose: HKDF-SHA256, salted with both. CacheKit's domains are `encryption`, `authentication` and `cache_keys`.
/// Throws errc::invalid_argument for an empty tenant or domain, errc::too_large for a tenant beyond 1024 bytes or a domain beyond 255,
/// errc::ill_formed_text when they are not UTF-8.
/// Thread-safety: can be called from any thread.
[[nodiscard]] HOLDFAST_API derived_key derive_key(const master_key& master, std::string_view tenant,
                                                  std::string_view domain = "encryption");

/// A name for a key that tells nothing about it: fit for logs, and for finding out which key a service has.
[[nodiscard]] HOLDFAST_API std::array<std::byte, 16> fingerprint(const derived_key& key);

/// The associated data of a sealed value, version 3. Interop values have the format `msgpack`, are not compressed and have no original type;
/// the original type is what CacheKit's Python library adds in its own modes.
/// Throws errc::ill_formed_text for a part that is not UTF-8, errc::too_large for one of 4 GiB.
/// Thread-safety: can be called from any thread.
[[nodiscard]] HOLDFAST_API byte_string aad_v3(std::string_view tenant, std::string_view cache_key, std::string_view format, bool compressed,
                                              std::optional<std::string_view> original_type = std::nullopt);

/// The master keys of a service: the current one, which seals and opens, and those it replaced, which only open. To rotate, make the new
/// key the current one, keep the old one in the list until its entries have expired, and never go back.
/// Thread-safety: immutable after construction, apart from assignment. Fork: as secret.
class HOLDFAST_API key_ring {
 public:
  static constexpr std::size_t max_decrypt_only = 3;

  /// Throws errc::too_large for more than three old keys, errc::duplicate when a key comes twice.
  explicit key_ring(const master_key& current, std::vector<master_key> decrypt_only = {});

  [[nodiscard]] const master_key& current() const noexcept { return current_; }
  [[nodiscard]] const std::vector<master_key>& decrypt_only() const noexcept { return decrypt_only_; }

 private:
  master_key current_;
  std::vector<master_key> decrypt_only_;
};

/// Seals and opens the values of one tenant.
///
/// A sealed value is nonce (12 bytes), ciphertext, tag (16 bytes). A nonce is 8 random bytes of this object and a counter: after 2^32 values
/// it refuses to seal, and a new object must be made.
///
/// Thread-safety: seal and open can be called from any thread. Not copyable: two objects must not share nonces.
/// Fork: both processes can go on using it; the child takes random bytes of its own when it first seals.
class HOLDFAST_API value_cipher {
 public:
  /// The most that is sealed or opened at once: 1 GiB.
  static constexpr std::size_t max_size = std::size_t{1} << 30;

  /// Throws as derive_key does, and errc::unavailable when the system has no random bytes.
  explicit value_cipher(const key_ring& keys, std::string_view tenant = "default");
  value_cipher(value_cipher&&) noexcept;
  value_cipher& operator=(value_cipher&&) noexcept;
  ~value_cipher();

  /// The format is `msgpack`, `orjson` or `arrow`: the protocol has no other.
  /// Throws errc::out_of_range when the nonces are used up, errc::invalid_argument for another format, errc::too_large beyond max_size, and
  /// as aad_v3 does.
  /// A failure uses up at most a nonce.
  [[nodiscard]] byte_string seal(std::span<const std::byte> plaintext, std::string_view cache_key, std::string_view format = "msgpack",
                                 bool compressed = false, std::optional<std::string_view> original_type = std::nullopt) const;

  /// Opens a value with the first key that fits; the associated data are the same for each. The caller says what it expects: nothing is
  /// taken from the bytes, and nothing is tried with other associated data.
  /// Throws errc::malformed for bytes too short to be sealed, errc::tampered when no key opens them (they were changed, sealed with
  /// another key, or belong to another tenant, cache key or form), and for the rest as seal does.
  [[nodiscard]] byte_string open(std::span<const std::byte> sealed, std::string_view cache_key, std::string_view format = "msgpack",
                                 bool compressed = false, std::optional<std::string_view> original_type = std::nullopt) const;

  [[nodiscard]] const std::string& tenant() const noexcept;
  /// Of the key that seals.
  [[nodiscard]] std::array<std::byte, 16> key_fingerprint() const;

 private:
  struct state;
  std::unique_ptr<const state> state_;
};

}  // namespace HOLDFAST_NAMESPACE::key
