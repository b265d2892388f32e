#include "store/doctor/repair_statements.hpp"

#include "sql/dialect.hpp"
#include "store/sql/dialect_expressions.hpp"
#include "store/sql/schema.hpp"

#include <algorithm>

namespace HOLDFAST_NAMESPACE::detail::store {

namespace {

using sql::dialect_id;

constexpr std::string_view key_columns = "(FAILOVER_NAME, FAILOVER_KEY)";

/// The expression by which PostgreSQL converts a column to another type.
std::string conversion(const column_facts& column, std::string_view type) {
  const std::string& name = column.name;
  if (type.starts_with("TIMESTAMPTZ"))
    return column.kind == column_kind::local_time ? name + " AT TIME ZONE 'UTC'"
                                                  : name + "::timestamptz";
  if (type.starts_with("BYTEA")) return "convert_to(" + name + "::text, 'UTF8')";
  return column.kind == column_kind::bytes ? "convert_from(" + name + ", 'UTF8')" : name + "::text";
}

}  // namespace

repair_statements::repair_statements(const table_facts& table, const server_facts& server,
                                     const std::string& prefix, const store_options& options)
    : table_(table),
      server_(server),
      schema_(entries_schema(server.dialect, prefix, options.payload)) {}

/// Returns `TIMESTAMPTZ NOT NULL` for the line `  AS_OF TIMESTAMPTZ NOT NULL,` of the schema.
std::string repair_statements::definition_of(std::string_view column) const {
  const std::string& create = schema_.front();
  const std::string line_start = "\n  " + std::string(column) + " ";
  const auto line = create.find(line_start);
  if (line == std::string::npos) return {};
  const auto start = line + line_start.size();
  return create.substr(start, create.find(",\n", start) - start);
}

std::vector<std::string> repair_statements::create_index() const {
  if (schema_.size() > 1) return {schema_[1]};
  const auto table = table_.name.substr(table_.name.rfind('.') + 1);
  return {"CREATE INDEX IDX_" + table + "_EXPIRE_ON ON " + table_.name + " (EXPIRE_ON)"};
}

std::vector<std::string> repair_statements::add_column(std::string_view name) const {
  // Without name or key an existing row does not belong to any entry.
  if (name == "FAILOVER_NAME" || name == "FAILOVER_KEY") return {};
  std::string statement = alter() + "ADD COLUMN " + std::string(name) + " " + definition_of(name);
  if (name == "AS_OF" || name == "EXPIRE_ON") {
    if (server_.dialect == dialect_id::sqlite) statement += " DEFAULT 0";
    else if (sql::is_mysql(server_.dialect)) statement += " DEFAULT '1970-01-01 00:00:00'";
    else statement += " DEFAULT '1970-01-01 00:00:00+00:00'";
  }
  return {statement};
}

std::vector<std::string> repair_statements::change_column(const column_facts& column) const {
  std::string definition = definition_of(column.name);
  if (server_.dialect == dialect_id::sqlite) return rebuild();
  if (sql::is_mysql(server_.dialect))
    return {alter() + "MODIFY COLUMN " + column.name + " " + definition};
  const bool required = definition.ends_with(" NOT NULL");
  if (required) definition.erase(definition.size() - 9);
  std::string statement = alter() + "ALTER COLUMN " + column.name + " TYPE " + definition;
  const bool converts_implicitly =
      (column.kind == column_kind::text && definition.find("CHAR") != std::string::npos) ||
      (column.kind == column_kind::time && definition.starts_with("TIMESTAMPTZ"));
  if (!converts_implicitly) statement += " USING " + conversion(column, definition);
  if (!required && column.not_null) statement += ", ALTER COLUMN " + column.name + " DROP NOT NULL";
  return {statement};
}

std::vector<std::string> repair_statements::allow_null(const column_facts& column) const {
  if (sql::is_mysql(server_.dialect))
    return {alter() + "MODIFY COLUMN " + column.name + " " + column.type + " NULL"};
  if (server_.dialect == dialect_id::postgresql)
    return {alter() + "ALTER COLUMN " + column.name + " DROP NOT NULL"};
  return rebuild();
}

std::vector<std::string> repair_statements::add_key() const {
  const std::string& table = table_.name;
  const bool has_primary = std::ranges::any_of(table_.indexes, &index_facts::primary);
  const std::string add =
      (has_primary ? "ADD UNIQUE " : "ADD PRIMARY KEY ") + std::string(key_columns);
  switch (server_.dialect) {
    case dialect_id::postgresql:
      return {"DELETE FROM " + table + " a USING " + table +
                  " b WHERE a.FAILOVER_NAME = b.FAILOVER_NAME AND a.FAILOVER_KEY = b.FAILOVER_KEY "
                  "AND (a.AS_OF, a.ctid) < (b.AS_OF, b.ctid)",
              alter() + add};
    case dialect_id::mariadb:
    case dialect_id::mysql:
      // Not ALTER IGNORE: MariaDB 10.11 deletes both of two equal rows.
      return {"CREATE TABLE " + table + "_NEW LIKE " + table,
              "ALTER TABLE " + table + "_NEW " + add,
              "REPLACE INTO " + table + "_NEW SELECT * FROM " + table + " ORDER BY AS_OF",
              "RENAME TABLE " + table + " TO " + table + "_OLD, " + table + "_NEW TO " + table,
              "DROP TABLE " + table + "_OLD"};
    default:
      return rebuild();
  }
}

std::vector<std::string> repair_statements::replace_key(const index_facts& wrong_index) const {
  if (server_.dialect == dialect_id::sqlite) return rebuild();
  std::string drop = alter() + "DROP CONSTRAINT " + wrong_index.name;
  if (sql::is_mysql(server_.dialect))
    drop = alter() +
           (wrong_index.primary ? "DROP PRIMARY KEY" : "DROP INDEX `" + wrong_index.name + "`");
  else if (!wrong_index.constraint) drop = "DROP INDEX " + wrong_index.name;
  std::vector<std::string> statements{drop};
  if (!std::ranges::any_of(table_.indexes, &index_facts::is_key))
    statements.push_back(alter() + (wrong_index.primary ? "ADD PRIMARY KEY " : "ADD UNIQUE ") +
                         std::string(key_columns));
  return statements;
}

std::vector<std::string> repair_statements::change_storage() const {
  if (sql::is_mysql(server_.dialect)) return {alter() + "ENGINE = InnoDB"};
  if (table_.storage == "unlogged") return {alter() + "SET LOGGED"};
  return {};
}

std::vector<std::string> repair_statements::grant() const {
  if (server_.dialect == dialect_id::sqlite || server_.user.empty()) return {};
  return {"GRANT SELECT, INSERT, UPDATE, DELETE ON " + table_.name + " TO " + server_.user};
}

/// SQLite cannot change a column. Creates the table again with the newest row of every key.
std::vector<std::string> repair_statements::rebuild() const {
  const auto dot = table_.name.rfind('.');
  const std::string renamed = table_.name.substr(dot + 1) + "_OLD";
  const std::string old_table = table_.name.substr(0, dot + 1) + renamed;
  std::vector<std::string> statements{
      alter() + "RENAME TO " + renamed, schema_.front(),
      "INSERT OR REPLACE INTO " + table_.name + " (" + std::string(entry_columns) +
          ") SELECT FAILOVER_NAME, FAILOVER_KEY, CAST(AS_OF AS INTEGER), "
          "CAST(EXPIRE_ON AS INTEGER), PAYLOAD, PAYLOAD_CLASS FROM " +
          old_table + " ORDER BY CAST(AS_OF AS INTEGER)",
      "DROP TABLE " + old_table};
  statements.insert(statements.end(), schema_.begin() + 1, schema_.end());
  return statements;
}

}  // namespace HOLDFAST_NAMESPACE::detail::store
