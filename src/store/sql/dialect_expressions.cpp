#include "store/sql/dialect_expressions.hpp"

namespace HOLDFAST_NAMESPACE::detail::store {

using sql::dialect_id;

std::string time_expressions::to_column(const std::string& time) const {
  return zone.empty() ? time : "(" + time + " AT TIME ZONE " + zone + ")";
}

std::string time_expressions::from_column(const std::string& column) const {
  if (!zone.empty()) return column + " AT TIME ZONE " + zone;
  if (dialect == dialect_id::sqlserver)
    return "CAST(SWITCHOFFSET(" + column + ", '+00:00') AS DATETIME2(7))";
  if (dialect == dialect_id::oracle) return "SYS_EXTRACT_UTC(" + column + ")";
  return column;
}

std::string row_limit(dialect_id dialect, std::string_view count) {
  const std::string number(count);
  if (dialect == dialect_id::sqlserver) return " OFFSET 0 ROWS FETCH NEXT " + number + " ROWS ONLY";
  if (dialect == dialect_id::oracle) return " FETCH FIRST " + number + " ROWS ONLY";
  if (dialect == dialect_id::unknown) return {};
  return " LIMIT " + number;
}

}  // namespace HOLDFAST_NAMESPACE::detail::store
