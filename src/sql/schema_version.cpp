#include "sql/schema_version.hpp"

#include <holdfast/error.hpp>

#include "sql/dialect.hpp"
#include "sql/placeholders.hpp"
#include "sql/read_only_server.hpp"
#include "sql/retry.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <ranges>
#include <thread>

namespace HOLDFAST_NAMESPACE::detail::sql {

namespace {

constexpr const char* version_table_name = "HOLDFAST_SCHEMA";

using recorded_versions = std::map<std::string, int, std::less<>>;

/// Whether a query failed because a table or column does not exist. Servers that speak the protocol
/// of PostgreSQL without its catalog report errc::grammar.
bool is_missing_error(const error& problem) {
  return problem.code() == errc::missing_object || problem.code() == errc::grammar;
}

int version_in(const value& stored) {
  const auto* const number = std::get_if<std::int64_t>(&stored);
  if (number == nullptr || *number < 1 || *number > std::numeric_limits<int>::max())
    throw error(errc::malformed,
                "the table HOLDFAST_SCHEMA has a version that is not a positive integer; compare "
                "it with: holdfast schema status URL");
  return static_cast<int>(*number);
}

/// Where PostgreSQL has the tables of a set.
struct postgres_place {
  std::string qualifier;  ///< the schema of the main table, quoted, with a dot
  bool has_versions;      ///< whether that schema has a table of versions
};

/// The schema of the main table, which an unqualified name finds through the search path. Nothing
/// if the main table does not exist. `to_create`: looks only where CREATE TABLE would create it.
std::optional<postgres_place> find_in_postgres(connection& connection, const schema_set& set,
                                               bool to_create) {
  const bool in_current_schema = to_create && qualifier_of(set.main_table()).empty();
  const statement query{
      .text =
          std::string("SELECT quote_ident(n.nspname) || '.', count(v.oid) FROM "
                      "pg_catalog.pg_class t JOIN pg_catalog.pg_namespace n ON n.oid = "
                      "t.relnamespace LEFT JOIN pg_catalog.pg_class v ON v.relnamespace = n.oid "
                      "AND v.relname = 'holdfast_schema' WHERE t.oid = pg_catalog.to_regclass(") +
          (in_current_schema ? "quote_ident(current_schema()) || '.' || $1" : "$1") +
          ") GROUP BY n.nspname",
      .parameters = {type::text},
      .results = {type::text, type::integer}};
  const parameter parameters[]{std::string_view(set.main_table())};
  const auto rows = connection.execute(query, parameters).rows;
  if (rows.empty()) return std::nullopt;
  return postgres_place{.qualifier = std::get<std::string>(rows.at(0, 0)),
                        .has_versions = std::get<std::int64_t>(rows.at(0, 1)) > 0};
}

/// The schema in which PostgreSQL creates tables without a qualifier: quoted, with a dot. Empty if
/// the search path names none.
std::string current_postgres_schema(connection& connection) {
  const auto rows =
      connection
          .execute({.text = "SELECT COALESCE(quote_ident(current_schema()) || '.', '')",
                    .results = {type::text}},
                   {})
          .rows;
  return std::get<std::string>(rows.at(0, 0));
}

bool exists_in_postgres(connection& connection, const std::string& table) {
  const parameter parameters[]{std::string_view(table)};
  const auto rows = connection
                        .execute({.text = "SELECT count(pg_catalog.to_regclass($1))",
                                  .parameters = {type::text},
                                  .results = {type::integer}},
                                 parameters)
                        .rows;
  return std::get<std::int64_t>(rows.at(0, 0)) > 0;
}

/// Whether a column can be selected. `column` may be a constant.
bool is_selectable(connection& connection, const std::string& table, const std::string& column) {
  try {
    (void)connection.execute({.text = "SELECT COUNT(*) FROM (SELECT " + column + " AS A FROM " +
                                      table + " WHERE 1 = 0) X",
                              .results = {type::integer}},
                             {});
    return true;
  } catch (const error& problem) {
    if (is_missing_error(problem)) return false;
    // A table that the user may not read exists, or will be reported by the next statement.
    if (problem.code() == errc::permission) return true;
    throw;
  }
}

/// The rows of a table of versions. Throws errors of the database.
recorded_versions read_rows(connection& connection, const std::string& table) {
  const auto rows = connection
                        .execute({.text = "SELECT SET_NAME, VERSION FROM " + table,
                                  .results = {type::text, type::integer}},
                                 {})
                        .rows;
  recorded_versions versions;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (const auto* name = std::get_if<std::string>(&rows.at(i, 0)))
      versions.emplace(*name, version_in(rows.at(i, 1)));
  }
  return versions;
}

/// The rows of the table of versions of one set of qualifiers.
struct version_rows {
  recorded_versions versions{};
  bool readable = true;
  std::string table{};
  std::optional<bool> main_table_exists{};  ///< empty: not known
};

/// PostgreSQL: finds the table of versions without a query that fails, which would appear in the
/// log of the server at each start of a program. Returns whether it exists.
bool locate_in_postgres(connection& connection, const schema_set& set, bool to_create,
                        version_rows& result) {
  const auto place = find_in_postgres(connection, set, to_create);
  result.main_table_exists = place.has_value();
  if (place) {
    result.table = place->qualifier + version_table_name;
    return place->has_versions;
  }
  if (!to_create) return false;
  if (qualifier_of(result.table).empty())
    result.table.insert(0, current_postgres_schema(connection));
  return exists_in_postgres(connection, result.table);
}

/// `set` is any set with the qualifiers. `to_create`: as for find_in_postgres.
version_rows load_versions(connection& connection, dialect_id dialect, const schema_set& set,
                           bool to_create) {
  version_rows result{.table = qualifier_of(set.main_table()) + version_table_name};
  if (dialect == dialect_id::unknown) return result;
  if (dialect == dialect_id::postgresql) {
    try {
      if (!locate_in_postgres(connection, set, to_create, result)) return result;
    } catch (const error& problem) {
      // The server speaks the protocol of PostgreSQL without its catalog.
      if (!is_missing_error(problem) && problem.code() != errc::permission) throw;
    }
  }
  try {
    result.versions = read_rows(connection, result.table);
  } catch (const error& problem) {
    // MySQL and MariaDB report a missing privilege also for a table that does not exist.
    if (problem.code() == errc::permission) result.readable = false;
    else if (!is_missing_error(problem)) throw;
  }
  return result;
}

/// The version that the columns of the tables show.
int version_of_columns(connection& connection, const schema_set& set) {
  int version = 1;
  for (const auto& marker : set.markers) {
    if (marker.version > version && is_selectable(connection, marker.table, marker.column))
      version = marker.version;
  }
  return version;
}

schema_state state_of(connection& connection, dialect_id dialect, const schema_set& set,
                      const version_rows& rows) {
  schema_state state{.readable = rows.readable, .version_table = rows.table};
  if (const auto row = rows.versions.find(schema_row_name(dialect, set));
      row != rows.versions.end()) {
    state.recorded = row->second;
    state.version = row->second;
  } else if (!rows.readable) {
    state.version = version_of_columns(connection, set);
  }
  return state;
}

/// The statement that records the version that the columns show, unless the set has a row: a script
/// may meet tables of an older version.
std::string insert_version_of_columns(dialect_id dialect, const std::string& table,
                                      const schema_set& set) {
  std::string version;
  for (const auto& marker : set.markers | std::views::reverse)
    version += " WHEN (" + count_column(dialect, marker.table, marker.column) + ") > 0 THEN " +
               std::to_string(marker.version);
  if (version.empty()) return insert_version(dialect, table, set, set.current);
  const std::string name = "'" + schema_row_name(dialect, set) + "'";
  const bool needs_dual = dialect == dialect_id::oracle || is_mysql(dialect);
  return "INSERT INTO " + table + " (SET_NAME, VERSION, WRITTEN_BY) SELECT " + name + ", CASE" +
         version + " ELSE 1 END, '" HOLDFAST_VERSION_STRING "'" + (needs_dual ? " FROM DUAL" : "") +
         " WHERE NOT EXISTS (SELECT 1 FROM " + table + " WHERE SET_NAME = " + name + ")";
}

std::string holdfast_program() { return "this program (Holdfast " HOLDFAST_VERSION_STRING ")"; }

/// Records the version of tables that have no row. A user who may not write it can go on, unless
/// the tables need a row: those of version 1 do not.
void record_version(connection& connection, dialect_id dialect, const schema_set& set,
                    const std::string& table, int version, bool needs_row) {
  try {
    run_create(connection, create_version_table(dialect, table));
    run_create(connection, insert_version(dialect, table, set, version));
  } catch (const error& problem) {
    const bool refused = problem.code() == errc::permission || is_read_only_server(problem);
    if (!refused || (version != 1 && needs_row)) throw;
  }
}

}  // namespace

std::string schema_row_name(dialect_id dialect, const schema_set& set) {
  auto name = unqualified(set.main_table());
  if (!is_mysql(dialect))
    std::ranges::transform(name, name.begin(), [](char c) {
      return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    });
  return name;
}

void check_schema_version(const schema_set& set, int version) {
  if (version >= set.oldest && version <= set.current) return;
  const std::string tables = "the tables of the " + set.name + " (" + set.main_table() +
                             ") have schema version " + std::to_string(version) + ", ";
  if (version > set.current)
    throw error(errc::unsupported_type, tables + "but " + holdfast_program() +
                                            " knows versions up to " + std::to_string(set.current) +
                                            "; update the program");
  throw error(errc::unsupported_type,
              tables + "but " + holdfast_program() + " needs at least version " +
                  std::to_string(set.oldest) + "; run: holdfast schema upgrade URL" +
                  (set.command_options.empty() ? "" : " " + set.command_options));
}

std::vector<int> read_schema_versions(connection& connection, dialect_id dialect,
                                      std::span<const schema_set> sets) {
  std::map<std::string, version_rows> rows_of_qualifier;
  std::vector<int> versions;
  versions.reserve(sets.size());
  for (const auto& set : sets) {
    const auto qualifier = qualifier_of(set.main_table());
    auto rows = rows_of_qualifier.find(qualifier);
    if (rows == rows_of_qualifier.end())
      rows = rows_of_qualifier.emplace(qualifier, load_versions(connection, dialect, set, false))
                 .first;
    const auto state = state_of(connection, dialect, set, rows->second);
    const bool absent = !state.recorded && state.version < set.oldest &&
                        !is_selectable(connection, set.main_table(), "1");
    if (!absent) check_schema_version(set, state.version);
    versions.push_back(absent ? set.current : state.version);
  }
  return versions;
}

int read_schema_version(connection& connection, dialect_id dialect, const schema_set& set) {
  return read_schema_versions(connection, dialect, {&set, 1}).front();
}

schema_state inspect_schema(connection& connection, dialect_id dialect, const schema_set& set) {
  const auto rows = load_versions(connection, dialect, set, false);
  auto state = state_of(connection, dialect, set, rows);
  state.exists = rows.main_table_exists ? *rows.main_table_exists
                                        : is_selectable(connection, set.main_table(), "1");
  return state;
}

namespace {

int create_schema_once(connection& connection, dialect_id dialect, const schema_set& set) {
  auto rows = load_versions(connection, dialect, set, true);
  auto state = state_of(connection, dialect, set, rows);
  const bool exists = rows.main_table_exists ? *rows.main_table_exists
                                             : is_selectable(connection, set.main_table(), "1");
  if (exists && !state.recorded) {
    // Another process may have created it meanwhile. Its row is older than its table.
    rows = load_versions(connection, dialect, set, true);
    state = state_of(connection, dialect, set, rows);
  }
  const bool has_version = exists || state.recorded.has_value();
  const int version = has_version ? state.version : set.current;
  check_schema_version(set, version);
  // Without the right to read the row, the columns show the version.
  const bool needs_row = rows.readable || set.markers.empty();
  if (!state.recorded) record_version(connection, dialect, set, rows.table, version, needs_row);
  for (const auto& text : set.create(dialect, version)) run_create(connection, text);
  if (state.recorded || version == 1 || !rows.readable) return version;
  // Another process may have recorded another version first, and created its tables.
  const auto recorded = read_recorded_version(connection, dialect, rows.table, set);
  if (recorded) check_schema_version(set, *recorded);
  return recorded.value_or(version);
}

}  // namespace

int create_schema(connection& connection, dialect_id dialect, const schema_set& set) {
  // On Galera a CREATE ends whatever uses the table on any node, also reading and creating it.
  constexpr retry_limits limits{.attempts = 20,
                                .time = std::chrono::seconds(30),
                                .shortest_pause = std::chrono::milliseconds(1),
                                .first_pause = std::chrono::milliseconds(20),
                                .longest_pause = std::chrono::milliseconds(500)};
  return with_retries(
      limits, [&] { return create_schema_once(connection, dialect, set); },
      [&](const error& problem) { return is_write_conflict(problem) && !connection.broken(); });
}

std::vector<std::string> create_script(dialect_id dialect, std::span<const schema_set> sets) {
  std::vector<std::string> statements;
  for (const auto& set : sets)
    std::ranges::move(set.create(dialect, set.current), std::back_inserter(statements));
  std::vector<std::string> version_tables;
  for (const auto& set : sets) {
    const auto table = qualifier_of(set.main_table()) + version_table_name;
    if (std::ranges::find(version_tables, table) == version_tables.end()) {
      version_tables.push_back(table);
      statements.push_back(create_version_table(dialect, table));
    }
    statements.push_back(insert_version_of_columns(dialect, table, set));
  }
  return statements;
}

std::string create_version_table(dialect_id dialect, const std::string& table) {
  const auto columns = [](const std::string& name, const std::string& number,
                          const std::string& text) {
    return " (\n  SET_NAME " + name + " NOT NULL,\n  VERSION " + number +
           " NOT NULL,\n  WRITTEN_BY " + text + " NOT NULL,\n  PRIMARY KEY (SET_NAME)\n)";
  };
  const auto create = [&](const std::string& list) {
    return create_table_if_missing(dialect, table, list);
  };
  switch (dialect) {
    case dialect_id::sqlite:
      return create(columns("TEXT", "INTEGER", "TEXT"));
    case dialect_id::postgresql:
    case dialect_id::h2:
      return create(columns("VARCHAR(128)", "BIGINT", "VARCHAR(32)"));
    case dialect_id::mysql:
    case dialect_id::mariadb:
      // The names of tables can differ in upper and lower case only.
      return create(columns("VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", "BIGINT",
                            "VARCHAR(32)"));
    case dialect_id::sqlserver:
      return create(columns("NVARCHAR(128)", "BIGINT", "NVARCHAR(32)"));
    case dialect_id::oracle:
      return create(columns("VARCHAR2(128 CHAR)", "NUMBER(10)", "VARCHAR2(32 CHAR)"));
    case dialect_id::unknown:
      break;
  }
  throw error(errc::invalid_argument,
              "the tables can be created only if the dialect is known; create them yourself");
}

std::string insert_version(dialect_id dialect, const std::string& table, const schema_set& set,
                           int version) {
  const std::string name = "'" + schema_row_name(dialect, set) + "'";
  const std::string values =
      name + ", " + std::to_string(version) + ", '" HOLDFAST_VERSION_STRING "'";
  const std::string into = "INTO " + table + " (SET_NAME, VERSION, WRITTEN_BY) ";
  switch (dialect) {
    case dialect_id::sqlite:
    case dialect_id::postgresql:
      return "INSERT " + into + "VALUES (" + values + ") ON CONFLICT (SET_NAME) DO NOTHING";
    case dialect_id::mysql:
    case dialect_id::mariadb:
      return "INSERT IGNORE " + into + "VALUES (" + values + ")";
    default:
      return "INSERT " + into + "SELECT " + values +
             (dialect == dialect_id::oracle ? " FROM DUAL" : "") +
             " WHERE NOT EXISTS (SELECT 1 FROM " + table + " WHERE SET_NAME = " + name + ")";
  }
}

std::string update_version(dialect_id dialect, const std::string& table, const schema_set& set,
                           int version) {
  return "UPDATE " + table + " SET VERSION = " + std::to_string(version) +
         ", WRITTEN_BY = '" HOLDFAST_VERSION_STRING "' WHERE SET_NAME = '" +
         schema_row_name(dialect, set) + "' AND VERSION < " + std::to_string(version);
}

std::optional<int> read_recorded_version(connection& connection, dialect_id dialect,
                                         const std::string& table, const schema_set& set) {
  const auto name = schema_row_name(dialect, set);
  const parameter parameters[]{std::string_view(name)};
  const auto rows = connection
                        .execute({.text = "SELECT VERSION FROM " + table +
                                          " WHERE SET_NAME = " + placeholder(dialect, 1),
                                  .parameters = {type::text},
                                  .results = {type::integer}},
                                 parameters)
                        .rows;
  if (rows.empty()) return std::nullopt;
  return version_in(rows.at(0, 0));
}

void run_create(connection& connection, const std::string& text) {
  constexpr int max_attempts = 5;
  for (int attempt = 1;; ++attempt) {
    try {
      connection.run(text);
      return;
    } catch (const error& problem) {
      // Another session may create the same at this moment. Drivers report that with many codes,
      // and the next attempt finds it.
      const bool is_final = problem.code() == errc::permission || problem.code() == errc::timeout ||
                            problem.in_doubt() || is_read_only_server(problem);
      if (attempt == max_attempts || is_final || connection.broken()) throw;
      std::this_thread::sleep_for(std::chrono::milliseconds(10) * attempt);
    }
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail::sql
