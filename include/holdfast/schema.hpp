#pragma once

/// \file
/// The schema versions of the tables that Holdfast has on a database, and their upgrade.
///
/// The tables of a store, of sequences, of an outbox and of instances are sets with versions.
/// Code works with tables of the version before as well, so that old and new programs can run at
/// the same time; docs/upgrading.md has the steps. On Redis, the keys of sequences and of an outbox
/// have versions by the same rules.

#include <holdfast/database.hpp>
#include <holdfast/version.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE {

/// Selects the sets of a database.
struct schema_options {
  /// Prefix of the tables of store, sequences and instances; on Redis, of the keys of sequences.
  std::string prefix{};
  /// Prefix of the outbox, as outbox_options has it. Empty: the default that outbox_options
  /// chooses on this database.
  std::string outbox_prefix{};
};

/// How the version of a set relates to this code.
enum class schema_verdict : std::uint8_t {
  absent,   ///< the database does not have this set
  current,  ///< the version that this code creates
  older,    ///< this code works with it; upgrade_schema brings it to the current version
  too_old,  ///< this code does not work with it before upgrade_schema
  newer     ///< this code does not work with it; update the program
};
[[nodiscard]] HOLDFAST_API std::string_view to_string(schema_verdict verdict) noexcept;

/// The version of one set.
struct schema_status {
  std::string set{};                  ///< "store", "sequences", "outbox" or "instances"
  std::vector<std::string> tables{};  ///< its tables, the main one first; on Redis its keys
  std::optional<int> version{};       ///< in the database; empty if the set is absent
  int current = 1;                    ///< the version that this code creates
  int oldest = 1;                     ///< the oldest version that this code works with
  schema_verdict verdict = schema_verdict::absent;
};

/// Returns the versions of the sets with these prefixes: on SQL of the store, the sequences, the
/// outbox and the instances, on Redis of the sequences and the outbox. Changes nothing. Throws
/// errc::invalid_argument for an invalid prefix and for a database in memory, and errors of the
/// database.
[[nodiscard]] HOLDFAST_API std::vector<schema_status> read_schema_status(
    const database& db, const schema_options& options = {});

/// The upgrade of one set.
struct schema_upgrade {
  schema_status before{};
  /// The statements that ran, or would run. On Redis, the commands in words.
  std::vector<std::string> statements{};
};

enum class upgrade_mode : std::uint8_t {
  run,
  dry_run  ///< only returns the statements
};
/// The name of the enumerator, for example `run`. Does not change between versions.
[[nodiscard]] HOLDFAST_API std::string_view to_string(upgrade_mode mode) noexcept;

/// Upgrades the sets that exist to the version of this code. Sets with that version stay unchanged,
/// except that a missing record of it is written. Two upgrades may run at the same time, and an
/// upgrade that failed or was killed can be repeated. SQLite, PostgreSQL and SQL Server change a
/// set in one transaction for each version.
///
/// Throws errc::unsupported_type if a set is newer than this code; nothing is changed then. Throws
/// errors of the database; sets before the one that failed are upgraded.
HOLDFAST_API std::vector<schema_upgrade> upgrade_schema(const database& db,
                                                        const schema_options& options = {},
                                                        upgrade_mode mode = upgrade_mode::run);

}  // namespace HOLDFAST_NAMESPACE
