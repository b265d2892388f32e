#pragma once

/// \file
/// Upgrades the tables of a set to the version of this code.

#include "sql/schema_version.hpp"

#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::sql {

/// The statements that upgrade_schema would run: those that record the version, and the steps of
/// each version. Empty if the tables do not exist, or have the current version and a row. Throws
/// errc::unsupported_type if the tables are newer than this code, and errc::permission if the
/// version cannot be read.
[[nodiscard]] HOLDFAST_API std::vector<std::string> upgrade_statements(dialect_id dialect,
                                                                       const schema_set& set,
                                                                       const schema_state& state);

/// Upgrades the tables, version by version. Returns the statements that it ran; those of a version
/// that another process upgraded meanwhile are not among them.
///
/// SQLite, PostgreSQL and SQL Server change the tables and their version in one transaction. MySQL,
/// MariaDB, H2 and Oracle commit each statement: after a crash, run it again. Two upgrades at once
/// are safe: each step changes nothing if it ran before. Throws as upgrade_statements, and errors
/// of the database.
[[nodiscard]] HOLDFAST_API std::vector<std::string> upgrade_schema(connection& connection,
                                                                   dialect_id dialect,
                                                                   const schema_set& set);

}  // namespace HOLDFAST_NAMESPACE::detail::sql
