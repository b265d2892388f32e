#include "sequence/sql/schema.hpp"

#include <holdfast/error.hpp>
#include <holdfast/sequence.hpp>

#include "sql/schema_version.hpp"
#include "sql/table_prefix.hpp"

namespace HOLDFAST_NAMESPACE {

namespace detail::sequence {

std::string table_name(const sequence_store_options& options) {
  detail::sql::check_table_prefix(options.prefix);
  return options.prefix + "SEQUENCES";
}

namespace {

/// - NAME is compared byte by byte, including trailing spaces.
/// - LAST_SEQ, the last ordinal granted, is always a 64-bit integer.
/// - GRANTED is the size of the last block, so that one statement can return both ends of it.
/// - INCARNATION says which server granted it (failover_skip).
/// - DEFINITION says which ids the ordinals are, and which fence protects them. All users of a
///   counter must have the same. Empty until the first use. Since version 2.
std::vector<std::string> create_counters(sql::dialect_id dialect, const std::string& table,
                                         int version) {
  using sql::dialect_id;
  const bool defined = version >= definitions_since;
  // `text_type`: VARCHAR, for example, or TEXT for a text of any length.
  const auto columns = [defined](const std::string& name_type, const std::string& number_type,
                                 const std::string& text_type,
                                 const std::string& text_default = " DEFAULT '' NOT NULL",
                                 const std::string& constraint = "") {
    const auto text = [&](const std::string& length) {
      return (text_type == "TEXT" ? text_type : text_type + "(" + length + ")") + text_default;
    };
    return " (\n  NAME " + name_type + " NOT NULL,\n  LAST_SEQ " + number_type +
           " NOT NULL,\n  GRANTED " + number_type + " DEFAULT 0 NOT NULL,\n  LIMIT_SEQ " +
           number_type + " NOT NULL,\n  EPOCH " + number_type +
           " DEFAULT 1 NOT NULL,\n  INCARNATION " + text("64") +
           (defined ? ",\n  DEFINITION " + text("255") : "") + constraint +
           ",\n  PRIMARY KEY (NAME)\n)";
  };
  const auto create = [&](const std::string& list) {
    return std::vector<std::string>{sql::create_table_if_missing(dialect, table, list)};
  };
  switch (dialect) {
    case dialect_id::sqlite:
      // Without STRICT, an integer that exceeds 64 bits becomes a floating-point number.
      return create(columns("TEXT", "INTEGER", "TEXT") + " STRICT, WITHOUT ROWID");
    case dialect_id::postgresql:
      // Free space on each page lets PostgreSQL update a row in place (HOT).
      return create(columns(R"(VARCHAR(128) COLLATE "C")", "BIGINT", "VARCHAR") +
                    " WITH (fillfactor = 50)");
    case dialect_id::mysql:
    case dialect_id::mariadb: {
      const std::string exact =
          std::string(" CHARACTER SET utf8mb4 COLLATE ") +
          (dialect == dialect_id::mariadb ? "utf8mb4_nopad_bin" : "utf8mb4_0900_bin");
      return create(columns("VARCHAR(128)" + exact, "BIGINT", "VARCHAR"));
    }
    case dialect_id::h2:
      return create(columns("VARCHAR(128)", "BIGINT", "VARCHAR"));
    case dialect_id::sqlserver:
      return create(columns("VARCHAR(128) COLLATE Latin1_General_BIN2", "BIGINT", "VARCHAR"));
    case dialect_id::oracle: {
      // Oracle stores an empty text as NULL, and NUMBER has no 64-bit limit.
      const std::string body = columns("VARCHAR2(128)", "NUMBER(19)", "VARCHAR2", "",
                                       ",\n  CHECK (LAST_SEQ BETWEEN 0 AND 9223372036854775807)");
      return create(body);
    }
    case dialect_id::unknown:
      break;
  }
  throw error(errc::invalid_argument,
              "the table of sequences can only be created where the dialect is known");
}

/// To version 2.
std::vector<sql::schema_step> add_definitions(sql::dialect_id dialect, const std::string& table) {
  const bool oracle = dialect == sql::dialect_id::oracle;
  const std::string type = dialect == sql::dialect_id::sqlite ? "TEXT"
                           : oracle                           ? "VARCHAR2(255)"
                                                              : "VARCHAR(255)";
  return {
      sql::add_column(dialect, table, "DEFINITION", type + (oracle ? "" : " DEFAULT '' NOT NULL"))};
}

}  // namespace

sql::schema_set counter_schema(const sequence_store_options& options) {
  const std::string table = table_name(options);
  return {
      .name = "sequences",
      .tables = {table},
      .current = definitions_since,
      .create = [table](sql::dialect_id dialect,
                        int version) { return create_counters(dialect, table, version); },
      .upgrade = [table](sql::dialect_id dialect, int) { return add_definitions(dialect, table); },
      .markers = {{.version = definitions_since, .table = table, .column = "DEFINITION"}},
      .command_options = options.prefix.empty() ? "" : "--prefix " + options.prefix};
}

}  // namespace detail::sequence

std::vector<std::string> sequence_schema(sql::dialect_id dialect,
                                         const sequence_store_options& options) {
  const auto set = detail::sequence::counter_schema(options);
  return detail::sql::create_script(dialect, {&set, 1});
}

}  // namespace HOLDFAST_NAMESPACE
