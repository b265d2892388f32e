#include "store/probe_cures.hpp"

#include "sql/dialect.hpp"
#include "store/schema.hpp"

#include <algorithm>

namespace HOLDFAST_NAMESPACE::probing {

namespace {

using sql::dialect_id;

constexpr std::string_view key_columns = "(FAILOVER_NAME, FAILOVER_KEY)";
constexpr std::string_view all_columns = "FAILOVER_NAME, FAILOVER_KEY, AS_OF, EXPIRE_ON, PAYLOAD, PAYLOAD_CLASS";

/// How PostgreSQL makes one type of another where it does not do so by itself. `%` is the column.
std::string_view conversion(kind from, std::string_view to) {
  if (to.starts_with("TIMESTAMPTZ")) return from == kind::local_moment ? "% AT TIME ZONE 'UTC'" : "%::timestamptz";
  if (to.starts_with("BYTEA")) return "convert_to(%::text, 'UTF8')";
  return from == kind::bytes ? "convert_from(%, 'UTF8')" : "%::text";
}

std::string with_column(std::string_view pattern, std::string_view column) {
  const auto at = pattern.find('%');
  return std::string(pattern.substr(0, at)).append(column).append(pattern.substr(at + 1));
}

}  // namespace

cures::cures(const table& of, const server& on, const std::string& prefix, const store_options& options)
    : table_(of), server_(on), schema_(entries_schema(on.dialect, prefix, options.payload)) {}

/// `  AS_OF TIMESTAMPTZ NOT NULL,` in the schema: what follows the name, without the comma.
std::string cures::definition_of(std::string_view column) const {
  const std::string& create = schema_.front();
  const std::string begin = "\n  " + std::string(column) + " ";
  const auto at = create.find(begin);
  if (at == std::string::npos) return {};
  const auto from = at + begin.size();
  return create.substr(from, create.find(",\n", from) - from);
}

std::vector<std::string> cures::create_index() const {
  if (schema_.size() > 1) return {schema_[1]};
  const auto own = table_.name.substr(table_.name.rfind('.') + 1);
  return {"CREATE INDEX IDX_" + own + "_EXPIRE_ON ON " + table_.name + " (EXPIRE_ON)"};
}

std::vector<std::string> cures::add_column(std::string_view name) const {
  if (name == "FAILOVER_NAME" || name == "FAILOVER_KEY") return {};  // without these a row is nobody's
  std::string made = alter() + "ADD COLUMN " + std::string(name) + " " + definition_of(name);
  if (name == "AS_OF" || name == "EXPIRE_ON") {
    made += server_.dialect == dialect_id::sqlite ? " DEFAULT 0" : " DEFAULT '1970-01-01 00:00:00+00:00'";
    if (is_mysql(server_.dialect)) made.replace(made.rfind('+'), 6, "");
  }
  return {made};
}

std::vector<std::string> cures::change_column(const column& is) const {
  std::string wanted = definition_of(is.name);
  if (server_.dialect == dialect_id::sqlite) return rebuild();
  if (is_mysql(server_.dialect)) return {alter() + "MODIFY COLUMN " + is.name + " " + wanted};
  const bool required = wanted.ends_with(" NOT NULL");
  if (required) wanted.erase(wanted.size() - 9);
  std::string made = alter() + "ALTER COLUMN " + is.name + " TYPE " + wanted;
  const bool same_family =
      (is.kind == kind::text && wanted.find("CHAR") != std::string::npos) || (is.kind == kind::moment && wanted.starts_with("TIMESTAMPTZ"));
  if (!same_family) made += " USING " + with_column(conversion(is.kind, wanted), is.name);
  if (!required && is.not_null) made += ", ALTER COLUMN " + is.name + " DROP NOT NULL";
  return {made};
}

std::vector<std::string> cures::allow_null(const column& is) const {
  if (is_mysql(server_.dialect)) return {alter() + "MODIFY COLUMN " + is.name + " " + is.type + " NULL"};
  if (server_.dialect == dialect_id::postgresql) return {alter() + "ALTER COLUMN " + is.name + " DROP NOT NULL"};
  return rebuild();
}

std::vector<std::string> cures::add_key() const {
  const std::string& t = table_.name;
  const bool other = std::any_of(table_.indexes.begin(), table_.indexes.end(), [](const index& each) { return each.primary; });
  const std::string add = (other ? "ADD UNIQUE " : "ADD PRIMARY KEY ") + std::string(key_columns);
  switch (server_.dialect) {
    case dialect_id::postgresql:
      return {
          "DELETE FROM " + t + " a USING " + t +
              " b WHERE a.FAILOVER_NAME = b.FAILOVER_NAME AND a.FAILOVER_KEY = b.FAILOVER_KEY AND (a.AS_OF, a.ctid) < (b.AS_OF, b.ctid)",
          alter() + add};
    case dialect_id::mariadb:
    case dialect_id::mysql:
      // Not ALTER IGNORE: of two equal rows MariaDB 10.11 keeps none.
      return {"CREATE TABLE " + t + "_NEW LIKE " + t, "ALTER TABLE " + t + "_NEW " + add,
              "REPLACE INTO " + t + "_NEW SELECT * FROM " + t + " ORDER BY AS_OF",
              "RENAME TABLE " + t + " TO " + t + "_OLD, " + t + "_NEW TO " + t, "DROP TABLE " + t + "_OLD"};
    default:
      return rebuild();
  }
}

std::vector<std::string> cures::replace_key(const index& in_the_way) const {
  if (server_.dialect == dialect_id::sqlite) return rebuild();
  const bool complete = std::any_of(table_.indexes.begin(), table_.indexes.end(), [](const index& each) {
    return each.unique && each.columns.size() == 2 && std::ranges::count(each.columns, "FAILOVER_NAME") == 1 &&
           std::ranges::count(each.columns, "FAILOVER_KEY") == 1;
  });
  std::string drop = alter() + "DROP CONSTRAINT " + in_the_way.name;
  if (is_mysql(server_.dialect)) drop = alter() + (in_the_way.primary ? "DROP PRIMARY KEY" : "DROP INDEX `" + in_the_way.name + "`");
  else if (!in_the_way.constraint) drop = "DROP INDEX " + in_the_way.name;
  std::vector<std::string> made{drop};
  if (!complete) made.push_back(alter() + (in_the_way.primary ? "ADD PRIMARY KEY " : "ADD UNIQUE ") + std::string(key_columns));
  return made;
}

std::vector<std::string> cures::change_storage() const {
  if (is_mysql(server_.dialect)) return {alter() + "ENGINE = InnoDB"};
  if (table_.storage == "unlogged") return {alter() + "SET LOGGED"};
  return {};
}

std::vector<std::string> cures::grant() const {
  if (server_.dialect == dialect_id::sqlite || server_.user.empty()) return {};
  return {"GRANT SELECT, INSERT, UPDATE, DELETE ON " + table_.name + " TO " + server_.user};
}

/// SQLite changes no column: the table is made again, with the newest row of every key.
std::vector<std::string> cures::rebuild() const {
  const auto dot = table_.name.rfind('.');
  const std::string own = table_.name.substr(dot + 1);
  const std::string old = (dot == std::string::npos ? std::string() : table_.name.substr(0, dot + 1)) + own + "_OLD";
  std::vector<std::string> made{
      alter() + "RENAME TO " + own + "_OLD", schema_.front(),
      "INSERT OR REPLACE INTO " + table_.name + " (" + std::string(all_columns) +
          ") SELECT FAILOVER_NAME, FAILOVER_KEY, CAST(AS_OF AS INTEGER), CAST(EXPIRE_ON AS INTEGER), PAYLOAD, PAYLOAD_CLASS FROM " + old +
          " ORDER BY CAST(AS_OF AS INTEGER)",
      "DROP TABLE " + old};
  made.insert(made.end(), schema_.begin() + 1, schema_.end());
  return made;
}

}  // namespace HOLDFAST_NAMESPACE::probing
