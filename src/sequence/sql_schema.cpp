#include <holdfast/database.hpp>
#include <holdfast/error.hpp>

#include "sequence/sql_statements.hpp"

namespace HOLDFAST_NAMESPACE {

/// NAME is compared byte by byte, trailing spaces included. LAST_SEQ is the last ordinal granted, and can be nothing but a 64-bit integer. GRANTED is how many the last
/// grant had, so that one statement can return both ends of it.
std::vector<std::string> sequence_schema(sql::dialect_id dialect, const sequence_store_options& options) {
  using sql::dialect_id;
  const std::string table = detail::sequence_table(options);
  const auto columns = [](const std::string& name, const std::string& number, const std::string& text) {
    return " (\n  NAME " + name + " NOT NULL,\n  LAST_SEQ " + number + " NOT NULL,\n  GRANTED " + number +
           " DEFAULT 0 NOT NULL,\n  LIMIT_SEQ " + number + " NOT NULL,\n  EPOCH " + number + " DEFAULT 1 NOT NULL,\n  INCARNATION " + text +
           " DEFAULT '' NOT NULL,\n  PRIMARY KEY (NAME)\n)";
  };
  const std::string create = "CREATE TABLE IF NOT EXISTS " + table;
  switch (dialect) {
    case dialect_id::sqlite:
      // STRICT: a number that grows beyond 64 bits would else turn into a floating one, in silence.
      return {create + columns("TEXT", "INTEGER", "TEXT") + " STRICT, WITHOUT ROWID"};
    case dialect_id::postgresql:
      // Room on each page, so that a row is updated where it is.
      return {create + columns(R"(VARCHAR(128) COLLATE "C")", "BIGINT", "VARCHAR(64)") + " WITH (fillfactor = 50)"};
    case dialect_id::mysql:
    case dialect_id::mariadb: {
      const std::string exact =
          std::string(" CHARACTER SET utf8mb4 COLLATE ") + (dialect == dialect_id::mariadb ? "utf8mb4_nopad_bin" : "utf8mb4_0900_bin");
      return {create + columns("VARCHAR(128)" + exact, "BIGINT", "VARCHAR(64)") + " ENGINE=InnoDB"};
    }
    case dialect_id::h2:
      return {create + columns("VARCHAR(128)", "BIGINT", "VARCHAR(64)")};
    case dialect_id::sqlserver:
      return {"IF OBJECT_ID(N'" + table + "', N'U') IS NULL CREATE TABLE " + table +
              columns("VARCHAR(128) COLLATE Latin1_General_BIN2", "BIGINT", "VARCHAR(64)")};
    case dialect_id::oracle: {
      // An empty text is NULL to Oracle, and NUMBER has no 64-bit limit of its own.
      std::string body = columns("VARCHAR2(128)", "NUMBER(19)", "VARCHAR2(64)");
      const std::string empty = " DEFAULT '' NOT NULL,\n  PRIMARY KEY";
      body.replace(body.find(empty), empty.size(), ",\n  CHECK (LAST_SEQ BETWEEN 0 AND 9223372036854775807),\n  PRIMARY KEY");
      return {"BEGIN EXECUTE IMMEDIATE q'[CREATE TABLE " + table + body +
              "]'; EXCEPTION WHEN OTHERS THEN IF SQLCODE != -955 THEN RAISE; END IF; END;"};
    }
    case dialect_id::unknown:
      break;
  }
  throw error(errc::invalid_argument, "the table of sequences can only be created where the dialect is known");
}

}  // namespace HOLDFAST_NAMESPACE
