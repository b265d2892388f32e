#pragma once

/// \file
/// Encryption at rest: a store whose payloads are sealed with AES-256-GCM before they reach the store below, and opened after they come back.
/// A payload is bound to its realm, name, key and class, so that one row cannot be put in the place of another.

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

/// A secret key. It can be moved, not copied, and not printed; its bytes are wiped when it goes.
/// Thread-safety: as a plain value. Fork: the child has a copy, as of all memory.
class HOLDFAST_API sealing_key {
 public:
  static constexpr std::size_t size = 32;

  /// Base64 of 32 bytes, as `openssl rand -base64 32` makes it. (16 and 24 bytes are read too, but only the Java library uses such.)
  /// Throws errc::invalid_argument, with a message that does not repeat the text.
  [[nodiscard]] static sealing_key from_base64(std::string_view text);
  /// Throws errc::invalid_argument unless there are 16, 24 or 32.
  [[nodiscard]] static sealing_key from_bytes(std::span<const std::byte> bytes);

  sealing_key(sealing_key&& other) noexcept;
  sealing_key& operator=(sealing_key&& other) noexcept;
  ~sealing_key();

  /// The same key? Takes the same time wherever they differ.
  [[nodiscard]] bool operator==(const sealing_key& other) const noexcept;
  /// The bytes themselves: for a key store or a test, never for a log.
  [[nodiscard]] std::span<const std::byte> reveal() const noexcept { return std::span(bytes_).first(used_); }

  template <class Stream>
  friend Stream& operator<<(Stream&, const sealing_key&) = delete;

 private:
  sealing_key() = default;
  std::array<std::byte, size> bytes_{};
  std::size_t used_ = 0;
};

/// The key ring: keys by id. The current one seals and opens; the others only open. To rotate: add the new key as one that only opens,
/// everywhere; then make it the current one; then `rekey`; then remove the old one.
///
/// An id has 1 to 64 characters: printable ASCII without space, `:`, `)` and `,`. `aesgcm` is the Java library's key, `b64` is not allowed.
/// Thread-safety: as a plain value.
class HOLDFAST_API sealing_ring {
 public:
  static constexpr std::size_t max_keys = 64;
  static constexpr std::size_t max_id_length = 64;
  static constexpr std::string_view java_id = "aesgcm";  ///< what the Java library calls its only cipher with a key

  /// Empty: no store can be sealed with it.
  sealing_ring() = default;
  sealing_ring(const sealing_ring&) = delete;
  sealing_ring& operator=(const sealing_ring&) = delete;
  sealing_ring(sealing_ring&&) noexcept = default;
  sealing_ring& operator=(sealing_ring&&) noexcept = default;
  ~sealing_ring() = default;
  /// Throws as `add`.
  sealing_ring(std::string current_id, sealing_key current) { add(std::move(current_id), std::move(current)); }
  /// The first key is the current one, each further one only opens. Throws errc::invalid_argument for an id that cannot be, or a key that has
  /// not 32 bytes; errc::duplicate for an id or a key that is there already; errc::too_large for the 65th.
  sealing_ring& add(std::string id, sealing_key key);

  /// Reads `id:base64`, one a line (or separated by commas), the current one first; blank lines and lines that begin with `#` are left out.
  /// Throws as `add`; errc::invalid_argument where there is no key. No message repeats a key.
  [[nodiscard]] static sealing_ring from_text(std::string_view text);
  /// The same from a file, at most 64 KiB. Throws errc::unavailable when it cannot be read.
  [[nodiscard]] static sealing_ring from_file(const std::filesystem::path& file);
  /// The same from an environment variable. Throws errc::not_found when it is not set.
  [[nodiscard]] static sealing_ring from_environment(const std::string& variable);
  /// The same from whatever knows the keys: a vault, a key management service. What it returned is wiped.
  [[nodiscard]] static sealing_ring from_callback(const std::function<std::string()>& ask);

  [[nodiscard]] bool empty() const noexcept { return keys_.empty(); }
  /// The current one first.
  [[nodiscard]] const std::vector<std::pair<std::string, sealing_key>>& keys() const noexcept { return keys_; }

 private:
  std::vector<std::pair<std::string, sealing_key>> keys_{};
};

/// What is written is `ENC(<key id>:<Base64>)`, bound to its row. Where the store below shares its table with the Java library
/// (store_options::peer), it is `ENC(aesgcm:<Base64>)` as the Java library reads and writes it, bound to nothing; then the current key must be `aesgcm`.
struct sealed_options {
  sealing_ring keys{};          ///< at least one
  bool read_java = false;       ///< also open what the Java library sealed with the key `aesgcm`: rows that could have been swapped
  bool read_base64 = false;     ///< also read the Java library's `ENC(b64:...)`, which is no encryption
  bool read_plaintext = false;  ///< also read what is not sealed at all: while a table is being migrated, and no longer
};

/// What a sealed store did so far.
struct sealed_numbers {
  std::uint64_t sealed = 0;
  std::uint64_t opened = 0;      ///< with whichever key
  std::uint64_t opened_old = 0;  ///< of these, how many were not in the form and under the key that is written now
  std::uint64_t refused = 0;     ///< payloads that could not be opened, or must not be read
};

struct rekey_report {
  std::uint64_t total = 0;       ///< entries that were there when it began
  std::uint64_t seen = 0;        ///< entries looked at
  std::uint64_t changed = 0;     ///< sealed anew
  std::uint64_t current = 0;     ///< sealed with the current key already
  std::uint64_t tombstones = 0;  ///< have nothing to seal
  std::uint64_t unreadable = 0;  ///< cannot be opened; left as they are
  std::uint64_t moved = 0;       ///< written or erased by others meanwhile; left as they are
  std::string problem{};         ///< why the first unreadable one is, in one line
  bool stopped = false;          ///< it was asked to stop; run it again to go on
};

struct rekey_options {
  std::vector<std::string> names{};                     ///< effective names; none means every name of the realm
  std::string realm{};                                  ///< whose part of the store
  bool only_count = false;                              ///< change nothing: say what there is to do
  std::function<void(const rekey_report&)> progress{};  ///< told now and then
  std::stop_token stop{};                               ///< ends it after the entries at hand
};

/// A store that seals the payloads of the one below. Tombstones stay what they are: they have no payload.
///
/// `find` throws what is wrong with a payload: errc::tampered (changed, moved from another row, or sealed with another key of that id),
/// errc::not_found (a key id that is not in the ring), errc::malformed (cut off), errc::permission (plaintext or a form that must not be
/// read). `find_all` leaves such entries out and counts them as unreadable.
/// Thread-safety: every function may be called from any thread. Fork: as the store below.
/// Exception safety: as store; a put that cannot seal writes nothing.
class HOLDFAST_API sealed_store : public store {
 public:
  using store::put;

  /// Takes another key ring, from now on. Entries that are being sealed or opened meanwhile use the one before.
  /// Throws as make_sealed, and keeps the one before.
  virtual void use(sealing_ring keys) = 0;

  /// Seals anew, with the current key, whatever is not. Entries that are so already are skipped: it can be stopped, killed, and run again.
  /// An entry is only replaced while it is the version that was read, payload included: nothing newer is lost, nothing erased returns.
  /// The store below must be a rewritable_store (those on a database are). Throws errc::invalid_argument if not, and what it throws.
  virtual rekey_report rekey(const rekey_options& options = {}) = 0;

  [[nodiscard]] virtual sealed_numbers numbers() const noexcept = 0;
};

/// What `sealed_store::rekey` needs of the store below: replacing a payload where it is, and only there. A `put` could bring back
/// an entry that was erased meanwhile.
class HOLDFAST_API rewritable_store {
 public:
  struct rewriting {
    entry was;            ///< as it was read
    std::string payload;  ///< what takes its place; as_of, expire_on and class stay
  };

  virtual ~rewritable_store();
  /// All in one realm. Replaces the payload of each entry that is still there with that as_of and that payload; returns how many were.
  virtual std::size_t rewrite(std::span<const rewriting> entries) = 0;
  /// The next effective name in byte order that has entries; nothing after the last.
  [[nodiscard]] virtual std::optional<std::string> name_after(std::string_view name, std::string_view realm) = 0;
};

/// Throws errc::invalid_argument for a key ring that cannot be: empty, a current key that is not fit for the form, or a Java key that is never used.
[[nodiscard]] HOLDFAST_API std::shared_ptr<sealed_store> make_sealed(std::shared_ptr<store> next, sealed_options options);

}  // namespace HOLDFAST_NAMESPACE
