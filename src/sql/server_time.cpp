#include "sql/server_time.hpp"

#include "sql/dialect.hpp"

namespace HOLDFAST_NAMESPACE::detail::sql {

std::string server_microseconds(dialect_id dialect) {
  if (dialect == dialect_id::postgresql)
    return "(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::bigint";
  if (is_mysql(dialect)) return "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))";
  if (dialect == dialect_id::h2)
    return "CAST(EXTRACT(EPOCH FROM CURRENT_TIMESTAMP(6)) * 1000000 AS BIGINT)";
  if (dialect == dialect_id::sqlserver)
    return "DATEDIFF_BIG(MICROSECOND, '1970-01-01', SYSUTCDATETIME())";
  if (dialect == dialect_id::oracle)
    return "(ROUND((CAST(SYS_EXTRACT_UTC(SYSTIMESTAMP) AS DATE) - DATE '1970-01-01') * 86400) * "
           "1000000)";
  return "CAST((julianday('now') - 2440587.5) * 86400000000.0 AS INTEGER)";
}

}  // namespace HOLDFAST_NAMESPACE::detail::sql
