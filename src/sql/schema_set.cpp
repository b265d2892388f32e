#include "sql/schema_set.hpp"

#include <holdfast/error.hpp>

#include "sql/dialect.hpp"

namespace HOLDFAST_NAMESPACE::detail::sql {

namespace {

[[noreturn]] void refuse_unknown_dialect() {
  throw error(errc::invalid_argument, "tables can be changed only if the dialect is known");
}

/// The text literal of a name, which has letters, digits, underscores and dots.
std::string name_literal(std::string_view name) { return "'" + std::string(name) + "'"; }

/// The condition on the catalog of MySQL for the rows of one table.
std::string is_mysql_table(const std::string& table) {
  const auto qualifier = qualifier_of(table);
  return "table_schema = " +
         (qualifier.empty() ? std::string("DATABASE()")
                            : name_literal(qualifier.substr(0, qualifier.size() - 1))) +
         " AND table_name = " + name_literal(unqualified(table));
}

}  // namespace

std::string qualifier_of(std::string_view table) {
  return std::string(table.substr(0, table.rfind('.') + 1));
}

std::string unqualified(std::string_view table) {
  return std::string(table.substr(table.rfind('.') + 1));
}

std::string oracle_create_if_missing(std::string_view statement) {
  return "BEGIN EXECUTE IMMEDIATE q'[" + std::string(statement) +
         "]'; EXCEPTION WHEN OTHERS THEN IF SQLCODE NOT IN (-955, -1408, -1430) THEN RAISE; END "
         "IF; END;";
}

std::string create_table_if_missing(dialect_id dialect, const std::string& table,
                                    const std::string& columns) {
  switch (dialect) {
    case dialect_id::oracle:
      return oracle_create_if_missing("CREATE TABLE " + table + columns);
    case dialect_id::sqlserver:
      return "IF OBJECT_ID('" + table + "') IS NULL CREATE TABLE " + table + columns;
    default:
      return "CREATE TABLE IF NOT EXISTS " + table + columns +
             (is_mysql(dialect) ? " ENGINE=InnoDB" : "");
  }
}

std::string count_column(dialect_id dialect, const std::string& table, const std::string& column) {
  auto schema = qualifier_of(table);
  if (!schema.empty()) schema.pop_back();
  const auto name = unqualified(table);
  const std::string count = "SELECT COUNT(*) FROM ";
  switch (dialect) {
    case dialect_id::sqlite:
      return count + "pragma_table_info(" + name_literal(name) +
             (schema.empty() ? "" : ", " + name_literal(schema)) + ") WHERE UPPER(name) = UPPER(" +
             name_literal(column) + ")";
    case dialect_id::postgresql:
      return count + "pg_catalog.pg_attribute WHERE attrelid = pg_catalog.to_regclass(" +
             name_literal(table) + ") AND attname = LOWER(" + name_literal(column) +
             ") AND NOT attisdropped";
    case dialect_id::mysql:
    case dialect_id::mariadb:
      return count + "information_schema.columns WHERE " + is_mysql_table(table) +
             " AND column_name = " + name_literal(column);
    case dialect_id::h2:
      // A database can fold names to upper or to lower case.
      return count + "information_schema.columns WHERE UPPER(table_schema) = UPPER(" +
             (schema.empty() ? "CURRENT_SCHEMA" : name_literal(schema)) +
             ") AND UPPER(table_name) = UPPER(" + name_literal(name) +
             ") AND UPPER(column_name) = UPPER(" + name_literal(column) + ")";
    case dialect_id::sqlserver:
      return "SELECT COUNT(COL_LENGTH(" + name_literal(table) + ", " + name_literal(column) + "))";
    case dialect_id::oracle:
      return count +
             (schema.empty()
                  ? "user_tab_columns WHERE "
                  : "all_tab_columns WHERE owner = UPPER(" + name_literal(schema) + ") AND ") +
             "table_name = UPPER(" + name_literal(name) + ") AND column_name = UPPER(" +
             name_literal(column) + ")";
    case dialect_id::unknown:
      break;
  }
  refuse_unknown_dialect();
}

schema_step add_column(dialect_id dialect, const std::string& table, const std::string& column,
                       const std::string& definition) {
  const std::string alter = "ALTER TABLE " + table + " ADD ";
  const std::string column_definition = column + " " + definition;
  switch (dialect) {
    case dialect_id::sqlite:
    case dialect_id::mysql:
      return {.text = alter + "COLUMN " + column_definition,
              .unless = count_column(dialect, table, column)};
    case dialect_id::postgresql:
    case dialect_id::mariadb:
    case dialect_id::h2:
      return {.text = alter + "COLUMN IF NOT EXISTS " + column_definition};
    case dialect_id::sqlserver:
      return {.text = "IF COL_LENGTH(" + name_literal(table) + ", " + name_literal(column) +
                      ") IS NULL " + alter + column_definition};
    case dialect_id::oracle:
      return {.text = oracle_create_if_missing(alter + "(" + column_definition + ")")};
    case dialect_id::unknown:
      break;
  }
  refuse_unknown_dialect();
}

schema_step add_index(dialect_id dialect, const std::string& index, const std::string& table,
                      const std::string& columns) {
  const auto create = [&](const std::string& keywords, const std::string& index_name,
                          const std::string& on_table) {
    return keywords + index_name + " ON " + on_table + " " + columns;
  };
  switch (dialect) {
    case dialect_id::sqlite:
      // SQLite qualifies the index, not the table in ON.
      return {.text = create("CREATE INDEX IF NOT EXISTS ", qualifier_of(table) + index,
                             unqualified(table))};
    case dialect_id::postgresql:
    case dialect_id::mariadb:
    case dialect_id::h2:
      return {.text = create("CREATE INDEX IF NOT EXISTS ", index, table)};
    case dialect_id::mysql:
      return {.text = create("CREATE INDEX ", index, table),
              .unless = "SELECT COUNT(*) FROM information_schema.statistics WHERE " +
                        is_mysql_table(table) + " AND index_name = " + name_literal(index)};
    case dialect_id::sqlserver:
      return {.text = "IF NOT EXISTS (SELECT 1 FROM sys.indexes WHERE name = " +
                      name_literal(index) + " AND object_id = OBJECT_ID(" + name_literal(table) +
                      ")) " + create("CREATE INDEX ", index, table)};
    case dialect_id::oracle:
      return {.text = oracle_create_if_missing(create("CREATE INDEX ", index, table))};
    case dialect_id::unknown:
      break;
  }
  refuse_unknown_dialect();
}

}  // namespace HOLDFAST_NAMESPACE::detail::sql
