#include "store/merge_text.hpp"

namespace HOLDFAST_NAMESPACE {

namespace {

using sql::dialect_id;
using sql::type;

constexpr std::string_view values_of_source =
    "src.FAILOVER_NAME, src.FAILOVER_KEY, src.AS_OF, src.EXPIRE_ON, src.PAYLOAD, src.PAYLOAD_CLASS";

/// From the row of values on. SET is not qualified: some refuse it, and all understand it without.
std::string from_source() {
  return ") AS src (" + std::string(entry_columns) +
         ") ON (held.FAILOVER_NAME = src.FAILOVER_NAME AND held.FAILOVER_KEY = src.FAILOVER_KEY)"
         " WHEN MATCHED AND (src.AS_OF >= held.AS_OF OR held.AS_OF > ?) THEN UPDATE SET AS_OF = src.AS_OF, EXPIRE_ON = src.EXPIRE_ON, "
         "PAYLOAD = src.PAYLOAD, PAYLOAD_CLASS = src.PAYLOAD_CLASS"
         " WHEN NOT MATCHED THEN INSERT (" +
         std::string(entry_columns) + ") VALUES (" + std::string(values_of_source) + ")";
}

}  // namespace

bool merges(dialect_id dialect) noexcept {
  return dialect == dialect_id::h2 || dialect == dialect_id::sqlserver || dialect == dialect_id::oracle;
}

sql::batch_statement merge_statement(dialect_id dialect, const std::string& table, type payload) {
  sql::batch_statement s;
  s.columns = {type::text, type::text, type::time, type::time, payload, type::text};
  s.common = {type::time};
  const bool bytes = payload == type::bytes;
  switch (dialect) {
    case dialect_id::h2:
      // H2's own MERGE ... KEY has no guard. A parameter in VALUES has no type of its own.
      s.text = "MERGE INTO " + table + " AS held USING (VALUES ";
      s.row =
          std::string(
              "(CAST(? AS VARCHAR), CAST(? AS VARCHAR), CAST(? AS TIMESTAMP(9) WITH TIME ZONE), CAST(? AS TIMESTAMP(9) WITH TIME ZONE), "
              "CAST(? AS ") +
          (bytes ? "VARBINARY" : "VARCHAR") + "), CAST(? AS VARCHAR))";
      s.tail = from_source();
      break;
    case dialect_id::sqlserver:
      // Without HOLDLOCK two writers can both find nothing, and the second insert fails. The semicolon is required.
      s.text = "MERGE INTO " + table + " WITH (HOLDLOCK) AS held USING (VALUES ";
      s.row = std::string("(?, ?, CAST(? AS DATETIMEOFFSET(7)), CAST(? AS DATETIMEOFFSET(7)), CAST(? AS ") +
              (bytes ? "VARBINARY(MAX)" : "NVARCHAR(MAX)") + "), ?)";
      s.tail = from_source() + ";";
      break;
    default:
      // Oracle takes long values where a column is set, not in a SELECT FROM DUAL: so each is bound as often as it is wanted.
      s.text = "MERGE INTO " + table +
               " held USING DUAL ON (held.FAILOVER_NAME = ? AND held.FAILOVER_KEY = ?)"
               " WHEN MATCHED THEN UPDATE SET AS_OF = ?, EXPIRE_ON = ?, PAYLOAD = ?, PAYLOAD_CLASS = ?"
               " WHERE held.AS_OF <= ? OR held.AS_OF > ?"
               " WHEN NOT MATCHED THEN INSERT (" +
               std::string(entry_columns) + ") VALUES ";
      s.row = "(?, ?, ?, ?, ?, ?)";
      s.order = {0, 1, 2, 3, 4, 5, 2, 6, 0, 1, 2, 3, 4, 5};
      break;
  }
  return s;
}

std::string moment_text(dialect_id dialect, const std::string& column) {
  if (dialect == dialect_id::sqlserver) return "CAST(SWITCHOFFSET(" + column + ", '+00:00') AS DATETIME2(7))";
  if (dialect == dialect_id::oracle) return "SYS_EXTRACT_UTC(" + column + ")";
  return column;
}

std::string oracle_unless_there(const std::string& statement) {
  return "BEGIN EXECUTE IMMEDIATE '" + statement + "'; EXCEPTION WHEN OTHERS THEN IF SQLCODE NOT IN (-955, -1408) THEN RAISE; END IF; END;";
}

std::string_view first_rows_text(dialect_id dialect) noexcept {
  if (dialect == dialect_id::sqlserver) return " OFFSET 0 ROWS FETCH NEXT ? ROWS ONLY";
  if (dialect == dialect_id::oracle) return " FETCH FIRST ? ROWS ONLY";
  if (dialect == dialect_id::unknown) return {};  // the driver reads no more
  return " LIMIT ?";
}

}  // namespace HOLDFAST_NAMESPACE
