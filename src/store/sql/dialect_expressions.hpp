#pragma once

/// \file
/// SQL expressions that differ between dialects, and the columns of the entry table.

#include <holdfast/sql.hpp>
#include <holdfast/version.hpp>

#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::store {

/// The columns of an entry, in the order in which all statements bind and return them.
inline constexpr std::string_view entry_columns =
    "FAILOVER_NAME, FAILOVER_KEY, AS_OF, EXPIRE_ON, PAYLOAD, PAYLOAD_CLASS";

/// Converts between times in UTC and the time columns of a table.
struct time_expressions {
  sql::dialect_id dialect = sql::dialect_id::unknown;
  /// PostgreSQL: the zone of columns without a time zone, as an SQL expression. Empty if the
  /// columns have one.
  std::string zone{};

  /// The expression that stores `time` in a column.
  [[nodiscard]] std::string to_column(const std::string& time) const;
  /// The expression that reads a column as a time in UTC.
  [[nodiscard]] std::string from_column(const std::string& column) const;
};

/// The clause after ORDER BY that limits the result to `count` rows; `count` may be "?". Empty for
/// an unknown dialect, where the driver limits the rows.
[[nodiscard]] std::string row_limit(sql::dialect_id dialect, std::string_view count);

}  // namespace HOLDFAST_NAMESPACE::detail::store
