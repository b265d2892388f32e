#pragma once

/// \file
/// The form of a sealed payload, and the keys that make and open it.
///
///     ENC(<key id>:<Base64 of: "HF" 01, nonce (12), ciphertext, tag (16)>)     ours; bound to its row
///     ENC(aesgcm:<Base64 of: nonce (16), ciphertext, tag (16)>)                the Java library's; bound to nothing
///     ENC(b64:<Base64 of the payload>)                                         the Java library's; no encryption
///
/// What ours is bound to: 01, then realm, name, key and class, each behind its length (4 bytes, the highest first).

#include <holdfast/store/sealed.hpp>

#include "base/aes_gcm.hpp"
#include "base/nonce_source.hpp"

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE {

/// Where an envelope says its parts are. The views refer to the payload.
struct envelope_parts {
  std::string_view id{};
  std::string_view text{};  ///< Base64
};

/// Nothing for a payload that does not begin like an envelope: plaintext. Throws errc::malformed for one that begins so and is none.
[[nodiscard]] HOLDFAST_API std::optional<envelope_parts> envelope_of(std::string_view payload);

/// Seals and opens with the keys of one ring.
/// Thread-safety: every function may be called from any thread.
class HOLDFAST_API sealer {
 public:
  /// The ring in the options is not looked at. Throws as make_sealed. `nonces` outlives it.
  sealer(const sealing_ring& keys, const sealed_options& how, peer with, nonce_source& nonces);

  /// Of an entry with a payload. Throws errc::too_large beyond 1 GiB.
  [[nodiscard]] std::string seal(const entry& plain) const;
  /// The same, into a text whose memory is used again.
  void seal(const entry& plain, std::string& into) const;
  /// In place; a tombstone stays one. True when it was sealed as `seal` would do it. Throws as sealed_store says; the payload is worth nothing
  /// then.
  bool open(entry& sealed) const;
  /// Whether it says that it is sealed as `seal` would do it. Nothing is decrypted.
  [[nodiscard]] bool is_current(std::string_view payload) const noexcept;

 private:
  struct named_key {
    std::string id;
    aes_gcm cipher;
    named_key(std::string its_id, std::span<const std::byte> key) : id(std::move(its_id)), cipher(key) {}
  };
  [[nodiscard]] const named_key* key_of(std::string_view id) const noexcept;

  std::vector<std::unique_ptr<const named_key>> keys_{};  // the current one first
  bool java_;
  bool read_java_;
  bool read_base64_;
  bool read_plaintext_;
  nonce_source& nonces_;
};

}  // namespace HOLDFAST_NAMESPACE
