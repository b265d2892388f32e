#include "store/sql/schema.hpp"

#include "sql/schema_version.hpp"
#include "store/sql/statements.hpp"
#include "store/sql/table_lease.hpp"

#include <utility>

namespace HOLDFAST_NAMESPACE {

namespace detail::store {

namespace {

using sql::dialect_id;

/// The types of the columns in one dialect.
struct column_types {
  std::string name;
  std::string key;
  std::string time;
  std::string payload;
  std::string payload_class;
};

column_types types_of(dialect_id dialect, bool bytes) {
  switch (dialect) {
    case dialect_id::sqlite:
      return {"TEXT", "TEXT", "INTEGER", bytes ? "BLOB" : "TEXT", "TEXT"};
    case dialect_id::postgresql:
      return {"VARCHAR(50) COLLATE \"C\"", "VARCHAR(256) COLLATE \"C\"", "TIMESTAMPTZ",
              bytes ? "BYTEA" : "TEXT", "VARCHAR(256)"};
    case dialect_id::mysql:
    case dialect_id::mariadb: {
      // These collations compare bytes and do not ignore trailing spaces.
      const std::string exact =
          std::string(" CHARACTER SET utf8mb4 COLLATE ") +
          (dialect == dialect_id::mariadb ? "utf8mb4_nopad_bin" : "utf8mb4_0900_bin");
      return {"VARCHAR(50)" + exact, "VARCHAR(256)" + exact, "DATETIME(6)",
              bytes ? "LONGBLOB" : "LONGTEXT CHARACTER SET utf8mb4", "VARCHAR(256)" + exact};
    }
    case dialect_id::h2:
      return {"VARCHAR(50)", "VARCHAR(256)", "TIMESTAMP(9) WITH TIME ZONE",
              bytes ? "VARBINARY" : "CLOB", "VARCHAR(256)"};
    case dialect_id::sqlserver:
      return {"NVARCHAR(50) COLLATE Latin1_General_100_BIN2",
              "NVARCHAR(256) COLLATE Latin1_General_100_BIN2", "DATETIMEOFFSET(7)",
              bytes ? "VARBINARY(MAX)" : "NVARCHAR(MAX)", "NVARCHAR(256)"};
    case dialect_id::oracle:
      return {"VARCHAR2(50 CHAR)", "VARCHAR2(256 CHAR)", "TIMESTAMP(9) WITH TIME ZONE",
              bytes ? "BLOB" : "CLOB", "VARCHAR2(256 CHAR)"};
    case dialect_id::unknown:
      break;
  }
  throw error(errc::invalid_argument,
              "the table can be created only if the dialect is known; create it yourself as the "
              "published schema describes");
}

}  // namespace

std::vector<std::string> entries_schema(dialect_id dialect, const std::string& prefix,
                                        payload_column payload) {
  const auto types = types_of(dialect, payload == payload_column::bytes);
  const std::string table = prefix + "FAILOVER_STORE";
  const std::string index = "IDX_" + sql::unqualified(table) + "_EXPIRE_ON";
  const std::string columns = " (\n  FAILOVER_NAME " + types.name + " NOT NULL,\n  FAILOVER_KEY " +
                              types.key + " NOT NULL,\n  AS_OF " + types.time +
                              " NOT NULL,\n  EXPIRE_ON " + types.time + " NOT NULL,\n  PAYLOAD " +
                              types.payload + ",\n  PAYLOAD_CLASS " + types.payload_class +
                              ",\n  PRIMARY KEY (FAILOVER_NAME, FAILOVER_KEY)";
  const std::string columns_and_index = columns + ",\n  INDEX " + index + " (EXPIRE_ON)\n)";
  const std::string create = sql::create_table_if_missing(dialect, table, columns + "\n)");
  switch (dialect) {
    case dialect_id::mysql:
    case dialect_id::mariadb:
    case dialect_id::sqlserver:
      return {sql::create_table_if_missing(dialect, table, columns_and_index)};
    case dialect_id::oracle:
      return {create, sql::oracle_create_if_missing("CREATE INDEX " + index + " ON " + table +
                                                    " (EXPIRE_ON)")};
    case dialect_id::sqlite: {
      // SQLite qualifies the index, not the table in ON.
      return {create, "CREATE INDEX IF NOT EXISTS " + sql::qualifier_of(table) + index + " ON " +
                          sql::unqualified(table) + " (EXPIRE_ON)"};
    }
    default:
      return {create, "CREATE INDEX IF NOT EXISTS " + index + " ON " + table + " (EXPIRE_ON)"};
  }
}

std::vector<sql::schema_set> schema_sets(const store_options& options) {
  std::vector<sql::schema_set> sets;
  for (const auto& [realm, prefix] : prefixes_of_realms(options)) {
    const std::string lease_prefix = options.prefix;
    // The table of leases is shared by all realms.
    const bool has_lease = sets.empty();
    sql::schema_set set{.name = "store",
                        .tables = {prefix + "FAILOVER_STORE"},
                        .create = [prefix, payload = options.payload, has_lease, lease_prefix](
                                      dialect_id dialect, int) {
                          auto statements = entries_schema(dialect, prefix, payload);
                          if (has_lease) statements.push_back(lease_schema(dialect, lease_prefix));
                          return statements;
                        }};
    if (has_lease) set.tables.push_back(lease_prefix + "HOLDFAST_LEASE");
    if (!prefix.empty()) set.command_options = "--prefix " + prefix;
    sets.push_back(std::move(set));
  }
  return sets;
}

}  // namespace detail::store

std::vector<std::string> store_schema(sql::dialect_id dialect, const store_options& options) {
  return detail::sql::create_script(dialect, detail::store::schema_sets(options));
}

}  // namespace HOLDFAST_NAMESPACE
