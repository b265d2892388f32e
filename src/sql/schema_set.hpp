#pragma once

/// \file
/// The description of a set of tables with one schema version: the tables of a store, of the
/// sequences with one prefix, of an outbox. Each set has one function that returns its description,
/// next to its CREATE statements.
///
/// To change the tables of a set from version 1 to version 2:
///
/// - Raise `current` to 2. Leave `oldest` at 1: code must work on tables of the version before.
/// - Let `create` return the new columns for version 2 and later, and the old tables for version 1.
/// - Let `upgrade` return the steps to version 2: see add_column and add_index. A step may run
///   again after a crash, and at the same time as in another process, so its second run must change
///   nothing. New columns can be NULL or have a default, because processes that started on
///   version 1 do not write them.
/// - Add a marker for version 2: a column that tables of version 1 do not have.
/// - In the code, use the new columns only if the version that read_schema_version returned is at
///   least 2.

#include <holdfast/version.hpp>

#include "sql/public_names.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::sql {

/// One statement of an upgrade.
struct schema_step {
  std::string text;
  /// A query that returns one integer. The step is skipped if it is not 0. Empty: the statement
  /// itself changes nothing if it ran before.
  std::string unless{};
};

/// A column that exists since a version. It shows the version of tables to a script, and to a user
/// who may not read the table of versions.
struct schema_marker {
  int version;
  std::string table;
  std::string column;
};

struct schema_set {
  std::string name;                 ///< for messages: "store", "sequences", "outbox"
  std::vector<std::string> tables;  ///< with prefixes and qualifiers; the main table first
  int current = 1;                  ///< the version that this code creates
  int oldest = 1;                   ///< the oldest version that this code works with
  /// Returns the statements that create the tables of a version if they do not exist.
  std::function<std::vector<std::string>(dialect_id dialect, int version)> create;
  /// Returns the steps from `version - 1` to `version`. Empty while there is only version 1.
  std::function<std::vector<schema_step>(dialect_id dialect, int version)> upgrade{};
  std::vector<schema_marker> markers{};  ///< one for each version from 2 on, in this order
  /// The options of `holdfast schema` that select this set, for messages: "--prefix MYAPP_".
  std::string command_options{};

  [[nodiscard]] const std::string& main_table() const { return tables.front(); }
};

/// The part of a table name before the last dot, with the dot. Empty if there is none.
[[nodiscard]] HOLDFAST_API std::string qualifier_of(std::string_view table);

/// The part of a table name after the last dot.
[[nodiscard]] HOLDFAST_API std::string unqualified(std::string_view table);

/// Wraps a CREATE or ALTER statement for Oracle, which has no IF NOT EXISTS before version 23.
/// Ignores ORA-00955 (the name is used), ORA-01408 (the columns are indexed) and ORA-01430 (the
/// column exists).
[[nodiscard]] HOLDFAST_API std::string oracle_create_if_missing(std::string_view statement);

/// The statement that creates a table unless it exists. `columns`: the list in parentheses, and
/// what the dialect has after it.
[[nodiscard]] HOLDFAST_API std::string create_table_if_missing(dialect_id dialect,
                                                               const std::string& table,
                                                               const std::string& columns);

/// A query that returns how many columns of this name a table has: 0 or 1. Throws
/// errc::invalid_argument for an unknown dialect.
[[nodiscard]] HOLDFAST_API std::string count_column(dialect_id dialect, const std::string& table,
                                                    const std::string& column);

/// The step that adds a column unless it exists. `definition`: its type, and DEFAULT if it has one.
/// Throws errc::invalid_argument for an unknown dialect.
[[nodiscard]] HOLDFAST_API schema_step add_column(dialect_id dialect, const std::string& table,
                                                  const std::string& column,
                                                  const std::string& definition);

/// The step that adds an index unless it exists. `columns` is the list in parentheses, with the
/// condition of a partial index after it. Throws errc::invalid_argument for an unknown dialect.
[[nodiscard]] HOLDFAST_API schema_step add_index(dialect_id dialect, const std::string& index,
                                                 const std::string& table,
                                                 const std::string& columns);

}  // namespace HOLDFAST_NAMESPACE::detail::sql
