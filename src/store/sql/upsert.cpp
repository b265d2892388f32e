#include "store/sql/upsert.hpp"

namespace HOLDFAST_NAMESPACE::detail::store {

namespace {

using sql::dialect_id;
using sql::type;

std::string column_list() { return std::string(entry_columns); }
constexpr std::string_view value_row = "(?, ?, ?, ?, ?, ?)";

void set_postgresql(sql::batch_statement& s, const std::string& table, type payload,
                    const time_expressions& time) {
  const bool zoned = !time.zone.empty();
  const std::string payload_array = payload == type::bytes ? "bytea[]" : "text[]";
  s.text = "INSERT INTO " + table + " AS held (" + column_list() + ") SELECT " +
           (zoned ? "n, k, " + time.to_column("a") + ", " + time.to_column("e") + ", p, c" : "*") +
           " FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::timestamptz[], $5::" +
           payload_array + ", $6::text[])" + (zoned ? " AS given (n, k, a, e, p, c)" : "") +
           " ON CONFLICT (FAILOVER_NAME, FAILOVER_KEY) DO UPDATE SET AS_OF = EXCLUDED.AS_OF, "
           "EXPIRE_ON = EXCLUDED.EXPIRE_ON, "
           "PAYLOAD = EXCLUDED.PAYLOAD, PAYLOAD_CLASS = EXCLUDED.PAYLOAD_CLASS WHERE "
           "EXCLUDED.AS_OF >= held.AS_OF OR held.AS_OF > " +
           time.to_column("$7");
}

void set_sqlite(sql::batch_statement& s, const std::string& table) {
  s.text = "INSERT INTO " + table + " AS held (" + column_list() + ") VALUES ";
  s.row = value_row;
  s.tail =
      " ON CONFLICT (FAILOVER_NAME, FAILOVER_KEY) DO UPDATE SET AS_OF = excluded.AS_OF, "
      "EXPIRE_ON = excluded.EXPIRE_ON, PAYLOAD = "
      "excluded.PAYLOAD, PAYLOAD_CLASS = excluded.PAYLOAD_CLASS WHERE excluded.AS_OF >= "
      "held.AS_OF OR held.AS_OF > ?";
}

/// MySQL has no guard clause, so each column has the guard. AS_OF, which the guard reads, is
/// assigned last.
void set_mysql(sql::batch_statement& s, const std::string& table) {
  s.text = "INSERT INTO " + table + " (" + column_list() + ") VALUES ";
  s.row = value_row;
  s.tail = " ON DUPLICATE KEY UPDATE ";
  for (const std::string_view column : {"EXPIRE_ON", "PAYLOAD", "PAYLOAD_CLASS", "AS_OF"}) {
    if (column != "EXPIRE_ON") s.tail.append(", ");
    s.tail.append(column)
        .append(" = IF(VALUES(AS_OF) >= AS_OF OR AS_OF > ?, VALUES(")
        .append(column)
        .append("), ")
        .append(column)
        .append(")");
  }
  s.common.assign(4, type::time);
}

/// The part of a MERGE after the rows. SET uses unqualified columns, which all dialects accept.
std::string merge_tail() {
  return ") AS src (" + column_list() +
         ") ON (held.FAILOVER_NAME = src.FAILOVER_NAME AND held.FAILOVER_KEY = src.FAILOVER_KEY)"
         " WHEN MATCHED AND (src.AS_OF >= held.AS_OF OR held.AS_OF > ?) THEN UPDATE SET AS_OF = "
         "src.AS_OF, EXPIRE_ON = src.EXPIRE_ON, "
         "PAYLOAD = src.PAYLOAD, PAYLOAD_CLASS = src.PAYLOAD_CLASS"
         " WHEN NOT MATCHED THEN INSERT (" +
         column_list() +
         ") VALUES (src.FAILOVER_NAME, src.FAILOVER_KEY, src.AS_OF, src.EXPIRE_ON, src.PAYLOAD, "
         "src.PAYLOAD_CLASS)";
}

/// H2's own MERGE ... KEY has no guard. Parameters in VALUES have no type, so each is cast.
void set_h2(sql::batch_statement& s, const std::string& table, type payload) {
  s.text = "MERGE INTO " + table + " AS held USING (VALUES ";
  s.row = std::string(
              "(CAST(? AS VARCHAR), CAST(? AS VARCHAR), CAST(? AS TIMESTAMP(9) WITH TIME "
              "ZONE), CAST(? AS TIMESTAMP(9) WITH TIME ZONE), "
              "CAST(? AS ") +
          (payload == type::bytes ? "VARBINARY" : "VARCHAR") + "), CAST(? AS VARCHAR))";
  s.tail = merge_tail();
}

/// Without HOLDLOCK two writers can both find no row, and the second insert fails. SQL Server
/// requires the semicolon.
void set_sqlserver(sql::batch_statement& s, const std::string& table, type payload) {
  s.text = "MERGE INTO " + table + " WITH (HOLDLOCK) AS held USING (VALUES ";
  s.row =
      std::string("(?, ?, CAST(? AS DATETIMEOFFSET(7)), CAST(? AS DATETIMEOFFSET(7)), CAST(? AS ") +
      (payload == type::bytes ? "VARBINARY(MAX)" : "NVARCHAR(MAX)") + "), ?)";
  s.tail = merge_tail() + ";";
}

/// Oracle accepts long values where a column is assigned, but not in SELECT FROM DUAL. So each
/// parameter is bound wherever it is needed.
void set_oracle(sql::batch_statement& s, const std::string& table) {
  s.text = "MERGE INTO " + table +
           " held USING DUAL ON (held.FAILOVER_NAME = ? AND held.FAILOVER_KEY = ?)"
           " WHEN MATCHED THEN UPDATE SET AS_OF = ?, EXPIRE_ON = ?, PAYLOAD = ?, PAYLOAD_CLASS = ?"
           " WHERE held.AS_OF <= ? OR held.AS_OF > ?"
           " WHEN NOT MATCHED THEN INSERT (" +
           column_list() + ") VALUES ";
  s.row = value_row;
  s.order = {0, 1, 2, 3, 4, 5, 2, 6, 0, 1, 2, 3, 4, 5};
}

}  // namespace

sql::batch_statement make_upsert(const std::string& table, type payload,
                                 const time_expressions& time) {
  sql::batch_statement s;
  s.columns = {type::text, type::text, type::time, type::time, payload, type::text};
  s.common = {type::time};
  switch (time.dialect) {
    case dialect_id::postgresql:
      set_postgresql(s, table, payload, time);
      break;
    case dialect_id::sqlite:
      set_sqlite(s, table);
      break;
    case dialect_id::h2:
      set_h2(s, table, payload);
      break;
    case dialect_id::sqlserver:
      set_sqlserver(s, table, payload);
      break;
    case dialect_id::oracle:
      set_oracle(s, table);
      break;
    case dialect_id::mysql:
    case dialect_id::mariadb:
      set_mysql(s, table);
      break;
    case dialect_id::unknown:
      break;  // the store uses INSERT and UPDATE
  }
  return s;
}

}  // namespace HOLDFAST_NAMESPACE::detail::store
