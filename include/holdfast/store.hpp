#pragma once

/// \file
/// The store keeps the last good answers: entries, by effective name and key, on the database a team already runs. It decides nothing
/// about failover; it keeps what it is given, and of two versions the newer.

#include <holdfast/clock.hpp>
#include <holdfast/error.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE {

/// What a store keeps for (effective name, key).
struct entry {
  std::string name;                      ///< the effective name
  std::string key;                       ///< as the key schemes make it; verbatim
  timestamp as_of{};                     ///< when the call that gave this answer started: the version
  timestamp expire_on{};                 ///< the last moment at which it may be served
  std::optional<std::string> payload{};  ///< owned bytes; nothing means a tombstone: the answer is that there is nothing
  std::string payload_class{};           ///< what the payload is, from the registry of payload types; empty for a tombstone
  std::string realm{};                   ///< whose part of the store it is in; empty where there are no tenants

  [[nodiscard]] bool tombstone() const noexcept { return !payload; }
  bool operator==(const entry&) const = default;
};

/// Where entries are: an effective name, in a tenant's realm. A plain text is a name where there are no tenants.
/// It refers to the caller's memory, which must outlive the call.
struct place {
  std::string_view name;
  std::string_view realm{};

  template <std::convertible_to<std::string_view> Text>
  place(const Text& only_name) : name(only_name) {}  // NOLINT(google-explicit-constructor): a name is a place
  place(std::string_view its_name, std::string_view its_realm) : name(its_name), realm(its_realm) {}
  explicit place(const entry& of) : name(of.name), realm(of.realm) {}
};

/// Some entries of one name, in the order of their keys.
struct entry_page {
  std::vector<entry> entries{};
  std::size_t unreadable = 0;  ///< rows that are there but cannot be read; they are left out, never the whole page
  /// Give this as `after` to read on; nothing when this was the last page.
  std::optional<std::string> next{};
};

/// How a store is.
struct store_health {
  bool available = false;
  std::string problem{};         ///< what is wrong, in one line; empty when nothing is
  bool native_upsert = true;     ///< false while the database refused the native statement and the store falls back
  std::uint64_t abandoned = 0;   ///< writes given up after losing every race of the fallback
  std::uint64_t unreadable = 0;  ///< rows met that could not be read
  std::uint64_t retried = 0;     ///< operations tried again after a transient failure
};

/// Who else uses a store's table.
enum class peer : std::uint8_t {
  none,  ///< nobody, or other programs with Holdfast
  java   ///< services with the Java library whose table it is: exact keys, MD5, Java's class names, nothing that it cannot read
};

/// Keeps entries. Every implementation passes the same contract suite (tests/contract/store_contract.hpp), which you can run on your own.
/// Thread-safety: every function may be called from any thread.
/// Exception safety: a failed operation throws holdfast::error and leaves the entries as they were, unless the error is in doubt.
class HOLDFAST_API store {
 public:
  virtual ~store();

  /// Writes entries, each only if it is not older than what is there: an older `as_of` never replaces a newer one; of two with the same
  /// `as_of` the later arrival stays. A stored entry stamped more than `max_skew` in the future does not hold its key. Entries that have
  /// expired already are not written; one that expires before its own as_of is refused. All that are written are durable when this returns. Safe to repeat.
  virtual void put(std::span<const entry> entries) = 0;
  void put(const entry& one) { put(std::span(&one, 1)); }

  /// The entry as it is, expired or not, tombstones included.
  [[nodiscard]] virtual std::optional<entry> find(place where, std::string_view key) = 0;

  /// The entries of a name whose keys come after `after`, in byte order, at most `limit`.
  [[nodiscard]] virtual entry_page find_all(place where, std::size_t limit, std::string_view after = {}) = 0;

  /// Removes the version of an entry that started at `as_of`, and no other. Others keep nanoseconds, so it means that whole microsecond.
  /// Returns whether it was there. To say that an answer is gone, put a tombstone: a plain erase lets an older queued write return.
  virtual bool erase(place where, std::string_view key, timestamp as_of) = 0;

  /// Removes entries that expired before the moment, in every realm, at most `limit`, and returns how many. Rows that others are writing are left out, so
  /// call again until it returns 0.
  virtual std::size_t expire(timestamp before, std::size_t limit) = 0;

  /// How many entries a name has, expired ones and tombstones included.
  [[nodiscard]] virtual std::uint64_t count(place where) = 0;

  /// Who else uses the table, and what keys must be like therefore. A decorator says what the store below it says.
  [[nodiscard]] virtual holdfast::peer peer() const noexcept;

  /// Asks the database; never throws.
  [[nodiscard]] virtual store_health health() noexcept = 0;

  /// Whether operations may wait for something outside this process: a server, a disk. Who must not wait then calls from another thread.
  [[nodiscard]] virtual bool waits() const noexcept { return true; }
};

/// Limits of the published table.
inline constexpr std::size_t max_name_length = 50;    ///< characters of FAILOVER_NAME
inline constexpr std::size_t max_key_length = 256;    ///< characters of FAILOVER_KEY
inline constexpr std::size_t max_class_length = 256;  ///< characters of PAYLOAD_CLASS

}  // namespace HOLDFAST_NAMESPACE
