#pragma once

/// \file
/// The text form of a sealed payload:
///
///     ENC(<key id>:<Base64 of: "HF" 01, nonce (12), ciphertext, tag (16)>)   bound to its row
///     ENC(aesgcm:<Base64 of: nonce (16), ciphertext, tag (16)>)              of the Java library
///     ENC(b64:<Base64 of the payload>)                                       of the Java library
///
/// The first form is bound to its row by associated_data: 01, then realm, name, key and class, each
/// preceded by its length (4 bytes, big-endian). The form `aesgcm` is not bound to a row, and `b64`
/// is not encrypted.

#include <holdfast/error.hpp>
#include <holdfast/store.hpp>
#include <holdfast/version.hpp>

#include "base/aes_gcm.hpp"

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::store {

inline constexpr std::string_view envelope_prefix = "ENC(";
/// The first bytes of our form, and their Base64.
inline constexpr std::array envelope_magic{std::byte{'H'}, std::byte{'F'}, std::byte{1}};
inline constexpr std::string_view envelope_magic_base64 = "SEYB";
inline constexpr std::size_t java_nonce_size = 16;

/// Throw an error about the payload of this entry. The second says that the envelope is damaged.
[[noreturn]] void fail_payload(errc code, const std::string& message, const entry& e);
[[noreturn]] void fail_damaged(const entry& e);

/// Views into an envelope.
struct envelope_parts {
  std::string_view id{};
  std::string_view base64{};
};
/// Splits a payload that starts with envelope_prefix. `id` is null if it is not an envelope.
[[nodiscard]] envelope_parts split_envelope(std::string_view payload) noexcept;

/// The data that a payload is bound to. Short data needs no allocation.
class associated_data {
 public:
  explicit associated_data(const entry& e);
  associated_data(const associated_data&) = delete;
  associated_data& operator=(const associated_data&) = delete;
  ~associated_data() = default;
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }

 private:
  std::array<std::byte, 384> short_;
  std::vector<std::byte> long_{};
  std::span<const std::byte> bytes_;
};

/// Writes `prefix`, then header, ciphertext and tag in Base64, then `)`. The caller has started the
/// message on the cipher. Reuses the memory of `envelope`.
void write_envelope(std::string& envelope, std::string_view prefix,
                    std::span<const std::byte> header, aes_gcm& cipher, std::string_view plaintext);

/// The bytes before the ciphertext. The nonce is at their end.
struct envelope_header {
  std::size_t size;
  std::size_t nonce_offset;
};

/// Decrypts a payload in place. `base64` is a part of the payload; `e` is its entry, for messages.
/// Returns false if the tag is wrong. If it returns false or throws errc::malformed, the payload is
/// undefined.
[[nodiscard]] bool open_envelope(const entry& e, std::string& payload, std::string_view base64,
                                 aes_gcm& cipher, envelope_header header,
                                 std::span<const std::byte> associated);

}  // namespace HOLDFAST_NAMESPACE::detail::store
