#pragma once

/// \file
/// The store keeps entries: the last good answers, identified by effective name and key. It does
/// not decide when an entry is served (failover does). Of two versions it keeps the newer one.

#include <holdfast/clock.hpp>
#include <holdfast/error.hpp>
#include <holdfast/sql.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE {

/// An answer as a store keeps it, identified by (realm, name, key).
struct entry {
  /// The effective name.
  std::string name;
  /// The key as the key scheme produced it. Stored unchanged.
  std::string key;
  /// The version: the time at which the call that produced this answer started.
  timestamp as_of{};
  /// The last moment at which the entry may be served.
  timestamp expire_on{};
  /// The encoded answer. Empty for a tombstone, which says that the upstream had no answer.
  std::optional<std::string> payload{};
  /// The name of the payload's type in the payload registry. Empty for a tombstone.
  std::string payload_class{};
  /// The tenant's part of the store. Empty if the store has no tenants.
  std::string realm{};

  [[nodiscard]] bool tombstone() const noexcept { return !payload; }
  bool operator==(const entry&) const = default;
};

/// The location of entries: an effective name in a realm. A string converts to a name in the empty
/// realm. A place refers to the caller's strings, which must outlive the call.
struct place {
  std::string_view name;
  std::string_view realm{};

  // Implicit: a name alone is a complete location.
  template <std::convertible_to<std::string_view> Text>
  place(const Text& effective_name) : name(effective_name) {}
  place(std::string_view effective_name, std::string_view tenant_realm)
      : name(effective_name), realm(tenant_realm) {}
  explicit place(const entry& e) : name(e.name), realm(e.realm) {}
};

/// Entries of one name, sorted by key.
struct entry_page {
  std::vector<entry> entries{};
  /// The number of rows that could not be read. They are left out of `entries`.
  std::size_t unreadable = 0;
  /// Pass this as `after` to read the next page. Empty on the last page.
  std::optional<std::string> next{};
};

/// How many entries of a name expire by certain times; see store::expiring.
struct expiry_profile {
  /// For each requested time: the number of entries that cannot be served any more at that time,
  /// because they expire before it.
  std::vector<std::uint64_t> counts{};
  /// The number of entries that were counted, including expired ones and tombstones.
  std::uint64_t entries = 0;
  /// The name has more entries than were counted: all numbers are lower bounds.
  bool at_least = false;
};

/// What the memory of this process has of a key; see store::find_in_memory.
struct remembered_entry {
  /// Empty: no entry, or memory does not know one.
  std::optional<holdfast::entry> entry{};
  /// Whether this is the answer, so that the store below need not be asked. It is then also the
  /// answer if `entry` is empty. If false, an entry may be outdated: serve it only if the store
  /// below does not answer.
  bool current = false;
};

/// The state of a store, as health() reports it.
struct store_health {
  /// The store answers.
  bool available = false;
  /// What is wrong, in one line. Empty if nothing is. A store that answers can have a problem:
  /// - operations wait in a write-behind queue for long (write_behind_options::stalled_after);
  /// - operations were given up (`failed`), or rows could not be read (`unreadable`). Each is
  ///   reported for problem_lifetime after the first health() that saw it.
  std::string problem{};
  static constexpr std::chrono::minutes problem_lifetime{10};
  /// False while the store falls back to INSERT and UPDATE because the database refused the native
  /// upsert.
  bool native_upsert = true;
  /// Writes given up after the fallback lost every race.
  std::uint64_t abandoned = 0;
  /// Rows that could not be read.
  std::uint64_t unreadable = 0;
  /// True while `problem` reports rows that could not be read.
  bool unreadable_lately = false;
  /// Operations retried after a transient failure.
  std::uint64_t retried = 0;
  /// Operations that wait in a write-behind queue.
  std::uint64_t unsaved = 0;
  /// Queued operations that were given up; see write_behind_numbers::failed.
  std::uint64_t failed = 0;
  /// Of `failed`: operations that were quarantined; see write_behind_numbers::quarantined.
  std::uint64_t quarantined = 0;

  /// Returns whether the store answers and has no problem.
  [[nodiscard]] bool healthy() const noexcept { return available && problem.empty(); }
};

/// Which other programs use the table of a store.
enum class peer : std::uint8_t {
  /// Only programs that use Holdfast.
  none,
  /// Services that use the Java library. Keys, hashes and class names must be in Java's form: exact
  /// keys, MD5, Java class names.
  java
};
/// The name of the enumerator, for example `none`. Does not change between versions.
[[nodiscard]] HOLDFAST_API std::string_view to_string(peer other) noexcept;

/// Keeps entries. All implementations pass one contract suite (tests/contract/store_contract.hpp);
/// you can run it on your own.
///
/// Thread-safety: every function may be called from any thread.
/// Exception safety: a failed operation throws holdfast::error and leaves the entries unchanged,
/// unless the error is in doubt.
class HOLDFAST_API store {
 public:
  virtual ~store();

  /// Writes entries. Each is written only if it is not older than the stored one:
  /// - an older `as_of` never replaces a newer one;
  /// - of two entries with the same `as_of`, the later arrival wins;
  /// - a stored entry whose `as_of` is more than `max_skew` in the future can be replaced.
  ///
  /// Entries that have already expired are skipped. An entry that expires before its own `as_of` is
  /// refused. Written entries are durable when this returns. Safe to repeat.
  virtual void put(std::span<const entry> entries) = 0;
  void put(const entry& e) { put(std::span(&e, 1)); }

  /// Returns the stored entry, even if it has expired or is a tombstone.
  [[nodiscard]] virtual std::optional<entry> find(place location, std::string_view key) = 0;

  /// Returns what `find` would return for each key, in their order, with as few round trips as the
  /// store can. The default calls `find` for each key. Throws if a row cannot be read.
  [[nodiscard]] virtual std::vector<std::optional<entry>> find_many(
      place location, std::span<const std::string> keys);

  /// Returns what the memory of this process has of a key. Never waits: it does not ask a database,
  /// and takes no lock that is held while a database is asked. It obeys the rules of `find`: it
  /// never returns a version that is older than one that this store has acknowledged or returned,
  /// and none that was erased through it. Throws as `find` if the name, the key or the tenant is
  /// invalid, but not for a failure of the store below.
  ///
  /// The default is for a store without layers: if `waits()`, it knows nothing, otherwise it
  /// returns the result of `find`, which is current.
  [[nodiscard]] virtual remembered_entry find_in_memory(place location, std::string_view key);

  /// Returns at most `limit` entries of a name with keys greater than `after`, in byte order.
  [[nodiscard]] virtual entry_page find_all(place location, std::size_t limit,
                                            std::string_view after = {}) = 0;

  /// Removes the entry if its version is `as_of`, and returns whether it did. Other programs store
  /// nanoseconds, so `as_of` matches the whole microsecond. To record that an answer no longer
  /// exists, put a tombstone instead: after an erase, an older queued write can bring an old answer
  /// back.
  virtual bool erase(place location, std::string_view key, timestamp as_of) = 0;

  /// Removes at most `limit` entries that expired before `before`, in all realms, and returns how
  /// many. Skips rows that other transactions are writing, so repeat until it returns 0.
  virtual std::size_t expire(timestamp before, std::size_t limit) = 0;

  /// Returns the number of entries of a name, including expired ones and tombstones.
  [[nodiscard]] virtual std::uint64_t count(place location) = 0;

  /// Counts the entries of a name by their expiry, for at most `max_expiry_times` times. Bounded: a
  /// large name is counted in part. The default reads up to 10,000 entries with `find_all`. Throws
  /// errc::invalid_argument for more times.
  [[nodiscard]] virtual expiry_profile expiring(place location, std::span<const timestamp> times);
  static constexpr std::size_t max_expiry_times = 16;

  /// Returns which other programs use the table. A decorator returns what the store below returns.
  [[nodiscard]] virtual holdfast::peer peer() const noexcept;

  /// Queries the database. Never throws.
  [[nodiscard]] virtual store_health health() noexcept = 0;

  /// Returns whether operations may block on something outside this process, such as a server or a
  /// disk. Callers that must not block then use another thread.
  [[nodiscard]] virtual bool waits() const noexcept { return true; }
};

/// Lists the names of a store. The SQL stores and the memory store implement it; see
/// find_name_listing in store/compose.hpp for a store with layers.
///
/// Thread-safety and exception safety: those of the store.
class HOLDFAST_API name_listing {
 public:
  virtual ~name_listing();

  /// Returns at most `limit` effective names that have entries in this realm and come after
  /// `after`, in byte order.
  [[nodiscard]] virtual std::vector<std::string> names(std::string_view realm, std::size_t limit,
                                                       std::string_view after = {}) = 0;
};

/// The statements that a store sends, for `store_options::replace_query`.
enum class store_query : std::uint8_t {
  upsert,
  insert,
  update,
  find,
  find_all,
  erase,
  expire,
  count,
  rewrite,
  name_after,
  find_many,
  expiring
};
/// The name of the enumerator, for example `upsert`. Does not change between versions.
[[nodiscard]] HOLDFAST_API std::string_view to_string(store_query query) noexcept;

/// The type of the payload column.
enum class payload_column : std::uint8_t {
  /// A text column, such as TEXT. Other programs can read the JSON in it. NUL bytes are refused.
  text,
  /// A binary column, such as BYTEA or BLOB.
  bytes
};
/// The name of the enumerator, for example `text`. Does not change between versions.
[[nodiscard]] HOLDFAST_API std::string_view to_string(payload_column column) noexcept;

/// Whether a store checks its table and its server when it first reaches the database. The check
/// sends a few small queries, once. See store/probe.hpp.
enum class start_probe : std::uint8_t {
  /// No check.
  off,
  /// Logs problems. Refuses a table on which entries would be lost or confused.
  warn,
  /// Refuses everything that deserves a warning.
  strict
};
/// The name of the enumerator, for example `off`. Does not change between versions.
[[nodiscard]] HOLDFAST_API std::string_view to_string(start_probe mode) noexcept;

/// Whether a program can start while the database of its store cannot be reached.
enum class start_mode : std::uint8_t {
  /// `database::store` does not wait for the database. The dialect, the table and the probe follow
  /// in the background. An operation waits for the first attempt; while the database is not reached
  /// after that, operations fail at once with the error of the last attempt, which is transient,
  /// and
  /// health() tells it. What is wrong for good, such as a password or a table that the probe
  /// refuses, is also logged as an error. Attempts continue until one succeeds.
  background,
  /// `database::store` connects and throws if it fails. For command-line tools, migrations, and
  /// services that prefer not to start.
  require
};
/// The name of the enumerator, for example `background`. Does not change between versions.
[[nodiscard]] HOLDFAST_API std::string_view to_string(start_mode mode) noexcept;

struct store_options {
  /// Prefix of the table name: letters, digits, `_`, and qualifiers separated by dots.
  std::string prefix{};
  /// Create the table and its index if they do not exist.
  bool create_schema = false;
  /// See store::put.
  std::chrono::microseconds max_skew = std::chrono::minutes(5);
  payload_column payload = payload_column::text;
  /// Set to `java` if services with the Java library share the table; see docs/java.md. Entries
  /// that the Java library could not find or read are then refused with errc::invalid_argument.
  holdfast::peer peer = holdfast::peer::none;
  /// The time zone of TIMESTAMP columns without a zone: `UTC`, `Europe/Paris`, `+02:00`.
  /// - PostgreSQL: a table with such columns is refused at the first use unless this is set.
  ///   Ignored if the columns have a zone.
  /// - MySQL, MariaDB: DATETIME has no zone. Only `UTC` is accepted; it is required if the table
  ///   is shared with Java.
  std::string zone{};
  /// The tenants' realms. Each maps to the text in front of `prefix`: `ACME_` for a table of its
  /// own, `acme.` for a schema of its own. If empty, the store has no tenants; otherwise the realm
  /// of every entry must be one of these.
  std::map<std::string, std::string, std::less<>> realms{};
  /// `warn` is skipped if `replace_query` is set, since the table may be a different one.
  start_probe probe = start_probe::warn;
  /// See docs/starting.md. On SQLite the first attempt is made at once, because a file needs no
  /// server.
  start_mode start = start_mode::background;
  /// Replaces statements, in every realm. Receives the standard text and returns the text to send,
  /// with the same parameters and columns. On SQLite and MySQL the `upsert` text ends before the
  /// rows; rows and guard are appended. `find_all` is called twice: for the first page and for the
  /// following ones. `find_many` is called for each of several numbers of keys; if `find` is
  /// replaced and `find_many` is not, keys are found one by one. If `find_all` is replaced and
  /// `expiring` is not, entries are counted with `find_all`.
  std::function<std::string(store_query query, const std::string& standard_text)> replace_query{};
};

/// Returns the statements that create the tables (one for each realm) and their indexes if they do
/// not exist. Throws errc::invalid_argument for an invalid prefix or an unknown dialect.
[[nodiscard]] HOLDFAST_API std::vector<std::string> store_schema(sql::dialect_id dialect,
                                                                 const store_options& options = {});

/// Column lengths of the published table, in characters.
inline constexpr std::size_t max_name_length = 50;
inline constexpr std::size_t max_key_length = 256;
inline constexpr std::size_t max_class_length = 256;

}  // namespace HOLDFAST_NAMESPACE
