#pragma once

/// \file
/// Encrypts cached values in the format that all CacheKit libraries share: AES-256-GCM, with a key
/// that is derived from a master key and the tenant.
///
/// The associated data contain tenant, cache key and format. A value that was copied to another
/// cache key or tenant therefore does not open.

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

/// 32 secret bytes. They are wiped on destruction and cannot be printed.
/// Thread-safety: immutable after construction, except for assignment. Fork: the child has a copy.
class HOLDFAST_API secret {
 public:
  static constexpr std::size_t size = 32;

  secret(const secret&) noexcept = default;
  secret& operator=(const secret&) noexcept = default;
  ~secret();

  /// Compares in constant time.
  [[nodiscard]] bool operator==(const secret& other) const noexcept;

  /// The bytes themselves. For key stores and tests; do not log them.
  [[nodiscard]] std::span<const std::byte, size> reveal() const noexcept { return bytes_; }

  template <class Stream>
  friend Stream& operator<<(Stream&, const secret&) = delete;

 protected:
  explicit secret(std::span<const std::byte, size> bytes) noexcept;

 private:
  std::array<std::byte, size> bytes_{};
};

/// The key that all other keys are derived from. Thread-safety and fork: see secret.
class HOLDFAST_API master_key : public secret {
 public:
  /// Reads exactly 64 hexadecimal digits of either case, without prefix or spaces. All CacheKit
  /// libraries accept this form (`CACHEKIT_MASTER_KEY`).
  /// Throws errc::invalid_argument. The message does not repeat the text.
  [[nodiscard]] static master_key from_hex(std::string_view digits);

  /// Takes exactly 32 bytes. Throws errc::invalid_argument.
  [[nodiscard]] static master_key from_bytes(std::span<const std::byte> bytes);

 private:
  using secret::secret;
};

/// A key for one tenant and one purpose. Thread-safety and fork: see secret.
class HOLDFAST_API derived_key : public secret {
 private:
  using secret::secret;
  friend HOLDFAST_API derived_key derive_key(const master_key& master, std::string_view tenant,
                                             std::string_view domain);
};

/// Derives the key of a tenant for a purpose, with HKDF-SHA256 salted with both. CacheKit uses the
/// domains `encryption`, `authentication` and `cache_keys`.
///
/// Throws:
/// - errc::invalid_argument: the tenant or the domain is empty
/// - errc::too_large: the tenant has more than 1024 bytes, or the domain more than 255
/// - errc::ill_formed_text: one of them is not UTF-8
///
/// Thread-safety: can be called from any thread.
[[nodiscard]] HOLDFAST_API derived_key derive_key(const master_key& master, std::string_view tenant,
                                                  std::string_view domain = "encryption");

/// A digest that identifies a key and does not reveal it. Log it to see which key a service uses.
[[nodiscard]] HOLDFAST_API std::array<std::byte, 16> fingerprint(const derived_key& key);

/// Builds the associated data of a sealed value, version 3. For interop values the format is
/// `msgpack`, `compressed` is false and there is no original type. CacheKit's Python library adds
/// the original type in its own modes.
///
/// Throws errc::ill_formed_text if a part is not UTF-8, errc::too_large if a part has 4 GiB or
/// more. Thread-safety: can be called from any thread.
[[nodiscard]] HOLDFAST_API byte_string
aad_v3(std::string_view tenant, std::string_view cache_key, std::string_view format,
       bool compressed, std::optional<std::string_view> original_type = std::nullopt);

/// The master keys of a service: the current key seals and opens; the keys that it replaced only
/// open.
///
/// To rotate, make the new key the current one, and keep the old key in the list until its entries
/// have expired. Do not make an old key the current one again.
///
/// Thread-safety: immutable after construction, except for assignment. Fork: see secret.
class HOLDFAST_API key_ring {
 public:
  static constexpr std::size_t max_decrypt_only = 3;

  /// Throws errc::too_large for more than three old keys, errc::duplicate if a key occurs twice.
  explicit key_ring(const master_key& current, std::vector<master_key> decrypt_only = {});

  [[nodiscard]] const master_key& current() const noexcept { return current_; }
  [[nodiscard]] const std::vector<master_key>& decrypt_only() const noexcept {
    return decrypt_only_;
  }

 private:
  master_key current_;
  std::vector<master_key> decrypt_only_;
};

/// Seals and opens the values of one tenant.
///
/// A sealed value is a nonce (12 bytes), the ciphertext and a tag (16 bytes). The nonce is 8 random
/// bytes, which belong to this object, and a counter. After 2^32 values `seal` throws; create a new
/// object then.
///
/// Thread-safety: seal and open can be called from any thread. Not copyable, because two objects
/// must not share nonces. Fork: both processes can use the object. The child draws its own random
/// bytes when it first seals.
class HOLDFAST_API value_cipher {
 public:
  /// The largest value that can be sealed or opened: 1 GiB.
  static constexpr std::size_t max_size = std::size_t{1} << 30;

  /// Throws what derive_key throws, and errc::unavailable if the system has no random bytes.
  explicit value_cipher(const key_ring& keys, std::string_view tenant = "default");
  value_cipher(value_cipher&&) noexcept;
  value_cipher& operator=(value_cipher&&) noexcept;
  ~value_cipher();

  /// Seals a value. The format must be `msgpack`, `orjson` or `arrow`; the protocol has no others.
  ///
  /// Throws errc::out_of_range when the nonces are used up, errc::invalid_argument for another
  /// format, errc::too_large beyond max_size, and what aad_v3 throws. A failed call uses up at most
  /// one nonce.
  [[nodiscard]] byte_string seal(
      std::span<const std::byte> plaintext, std::string_view cache_key,
      std::string_view format = "msgpack", bool compressed = false,
      std::optional<std::string_view> original_type = std::nullopt) const;

  /// Opens a value with the first key that fits. The caller passes the expected cache key, format,
  /// compression and type; `open` does not read them from the bytes and does not try others.
  ///
  /// Throws:
  /// - errc::malformed: too short for a sealed value
  /// - errc::tampered: no key opens the value. It was changed, sealed with another key, or belongs
  ///   to another tenant, cache key or format
  /// - otherwise what seal throws
  [[nodiscard]] byte_string open(
      std::span<const std::byte> sealed, std::string_view cache_key,
      std::string_view format = "msgpack", bool compressed = false,
      std::optional<std::string_view> original_type = std::nullopt) const;

  [[nodiscard]] const std::string& tenant() const noexcept;

  /// The fingerprint of the key that seals.
  [[nodiscard]] std::array<std::byte, 16> key_fingerprint() const;

 private:
  struct state;
  std::unique_ptr<const state> state_;
};

}  // namespace HOLDFAST_NAMESPACE::key
