#include "outbox/sql/schema.hpp"

#include <holdfast/error.hpp>
#include <holdfast/key/redis.hpp>
#include <holdfast/outbox/sql.hpp>

#include "outbox/default_prefix.hpp"
#include "outbox/sql/counter_table.hpp"
#include "sql/schema_version.hpp"

#include <algorithm>
#include <bit>

namespace HOLDFAST_NAMESPACE::detail::outbox {

namespace {

/// The longest identifier is IDX_<name>_OUTBOX_TICKET_EXPIRES. MariaDB refuses more than 64
/// characters; PostgreSQL silently truncates after 63.
constexpr std::size_t max_table_name = 37;

char table_character(char c) {
  if (c >= 'A' && c <= 'Z') return static_cast<char>(c + ('a' - 'A'));
  const bool allowed = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
  return allowed ? c : '_';
}

/// A claim reads the rows with a DUE. QUEUE is the key while the event is in the queue of its key.
constexpr const char* event_columns = R"({events} (
  SEQ {identity},
  LANE {integer} NOT NULL,
  ID {name} NOT NULL UNIQUE,
  EVENT_KEY {name} NOT NULL,
  QUEUE {name},
  DUE {integer},
  PLACE {default_zero},
  AT {default_zero},
  TOKEN {default_zero},
  RUN {default_zero},
  DELIVERIES {default_zero},
  ATTEMPTS {default_zero},
  REPLAYS {default_zero},
  BYTES {default_zero},
  CREATED {default_zero},
  NUMBER {default_zero},
  LAST_ERROR {long_text})";

constexpr const char* entry_columns = R"({entries} (
  ID {name} NOT NULL PRIMARY KEY,
  ENTRY {long_text} NOT NULL)";

constexpr const char* ticket_columns = R"({tickets} (
  LANE {integer} NOT NULL,
  TICKET {name} NOT NULL,
  EXPIRES {integer} NOT NULL,
  EVENT_KEY {name} NOT NULL,
  BODY {long_text} NOT NULL,
  PRIMARY KEY (LANE, TICKET))";

constexpr const char* lane_columns = R"({lanes} (
  LANE {integer} NOT NULL PRIMARY KEY,
  PAUSED {default_zero},
  UNTIL {default_zero},
  FENCE {default_zero},
  TOKEN {default_zero},
  OWNER {name} NOT NULL)";

std::string counter_table_columns() {
  std::string text = "{counters} (\n  N {identity},\n  LANE {integer} NOT NULL";
  for (const auto& column : counter_columns)
    text.append(",\n  ").append(column.name).append(" {integer} NOT NULL");
  return text;
}

struct index_definition {
  std::string table, suffix, columns, condition{};

  [[nodiscard]] std::string name() const { return "IDX_" + table + "_" + suffix; }
};

struct table_definition {
  std::string columns;
  std::vector<index_definition> indexes{};
};

std::vector<table_definition> table_definitions(bool mysql) {
  std::vector<table_definition> tables{
      {event_columns,
       {{"{events}", "DUE", "(LANE, DUE, ID)", " WHERE DUE IS NOT NULL"},
        {"{events}", "KEY", "(LANE, QUEUE, SEQ)", " WHERE QUEUE IS NOT NULL"},
        {"{events}", "AT", "(LANE, PLACE, AT)", " WHERE PLACE <> {queued}"}}},
      {entry_columns},
      {ticket_columns, {{"{tickets}", "EXPIRES", "(LANE, EXPIRES, TICKET)"}}},
      {lane_columns},
      {counter_table_columns()}};
  if (mysql) tables.push_back({"{stripes} (\n  N {integer} NOT NULL PRIMARY KEY"});
  return tables;
}

bool is_mysql_dialect(sql::dialect_id dialect) {
  return dialect == sql::dialect_id::mysql || dialect == sql::dialect_id::mariadb;
}

std::string state_number(row_state state) {
  return std::to_string(static_cast<std::int64_t>(state));
}

}  // namespace

table_names table_names_of(std::string_view prefix) {
  (void)key::redis_prefix(prefix);  // checks it
  const auto open = prefix.find('{');
  const auto close = prefix.find('}');
  std::string name(prefix.substr(open + 1, close - open - 1));
  // Table names have no room for the rest: two prefixes with the same tag would share one outbox.
  if (open != 0 || close + 1 != prefix.size()) {
    throw error(errc::invalid_argument,
                "on SQL the prefix must consist of its hash tag alone: write '{" + name +
                    "}', or move the rest into the braces",
                {.path = "prefix"});
  }
  // Lower case, because PostgreSQL folds names and other databases may not.
  std::transform(name.begin(), name.end(), name.begin(), table_character);
  if (name.empty() || name.size() > max_table_name ||
      (name.front() >= '0' && name.front() <= '9')) {
    throw error(errc::invalid_argument,
                "on SQL the hash tag of the prefix becomes the name of the tables: it must have 1 "
                "to 37 characters and must not begin with a digit",
                {.path = "prefix"});
  }
  name += "_OUTBOX";
  return {.events = name,
          .entries = name + "_ENTRY",
          .tickets = name + "_TICKET",
          .lanes = name + "_LANE",
          .counters = name + "_TALLY",
          .stripes = name + "_STRIPE"};
}

std::string expand_fragments(std::string_view text, const fragment_map& fragments) {
  std::string expanded;
  while (true) {
    const auto open = text.find('{');
    expanded += text.substr(0, open);
    if (open == std::string_view::npos) return expanded;
    const auto close = text.find('}', open);
    const auto name = text.substr(open + 1, close - open - 1);
    const auto fragment = fragments.find(name);
    if (fragment == fragments.end())
      throw error(errc::internal, "unknown SQL fragment " + std::string(name));
    expanded += expand_fragments(fragment->second, fragments);
    text.remove_prefix(close + 1);
  }
}

fragment_map schema_fragments(sql::dialect_id dialect, const table_names& tables) {
  fragment_map fragments{{"events", tables.events},
                         {"entries", tables.entries},
                         {"tickets", tables.tickets},
                         {"lanes", tables.lanes},
                         {"counters", tables.counters},
                         {"stripes", tables.stripes},
                         {"queued", state_number(row_state::queued)},
                         {"parked", state_number(row_state::parked)},
                         {"blocking", state_number(row_state::blocking)},
                         {"remembered", state_number(row_state::remembered)},
                         {"default_zero", "{integer} NOT NULL DEFAULT 0"}};
  // Names and ids compare as bytes.
  if (dialect == sql::dialect_id::sqlite) {
    fragments.insert({{"name", "TEXT"},
                      {"integer", "INTEGER"},
                      {"long_text", "TEXT"},
                      {"identity", "INTEGER PRIMARY KEY AUTOINCREMENT"}});
  } else if (dialect == sql::dialect_id::postgresql) {
    fragments.insert({{"name", "VARCHAR(300) COLLATE \"C\""},
                      {"integer", "BIGINT"},
                      {"long_text", "TEXT"},
                      {"identity", "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY"}});
  } else if (is_mysql_dialect(dialect)) {
    const std::string collation =
        dialect == sql::dialect_id::mariadb ? "utf8mb4_nopad_bin" : "utf8mb4_0900_bin";
    fragments.insert({{"name", "VARCHAR(300) CHARACTER SET utf8mb4 COLLATE " + collation},
                      {"integer", "BIGINT"},
                      {"long_text", "LONGTEXT CHARACTER SET utf8mb4"},
                      {"identity", "BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY"}});
  } else {
    throw error(errc::unsupported_type,
                "this database cannot hold an outbox; use SQLite, PostgreSQL, MariaDB or MySQL");
  }
  return fragments;
}

std::vector<std::string> create_statements(sql::dialect_id dialect, const table_names& tables) {
  const auto fragments = schema_fragments(dialect, tables);
  const bool mysql = is_mysql_dialect(dialect);
  std::vector<std::string> statements;
  for (const auto& [columns, indexes] : table_definitions(mysql)) {
    std::string table = "CREATE TABLE IF NOT EXISTS " + columns;
    // MySQL has neither CREATE INDEX IF NOT EXISTS nor partial indexes.
    if (mysql) {
      for (const auto& index : indexes) table += ",\n  INDEX " + index.name() + " " + index.columns;
    }
    statements.push_back(table + (mysql ? "\n) ENGINE=InnoDB" : "\n)"));
    if (mysql) continue;
    for (const auto& index : indexes)
      statements.push_back("CREATE INDEX IF NOT EXISTS " + index.name() + " ON " + index.table +
                           " " + index.columns + index.condition);
  }
  for (auto& statement : statements) statement = expand_fragments(statement, fragments);
  return statements;
}

bool supports(sql::dialect_id dialect) noexcept {
  return dialect == sql::dialect_id::sqlite || dialect == sql::dialect_id::postgresql ||
         is_mysql_dialect(dialect);
}

sql::schema_set outbox_tables_schema(std::string_view prefix) {
  const auto tables = table_names_of(prefix);
  return {.name = "outbox",
          .tables = {tables.events, tables.entries, tables.tickets, tables.lanes, tables.counters},
          .create = [tables](sql::dialect_id dialect,
                             int) { return create_statements(dialect, tables); },
          .command_options =
              prefix == default_prefix ? "" : "--outbox-prefix '" + std::string(prefix) + "'"};
}

std::vector<sql::table_need> table_needs(sql::dialect_id dialect, std::string_view prefix) {
  const auto tables = table_names_of(prefix);
  const std::vector<std::string> all{"INSERT", "UPDATE", "DELETE"};
  std::vector<sql::table_need> needs{
      {.table = tables.events, .columns = {"ID"}, .privileges = all},
      {.table = tables.entries, .columns = {"ID"}, .privileges = all},
      {.table = tables.tickets, .columns = {"TICKET"}, .privileges = all},
      {.table = tables.lanes, .columns = {"OWNER"}, .privileges = all},
      {.table = tables.counters, .columns = {"LANE"}, .privileges = {"INSERT", "DELETE"}}};
  if (is_mysql_dialect(dialect))
    needs.push_back(
        {.table = tables.stripes, .columns = {"N"}, .privileges = {"INSERT", "UPDATE"}});
  return needs;
}

std::size_t count_lanes(sql::connection& connection, std::string_view prefix) {
  const auto rows = connection
                        .execute({.text = "SELECT COUNT(*) FROM " + table_names_of(prefix).lanes +
                                          " WHERE LANE >= 0",
                                  .results = {sql::type::integer}},
                                 {})
                        .rows;
  const auto* count = rows.empty() ? nullptr : std::get_if<std::int64_t>(&rows.at(0, 0));
  if (count == nullptr || *count <= 0) return 1;
  return std::bit_ceil(static_cast<std::size_t>(*count));
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox

namespace HOLDFAST_NAMESPACE {

std::vector<std::string> outbox_schema(sql::dialect_id dialect, std::string_view prefix) {
  const auto set = detail::outbox::outbox_tables_schema(prefix);
  return detail::sql::create_script(dialect, {&set, 1});
}

}  // namespace HOLDFAST_NAMESPACE
