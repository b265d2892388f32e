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
/// Thread-safety: one thread at a time; each has a copy, and any number may copy one that nobody runs. Copies share what was scheduled.
class HOLDFAST_API sealer {
 public:
  /// The ring in the options is not looked at. Throws as make_sealed. `nonces` outlives it.
  sealer(const sealing_ring& keys, const sealed_options& how, peer with, nonce_source& nonces);

  /// Of an entry with a payload. Throws errc::too_large beyond 1 GiB.
  [[nodiscard]] std::string seal(const entry& plain);
  /// The same, into a text whose memory is used again.
  void seal(const entry& plain, std::string& into);
  /// In place; a tombstone stays one. True when it was sealed as `seal` would do it. Throws as sealed_store says; the payload is worth nothing
  /// then.
  bool open(entry& sealed);
  /// Whether it says that it is sealed as `seal` would do it. Nothing is decrypted.
  [[nodiscard]] bool is_current(std::string_view payload) const noexcept;

 private:
  struct named_key {
    named_key(std::string its_id, std::span<const std::byte> key) : id(std::move(its_id)), cipher(key) {}
    std::string id;
    aes_gcm cipher;  // never run: copied
  };
  /// A key of the ring, and this one's copy of it, made when it is needed: of a ring that was rotated often most keys are not.
  class own_key {
   public:
    explicit own_key(std::shared_ptr<const named_key> shared) : shared_(std::move(shared)) {}
    own_key(const own_key& other) : shared_(other.shared_) {}
    own_key& operator=(const own_key&) = delete;
    own_key(own_key&&) noexcept = default;
    own_key& operator=(own_key&&) = delete;
    ~own_key() = default;
    [[nodiscard]] const std::string& id() const noexcept { return shared_->id; }
    [[nodiscard]] aes_gcm& cipher() {
      if (!mine_) mine_ = std::make_unique<aes_gcm>(shared_->cipher);
      return *mine_;
    }

   private:
    std::shared_ptr<const named_key> shared_;
    std::unique_ptr<aes_gcm> mine_{};
  };
  struct chosen {
    own_key* key;           ///< none for what is no ciphertext
    std::string_view text;  ///< Base64
  };
  [[nodiscard]] own_key* key_of(std::string_view id) noexcept;
  [[nodiscard]] chosen choose(const entry& sealed, std::string_view payload);

  std::vector<own_key> keys_{};  // the current one first
  std::string beginning_{};      // of what `seal` makes: the same for each
  std::string current_{};        // and by what it is known
  bool java_;
  bool read_java_;
  bool read_base64_;
  bool read_plaintext_;
  nonce_source& nonces_;
};

}  // namespace HOLDFAST_NAMESPACE
