// The tables that the instances of a program use to report their state and to read commands.

#include "database/instances/sql/schema.hpp"

#include <holdfast/error.hpp>
#include <holdfast/reporter.hpp>

#include "sql/schema_version.hpp"
#include "sql/table_prefix.hpp"

#include <utility>

namespace HOLDFAST_NAMESPACE {

namespace detail::instances {

namespace {

using sql::dialect_id;

struct instance_column_types {
  std::string text;    // VARCHAR, for example
  std::string suffix;  // after the length of a text, so that texts are compared byte by byte
  std::string number;
  std::string json;
};

instance_column_types instance_types_of(dialect_id dialect) {
  switch (dialect) {
    case dialect_id::sqlite:
      return {"VARCHAR", "", "INTEGER", "TEXT"};
    case dialect_id::postgresql:
      return {"VARCHAR", " COLLATE \"C\"", "BIGINT", "TEXT"};
    case dialect_id::mysql:
      return {"VARCHAR", " CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_bin", "BIGINT",
              "MEDIUMTEXT CHARACTER SET utf8mb4"};
    case dialect_id::mariadb:
      return {"VARCHAR", " CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin", "BIGINT",
              "MEDIUMTEXT CHARACTER SET utf8mb4"};
    case dialect_id::h2:
      return {"VARCHAR", "", "BIGINT", "CLOB"};
    case dialect_id::sqlserver:
      return {"NVARCHAR", " COLLATE Latin1_General_100_BIN2", "BIGINT", "NVARCHAR(MAX)"};
    case dialect_id::oracle:
      return {"VARCHAR2", "", "NUMBER(19)", "CLOB"};
    case dialect_id::unknown:
      break;
  }
  throw error(errc::invalid_argument,
              "the tables of instances can be created only if the dialect is known; create them "
              "yourself");
}

std::vector<std::string> create_instance_tables(dialect_id dialect, const std::string& instances,
                                                const std::string& commands) {
  const auto types = instance_types_of(dialect);
  const auto text = [&](int length) {
    return types.text + "(" + std::to_string(length) + ")" + types.suffix + " NOT NULL";
  };
  const std::string number = types.number + " NOT NULL";
  return {sql::create_table_if_missing(dialect, instances,
                                       " (\n  INSTANCE " + text(128) + ",\n  KIND " + text(16) +
                                           ",\n  STARTED " + number + ",\n  SEEN " + number +
                                           ",\n  INTERVAL_MS " + number + ",\n  STATE " +
                                           types.json + ",\n  PRIMARY KEY (INSTANCE)\n)"),
          sql::create_table_if_missing(dialect, commands,
                                       " (\n  COMMAND_ID " + text(64) + ",\n  INSTANCE " +
                                           text(128) + ",\n  KIND " + text(32) +
                                           ",\n  VALID_UNTIL " + number + ",\n  BODY " +
                                           types.json + ",\n  PRIMARY KEY (COMMAND_ID)\n)")};
}

}  // namespace

sql::schema_set instance_tables_schema(std::string_view prefix) {
  sql::check_table_prefix(prefix);
  const std::string instances = std::string(prefix) + "HOLDFAST_INSTANCE";
  const std::string commands = std::string(prefix) + "HOLDFAST_COMMAND";
  return {.name = "instances",
          .tables = {instances, commands},
          .create = [instances, commands](
                        dialect_id dialect,
                        int) { return create_instance_tables(dialect, instances, commands); },
          .command_options = prefix.empty() ? "" : "--prefix " + std::string(prefix)};
}

}  // namespace detail::instances

std::vector<std::string> instance_schema(sql::dialect_id dialect, std::string_view prefix) {
  const auto set = detail::instances::instance_tables_schema(prefix);
  return detail::sql::create_script(dialect, {&set, 1});
}

}  // namespace HOLDFAST_NAMESPACE
