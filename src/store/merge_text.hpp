#pragma once

#include <holdfast/database.hpp>
#include <holdfast/sql.hpp>
#include <holdfast/version.hpp>

#include <string>
#include <string_view>

/// The words of those who have neither ON CONFLICT nor ON DUPLICATE KEY: H2, SQL Server, Oracle.
namespace HOLDFAST_NAMESPACE {

/// The columns of an entry, in the order in which every statement gives and takes them.
inline constexpr std::string_view entry_columns = "FAILOVER_NAME, FAILOVER_KEY, AS_OF, EXPIRE_ON, PAYLOAD, PAYLOAD_CLASS";

/// Whether the dialect's upsert is a MERGE.
[[nodiscard]] bool merges(sql::dialect_id dialect) noexcept;

/// The upsert in full. Its guard: a row is only replaced by one that is not older, or when it is stamped beyond the skew horizon.
[[nodiscard]] sql::batch_statement merge_statement(sql::dialect_id dialect, const std::string& table, sql::type payload);

/// A column of moments, in UTC whatever the offset that somebody stored it with.
[[nodiscard]] std::string moment_text(sql::dialect_id dialect, const std::string& column);

/// What stands behind ORDER BY to get no more than the last parameter says; nothing where that is not known.
[[nodiscard]] std::string_view first_rows_text(sql::dialect_id dialect) noexcept;

/// Oracle (before 23) knows no IF NOT EXISTS: ORA-00955 says that the name is taken, ORA-01408 that the columns have an index.
[[nodiscard]] std::string oracle_unless_there(const std::string& statement);

}  // namespace HOLDFAST_NAMESPACE
