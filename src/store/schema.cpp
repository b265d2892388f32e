#include "store/schema.hpp"

#include "store/lease.hpp"
#include "store/merge_text.hpp"
#include "store/statements.hpp"

#include <algorithm>
#include <iterator>

namespace HOLDFAST_NAMESPACE {

namespace {

using sql::dialect_id;

/// The part behind the last qualifier: what an index may be named after.
std::string unqualified(const std::string& table) { return table.substr(table.rfind('.') + 1); }

}  // namespace

std::vector<std::string> entries_schema(sql::dialect_id dialect, const std::string& prefix, payload_column payload) {
  const std::string table = prefix + "FAILOVER_STORE";
  const bool bytes = payload == payload_column::bytes;
  const std::string index = "IDX_" + unqualified(table) + "_EXPIRE_ON";
  const std::string create = "CREATE TABLE IF NOT EXISTS " + table + " (\n  ";
  const std::string key = "PRIMARY KEY (FAILOVER_NAME, FAILOVER_KEY)";
  switch (dialect) {
    case dialect_id::sqlite: {
      const auto dot = table.rfind('.');
      const std::string schema = dot == std::string::npos ? "" : table.substr(0, dot + 1);
      return {create +
                  "FAILOVER_NAME TEXT NOT NULL,\n  FAILOVER_KEY TEXT NOT NULL,\n  AS_OF INTEGER NOT NULL,\n  EXPIRE_ON INTEGER NOT NULL,\n "
                  " PAYLOAD " +
                  (bytes ? "BLOB" : "TEXT") + ",\n  PAYLOAD_CLASS TEXT,\n  " + key + "\n)",
              "CREATE INDEX IF NOT EXISTS " + schema + index + " ON " + unqualified(table) + " (EXPIRE_ON)"};
    }
    case dialect_id::postgresql:
      return {create +
                  "FAILOVER_NAME VARCHAR(50) COLLATE \"C\" NOT NULL,\n  FAILOVER_KEY VARCHAR(256) COLLATE \"C\" NOT NULL,\n  AS_OF "
                  "TIMESTAMPTZ NOT NULL,\n  "
                  "EXPIRE_ON TIMESTAMPTZ NOT NULL,\n  PAYLOAD " +
                  (bytes ? "BYTEA" : "TEXT") + ",\n  PAYLOAD_CLASS VARCHAR(256),\n  " + key + "\n)",
              "CREATE INDEX IF NOT EXISTS " + index + " ON " + table + " (EXPIRE_ON)"};
    case dialect_id::mysql:
    case dialect_id::mariadb: {
      // Bytes compare as bytes, trailing spaces included; each has its own name for that.
      const std::string exact =
          std::string(" CHARACTER SET utf8mb4 COLLATE ") + (dialect == dialect_id::mariadb ? "utf8mb4_nopad_bin" : "utf8mb4_0900_bin");
      return {create + "FAILOVER_NAME VARCHAR(50)" + exact + " NOT NULL,\n  FAILOVER_KEY VARCHAR(256)" + exact +
              " NOT NULL,\n  AS_OF DATETIME(6) NOT NULL,\n  EXPIRE_ON DATETIME(6) NOT NULL,\n  PAYLOAD " +
              (bytes ? "LONGBLOB" : "LONGTEXT CHARACTER SET utf8mb4") + ",\n  PAYLOAD_CLASS VARCHAR(256)" + exact + ",\n  " + key +
              ",\n  INDEX " + index + " (EXPIRE_ON)\n) ENGINE=InnoDB"};
    }
    case dialect_id::h2:
      return {create +
                  "FAILOVER_NAME VARCHAR(50) NOT NULL,\n  FAILOVER_KEY VARCHAR(256) NOT NULL,\n  AS_OF TIMESTAMP(9) WITH TIME ZONE NOT "
                  "NULL,\n  "
                  "EXPIRE_ON TIMESTAMP(9) WITH TIME ZONE NOT NULL,\n  PAYLOAD " +
                  (bytes ? "VARBINARY" : "CLOB") + ",\n  PAYLOAD_CLASS VARCHAR(256),\n  " + key + "\n)",
              "CREATE INDEX IF NOT EXISTS " + index + " ON " + table + " (EXPIRE_ON)"};
    case dialect_id::sqlserver: {
      const std::string exact = " COLLATE Latin1_General_100_BIN2 NOT NULL,\n  ";
      return {"IF OBJECT_ID('" + table + "') IS NULL CREATE TABLE " + table + " (\n  FAILOVER_NAME NVARCHAR(50)" + exact +
              "FAILOVER_KEY NVARCHAR(256)" + exact +
              "AS_OF DATETIMEOFFSET(7) NOT NULL,\n  EXPIRE_ON DATETIMEOFFSET(7) NOT NULL,\n  PAYLOAD " +
              (bytes ? "VARBINARY(MAX)" : "NVARCHAR(MAX)") + ",\n  PAYLOAD_CLASS NVARCHAR(256),\n  " + key + ",\n  INDEX " + index +
              " (EXPIRE_ON)\n)"};
    }
    case dialect_id::oracle:
      return {oracle_unless_there(
                  "CREATE TABLE " + table +
                  " (\n  FAILOVER_NAME VARCHAR2(50 CHAR) NOT NULL,\n  FAILOVER_KEY VARCHAR2(256 CHAR) NOT NULL,\n  AS_OF TIMESTAMP(9) "
                  "WITH TIME ZONE NOT NULL,\n  EXPIRE_ON TIMESTAMP(9) WITH TIME ZONE NOT NULL,\n  PAYLOAD " +
                  (bytes ? "BLOB" : "CLOB") + ",\n  PAYLOAD_CLASS VARCHAR2(256 CHAR),\n  " + key + "\n)"),
              oracle_unless_there("CREATE INDEX " + index + " ON " + table + " (EXPIRE_ON)")};
    case dialect_id::unknown:
      break;
  }
  throw error(errc::invalid_argument,
              "the table can only be created where the dialect is known; create it yourself, as the published text says");
}

std::vector<std::string> store_schema(sql::dialect_id dialect, const store_options& options) {
  std::vector<std::string> all;
  for (const auto& [realm, prefix] : prefixes_of_realms(options)) {
    std::ranges::move(entries_schema(dialect, prefix, options.payload), std::back_inserter(all));
  }
  all.push_back(lease_schema(dialect, options.prefix));
  return all;
}

}  // namespace HOLDFAST_NAMESPACE
