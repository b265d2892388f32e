#pragma once

/// \file
/// What a user lacks to use a table: the table, columns, or privileges.

#include <holdfast/sql.hpp>
#include <holdfast/version.hpp>

#include "sql/public_names.hpp"

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::sql {

/// What a program needs of a table.
struct table_need {
  std::string table{};
  /// Columns that it reads and writes; at least one.
  std::vector<std::string> columns{};
  /// INSERT, UPDATE or DELETE. SELECT is always needed.
  std::vector<std::string> privileges{};
};

/// What a user lacks. Nothing is missing if the table exists and both lists are empty.
struct table_lack {
  bool exists = true;
  std::vector<std::string> columns{};
  std::vector<std::string> privileges{};
  /// The message of the first refusal.
  std::string refusal{};

  [[nodiscard]] bool nothing() const noexcept {
    return exists && columns.empty() && privileges.empty();
  }
};

/// Runs statements that affect no row, because servers check names and privileges first. Changes
/// nothing. Throws errors of the database other than a missing object or privilege.
[[nodiscard]] HOLDFAST_API table_lack examine_table(connection& connection, const table_need& need);

/// The GRANT that gives what a table needs to the user of the connection. Empty if the dialect has
/// no such statement.
[[nodiscard]] HOLDFAST_API std::string grant_statement(connection& connection, dialect_id dialect,
                                                       const table_need& need);

/// "a, b and c".
[[nodiscard]] HOLDFAST_API std::string enumerated(const std::vector<std::string>& texts);

}  // namespace HOLDFAST_NAMESPACE::detail::sql
