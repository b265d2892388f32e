#pragma once

/// \file
/// Encryption at rest: a store that encrypts payloads with AES-256-GCM before they reach the store
/// below and decrypts them when they come back. Each payload is bound to its realm, name, key and
/// class, so a payload that is copied to another row does not decrypt.

#include <holdfast/store.hpp>
#include <holdfast/version.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE {

/// A secret key. It can be moved, but not copied or printed. Its bytes are wiped on destruction.
/// Thread-safety: that of a plain value. After fork the child has a copy.
class HOLDFAST_API sealing_key {
 public:
  static constexpr std::size_t size = 32;

  /// Decodes 32 bytes of Base64, as `openssl rand -base64 32` prints them. Also accepts 16 and 24
  /// bytes, which only the Java library uses. Throws errc::invalid_argument; the message does not
  /// contain the text.
  [[nodiscard]] static sealing_key from_base64(std::string_view text);
  /// Throws errc::invalid_argument unless there are 16, 24 or 32 bytes.
  [[nodiscard]] static sealing_key from_bytes(std::span<const std::byte> bytes);

  sealing_key(sealing_key&& other) noexcept;
  sealing_key& operator=(sealing_key&& other) noexcept;
  ~sealing_key();

  /// Compares in constant time.
  [[nodiscard]] bool operator==(const sealing_key& other) const noexcept;
  /// Returns the bytes, for a key store or a test. Never log them.
  [[nodiscard]] std::span<const std::byte> reveal() const noexcept {
    return std::span(bytes_).first(used_);
  }

  template <class Stream>
  friend Stream& operator<<(Stream&, const sealing_key&) = delete;

 private:
  sealing_key() = default;
  std::array<std::byte, size> bytes_{};
  std::size_t used_ = 0;
};

/// Keys by id. The current key seals and opens; the other keys only open. To rotate keys:
/// 1. add the new key to every ring, after the current one;
/// 2. make it the current key everywhere;
/// 3. call sealed_store::rekey;
/// 4. remove the old key.
///
/// An id has 1 to 64 printable ASCII characters without space, `:`, `)` and `,`. The id `aesgcm`
/// names the key of the Java library. The id `b64` is reserved.
/// Thread-safety: that of a plain value.
class HOLDFAST_API sealing_ring {
 public:
  static constexpr std::size_t max_keys = 64;
  static constexpr std::size_t max_id_length = 64;
  /// The key id of the Java library.
  static constexpr std::string_view java_id = "aesgcm";

  /// An empty ring. make_sealed refuses it.
  sealing_ring() = default;
  sealing_ring(const sealing_ring&) = delete;
  sealing_ring& operator=(const sealing_ring&) = delete;
  sealing_ring(sealing_ring&&) noexcept = default;
  sealing_ring& operator=(sealing_ring&&) noexcept = default;
  ~sealing_ring() = default;
  /// Throws as `add`.
  sealing_ring(std::string current_id, sealing_key current) {
    add(std::move(current_id), std::move(current));
  }
  /// Adds a key. The first one is the current key. Throws errc::invalid_argument for an invalid id
  /// or a key that does not have 32 bytes, errc::duplicate for an id or key that is already in the
  /// ring, and errc::too_large for the 65th key.
  sealing_ring& add(std::string id, sealing_key key);

  /// Parses `id:base64` items, separated by line breaks or commas, the current key first. Ignores
  /// blank lines and lines that start with `#`. Throws as `add`, and errc::invalid_argument if
  /// there is no key. Messages never contain a key.
  [[nodiscard]] static sealing_ring from_text(std::string_view text);
  /// Parses a file of at most 64 KiB. Throws errc::unavailable if it cannot be read.
  [[nodiscard]] static sealing_ring from_file(const std::filesystem::path& file);
  /// Parses an environment variable. Throws errc::not_found if it is not set.
  [[nodiscard]] static sealing_ring from_environment(const std::string& variable);
  /// Parses the text that `load_keys` returns, for example from a vault. Wipes the text.
  [[nodiscard]] static sealing_ring from_callback(const std::function<std::string()>& load_keys);

  [[nodiscard]] bool empty() const noexcept { return keys_.empty(); }
  /// The current key first.
  [[nodiscard]] const std::vector<std::pair<std::string, sealing_key>>& keys() const noexcept {
    return keys_;
  }

 private:
  std::vector<std::pair<std::string, sealing_key>> keys_{};
};

/// Payloads are written as `ENC(<key id>:<Base64>)`, bound to their row. If the store below shares
/// its table with the Java library (store_options::peer), they are written in the Java library's
/// form `ENC(aesgcm:<Base64>)`, which is not bound to a row; the current key must then be `aesgcm`.
struct sealed_options {
  /// At least one key.
  sealing_ring keys{};
  /// Also open payloads that the Java library sealed with the key `aesgcm`. Such payloads could
  /// have been swapped between rows.
  bool read_java = false;
  /// Also read the Java library's `ENC(b64:...)`, which is not encrypted.
  bool read_base64 = false;
  /// Also read payloads that are not sealed. Set this only while a table is being migrated.
  bool read_plaintext = false;
};

/// Counters of a sealed store.
struct sealed_numbers {
  std::uint64_t sealed = 0;
  /// Payloads opened with any key.
  std::uint64_t opened = 0;
  /// Of these, payloads in another form or under another key than the store writes now.
  std::uint64_t opened_old = 0;
  /// Payloads that could not be opened or must not be read.
  std::uint64_t refused = 0;
};

struct rekey_report {
  std::uint64_t total = 0;       ///< entries in the store at the start
  std::uint64_t seen = 0;        ///< entries examined
  std::uint64_t changed = 0;     ///< entries sealed again
  std::uint64_t current = 0;     ///< entries already sealed with the current key
  std::uint64_t tombstones = 0;  ///< entries without a payload
  std::uint64_t unreadable = 0;  ///< entries that cannot be opened; unchanged
  std::uint64_t moved = 0;       ///< entries that others wrote or erased meanwhile; unchanged
  std::string problem{};         ///< why the first unreadable entry is unreadable, in one line
  bool stopped = false;          ///< the caller stopped it; run it again to continue
};

struct rekey_options {
  /// Effective names. Empty: every name of the realm.
  std::vector<std::string> names{};
  std::string realm{};
  /// Change nothing; only count.
  bool only_count = false;
  /// Called after each page of entries.
  std::function<void(const rekey_report&)> progress{};
  /// Stops the rekeying after the current page.
  std::stop_token stop{};
};

/// A store that seals the payloads of the store below. Tombstones have no payload and stay
/// unchanged.
///
/// `find` throws if a payload cannot be opened:
/// - errc::tampered: changed, copied from another row, or sealed with another key of the same id;
/// - errc::not_found: the key id is not in the ring;
/// - errc::malformed: truncated or damaged;
/// - errc::permission: plaintext, or a form that the options do not allow.
///
/// `find_all` leaves such entries out and counts them as unreadable.
/// Thread-safety: every function may be called from any thread. Fork: see the store below.
/// Exception safety: that of store; a put that cannot seal an entry writes nothing.
class HOLDFAST_API sealed_store : public store {
 public:
  using store::put;

  /// Replaces the key ring. Operations in progress still use the previous one. Throws as
  /// make_sealed and then keeps the previous ring.
  virtual void use(sealing_ring keys) = 0;

  /// Seals every entry with the current key. Skips entries that already are, so it can be stopped
  /// and run again. Replaces an entry only if version and payload are still those it has read:
  /// newer entries are kept and erased entries do not return. The store below must be a
  /// rewritable_store (SQL stores are). Throws errc::invalid_argument if it is not, and what that
  /// store throws.
  virtual rekey_report rekey(const rekey_options& options = {}) = 0;

  [[nodiscard]] virtual sealed_numbers numbers() const noexcept = 0;
};

/// The operations that `sealed_store::rekey` needs of the store below. `put` would not do: it could
/// bring back an entry that was erased meanwhile.
class HOLDFAST_API rewritable_store : public name_listing {
 public:
  struct rewriting {
    /// The entry as it was read.
    entry stored;
    /// The new payload. as_of, expire_on and class do not change.
    std::string payload;
  };

  ~rewritable_store() override;
  /// Replaces the payload of each entry whose as_of and payload still match. All entries are in one
  /// realm. Returns how many were replaced.
  virtual std::size_t rewrite(std::span<const rewriting> entries) = 0;
  /// Returns the next effective name in byte order that has entries, or nothing after the last.
  [[nodiscard]] virtual std::optional<std::string> name_after(std::string_view name,
                                                              std::string_view realm) = 0;
  /// Calls name_after for each name.
  [[nodiscard]] std::vector<std::string> names(std::string_view realm, std::size_t limit,
                                               std::string_view after = {}) override;
};

/// Throws errc::invalid_argument if the key ring is empty, if its current key cannot be used for
/// the form that is written, or if it has a Java key that is never used.
[[nodiscard]] HOLDFAST_API std::shared_ptr<sealed_store> make_sealed(std::shared_ptr<store> next,
                                                                     sealed_options options);

}  // namespace HOLDFAST_NAMESPACE
