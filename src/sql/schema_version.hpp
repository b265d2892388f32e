#pragma once

/// \file
/// The schema versions of sets of tables.
///
/// The table HOLDFAST_SCHEMA has one row for each set:
///
///     SET_NAME          VERSION  WRITTEN_BY
///     MYAPP_SEQUENCES   2        0.2.0
///
/// SET_NAME is the name of the main table of the set, without qualifiers. The table lives where the
/// main table lives: both have the same qualifiers, and the prefix of a set is part of SET_NAME. So
/// the row is found from the prefix of the set alone. A missing table or row means version 1.
///
/// Only create_schema and upgrade_schema (schema_upgrade.hpp) write it. They write the row before
/// they create the tables, so that new tables never lack their row.

#include "sql/schema_set.hpp"

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::sql {

/// What a database has of a set.
struct schema_state {
  bool exists = false;            ///< whether the main table exists
  std::optional<int> recorded{};  ///< the version in the table of versions
  /// The version of the tables: the recorded one, or what the markers show if the table of versions
  /// cannot be read, or 1.
  int version = 1;
  bool readable = true;         ///< false: the user may not read the table of versions
  std::string version_table{};  ///< with qualifiers; it may not exist
};

/// The row of a set, by the name that SET_NAME has. MySQL and MariaDB distinguish upper and lower
/// case in the names of tables; for other dialects the name is in upper case.
[[nodiscard]] HOLDFAST_API std::string schema_row_name(dialect_id dialect, const schema_set& set);

/// Throws errc::unsupported_type if this code does not work with tables of this version. The
/// message says what to do.
HOLDFAST_API void check_schema_version(const schema_set& set, int version);

/// Returns the version of the tables of a set, for its first contact with the database: one or two
/// short queries. Throws as check_schema_version, and errors of the database. If the tables do not
/// exist, returns a version that the code works with: the next statement reports that.
[[nodiscard]] HOLDFAST_API int read_schema_version(connection& connection, dialect_id dialect,
                                                   const schema_set& set);
/// The same for several sets. Sets with the same qualifiers share the queries.
[[nodiscard]] HOLDFAST_API std::vector<int> read_schema_versions(connection& connection,
                                                                 dialect_id dialect,
                                                                 std::span<const schema_set> sets);

/// Returns what the database has of a set. Throws errors of the database.
[[nodiscard]] HOLDFAST_API schema_state inspect_schema(connection& connection, dialect_id dialect,
                                                       const schema_set& set);

/// Creates the tables that do not exist and records their version. Existing tables keep their
/// version. Returns the version of the tables. A user who may not create or write the table of
/// versions can still create tables of version 1. Throws as check_schema_version, and errors of the
/// database; it can be called again then.
[[nodiscard]] HOLDFAST_API int create_schema(connection& connection, dialect_id dialect,
                                             const schema_set& set);

/// The statements that create the tables that do not exist: those of the sets, then those that
/// record their versions. Existing tables keep their version. Throws errc::invalid_argument for an
/// unknown dialect.
[[nodiscard]] HOLDFAST_API std::vector<std::string> create_script(dialect_id dialect,
                                                                  std::span<const schema_set> sets);

/// The statement that creates the table of versions if it does not exist. `table` has qualifiers.
[[nodiscard]] std::string create_version_table(dialect_id dialect, const std::string& table);
/// The statement that records a version, unless the set has a row.
[[nodiscard]] std::string insert_version(dialect_id dialect, const std::string& table,
                                         const schema_set& set, int version);
/// The statement that raises the recorded version.
[[nodiscard]] std::string update_version(dialect_id dialect, const std::string& table,
                                         const schema_set& set, int version);
/// Reads the recorded version of a set. Nothing if there is no row. Throws errors of the database.
[[nodiscard]] std::optional<int> read_recorded_version(connection& connection, dialect_id dialect,
                                                       const std::string& table,
                                                       const schema_set& set);

/// Runs a statement that creates something if it does not exist. Two processes may both find that
/// it does not exist; the one that fails tries again.
HOLDFAST_API void run_create(connection& connection, const std::string& text);

}  // namespace HOLDFAST_NAMESPACE::detail::sql
