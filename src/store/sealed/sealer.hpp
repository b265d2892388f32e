#pragma once

#include <holdfast/store/sealed.hpp>

#include "base/aes_gcm.hpp"
#include "base/nonce_source.hpp"

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::store {

/// Seals and opens payloads with the keys of one ring.
/// Thread-safety: one thread at a time, so each thread uses a copy. Any number of threads may copy
/// a sealer that no thread uses. Copies share the prepared keys.
class sealer {
 public:
  /// Ignores the ring in the options. Throws as make_sealed. `nonces` must outlive it.
  sealer(const sealing_ring& keys, const sealed_options& options, peer table_peer,
         nonce_source& nonces);

  /// Seals the payload of an entry. Throws errc::too_large beyond 1 GiB.
  [[nodiscard]] std::string seal(const entry& plain);
  /// As above, reusing the memory of `envelope`.
  void seal(const entry& plain, std::string& envelope);
  /// Opens a payload in place; does nothing for a tombstone. Returns whether it was sealed in the
  /// current form with the current key. Throws as sealed_store says; the payload is then undefined.
  bool open(entry& sealed);
  /// Whether a payload claims to be sealed in the current form with the current key. Does not
  /// decrypt.
  [[nodiscard]] bool is_current(std::string_view payload) const noexcept;

 private:
  struct prepared_key {
    prepared_key(std::string key_id, std::span<const std::byte> key)
        : id(std::move(key_id)), cipher(key) {}
    std::string id;
    aes_gcm cipher;  // only copied, never used
  };
  /// A key of the ring. The cipher of this sealer is copied from the shared one at its first use,
  /// since most keys of a ring that was rotated often are not used.
  class ring_key {
   public:
    explicit ring_key(std::shared_ptr<const prepared_key> shared) : shared_(std::move(shared)) {}
    ring_key(const ring_key& other) : shared_(other.shared_) {}
    ring_key& operator=(const ring_key&) = delete;
    ring_key(ring_key&&) noexcept = default;
    ring_key& operator=(ring_key&&) = delete;
    ~ring_key() = default;
    [[nodiscard]] const std::string& id() const noexcept { return shared_->id; }
    [[nodiscard]] aes_gcm& cipher() {
      if (!cipher_) cipher_ = std::make_unique<aes_gcm>(shared_->cipher);
      return *cipher_;
    }

   private:
    std::shared_ptr<const prepared_key> shared_;
    std::unique_ptr<aes_gcm> cipher_{};
  };
  struct sealed_text {
    ring_key* key;            ///< null if the payload is not encrypted
    std::string_view base64;  ///< null if the payload is plaintext
  };
  [[nodiscard]] sealed_text parse(const entry& sealed, std::string_view payload);
  [[nodiscard]] bool decrypt(const entry& sealed, std::string& payload, std::string_view base64,
                             ring_key& key);

  std::vector<ring_key> keys_{};  // the current key first
  std::string prefix_{};          // of every envelope that `seal` writes
  std::string current_prefix_{};  // identifies envelopes in the current form
  bool java_;
  bool read_java_;
  bool read_base64_;
  bool read_plaintext_;
  nonce_source& nonces_;
};

}  // namespace HOLDFAST_NAMESPACE::detail::store
