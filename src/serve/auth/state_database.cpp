#include "serve/auth/state_database.hpp"

#include <holdfast/error.hpp>

#include "base/schemes.hpp"
#include "base/secret.hpp"
#include "base/url.hpp"
#include "sql/connect.hpp"
#include "sql/dialect.hpp"
#include "sql/placeholders.hpp"
#include "sql/schema_upgrade.hpp"
#include "sql/schema_version.hpp"
#include "sql/sqlite/connection.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

using sql::dialect_id;

constexpr std::chrono::milliseconds failure_pause{500};

/// The path of the file of an SQLite database, or an empty text.
std::string file_of(std::string_view address) {
  if (!address.starts_with("sqlite:")) return {};
  const auto parsed = parse_url(address);
  return (parsed.has_authority ? "/" : "") + parsed.path;
}

/// Creates a directory and those above it, for this user only.
void create_private_directory(const std::string& path) {
  for (auto slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const auto part = path.substr(0, slash);
    if (::mkdir(part.c_str(), 0700) != 0 && errno != EEXIST)
      throw error(errc::unavailable, "the directory " + part + " cannot be created: " +
                                         std::generic_category().message(errno) +
                                         "; create it, or set --state");
    if (slash == std::string::npos) return;
  }
}

/// A path as a part of a URL.
std::string escape_path(std::string_view path) {
  static constexpr std::string_view safe =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/";
  static constexpr std::string_view digits = "0123456789ABCDEF";
  std::string result;
  for (const char c : path) {
    if (safe.find(c) != std::string_view::npos) {
      result += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    result += '%';
    result += digits[byte >> 4U];
    result += digits[byte & 15U];
  }
  return result;
}

std::string environment_text(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return value == nullptr ? std::string() : std::string(value);
}

sql::type type_of(const sql::parameter& value) noexcept {
  if (std::holds_alternative<std::int64_t>(value)) return sql::type::integer;
  return sql::type::text;
}

}  // namespace

std::string state_column_types::text(std::size_t size) const {
  const auto length = "(" + std::to_string(size) + ")";
  switch (dialect) {
    case dialect_id::sqlite:
      return "TEXT";
    case dialect_id::postgresql:
      return "VARCHAR" + length + " COLLATE \"C\"";
    case dialect_id::mysql:
    case dialect_id::mariadb:
      return "VARCHAR" + length + " CHARACTER SET utf8mb4 COLLATE utf8mb4_bin";
    case dialect_id::sqlserver:
      return "NVARCHAR" + length + " COLLATE Latin1_General_100_BIN2";
    case dialect_id::oracle:
      return "VARCHAR2(" + std::to_string(size) + " CHAR)";
    default:
      return "VARCHAR" + length;
  }
}

state_column_types state_columns(dialect_id dialect) {
  if (dialect == dialect_id::unknown)
    throw error(errc::invalid_argument,
                "the state of the server needs a database whose dialect is known; use sqlite: or "
                "postgresql://");
  const bool sqlite = dialect == dialect_id::sqlite;
  return {.integer = sqlite                          ? "INTEGER"
                     : dialect == dialect_id::oracle ? "NUMBER(19)"
                                                     : "BIGINT",
          .dialect = dialect};
}

std::string create_state_table(dialect_id dialect, const std::string& table,
                               const std::string& columns) {
  return sql::create_table_if_missing(dialect, table, " (" + columns + ")");
}

sql::statement state_session::statement(std::string_view text,
                                        std::span<const sql::parameter> parameters,
                                        std::vector<sql::type> results) {
  sql::statement result{.text = dialect() == dialect_id::postgresql ? sql::number_placeholders(text)
                                                                    : std::string(text),
                        .results = std::move(results)};
  for (const auto& value : parameters) result.parameters.push_back(type_of(value));
  return result;
}

std::uint64_t state_session::execute(std::string_view text,
                                     std::span<const sql::parameter> parameters) {
  return connection_->execute(statement(text, parameters, {}), parameters).affected;
}

sql::rows state_session::query(std::string_view text, std::span<const sql::parameter> parameters,
                               std::vector<sql::type> results) {
  return connection_->execute(statement(text, parameters, std::move(results)), parameters).rows;
}

std::string_view state_session::row_limit() {
  switch (dialect()) {
    case dialect_id::sqlserver:
      return " OFFSET 0 ROWS FETCH NEXT ? ROWS ONLY";
    case dialect_id::oracle:
      return " FETCH FIRST ? ROWS ONLY";
    default:
      return " LIMIT ?";
  }
}

std::string text_of(const sql::rows& rows, std::size_t row, std::size_t column) {
  const auto* const text = std::get_if<std::string>(&rows.at(row, column));
  return text == nullptr ? std::string() : *text;
}

std::int64_t integer_of(const sql::rows& rows, std::size_t row, std::size_t column) {
  const auto* const number = std::get_if<std::int64_t>(&rows.at(row, column));
  return number == nullptr ? 0 : *number;
}

sql::parameter nullable(std::string_view text) noexcept {
  if (text.empty()) return std::monostate{};
  return text;
}

std::int64_t to_integer(timestamp time) noexcept { return time.time_since_epoch().count(); }

timestamp to_time(std::int64_t microseconds) noexcept {
  return timestamp(std::chrono::microseconds(microseconds));
}

std::string default_state_url(bool create) {
  // systemd separates several directories with colons.
  auto directory = environment_text("STATE_DIRECTORY");
  directory.resize(std::min(directory.find(':'), directory.size()));
  if (directory.empty()) {
    directory = environment_text("HOME");
    if (!directory.starts_with('/'))
      throw error(errc::invalid_argument,
                  "neither STATE_DIRECTORY nor HOME says where the state of the server is; set "
                  "--state sqlite:///path/serve.db",
                  {.path = "state"});
    directory += "/.local/state/holdfast";
  }
  if (create) create_private_directory(directory);
  return "sqlite://" + escape_path(directory + "/serve.db");
}

void check_state_url(const std::string& url) {
  if (url.empty() || url.starts_with('/') || url.starts_with('.'))
    throw error(errc::invalid_argument,
                "this is not the URL of a database; for a file write sqlite:///path/serve.db",
                {.path = "state"});
  if (url.starts_with("memory:") || url.starts_with("redis"))
    throw error(errc::invalid_argument,
                "the state of the server needs an SQL database, such as "
                "sqlite:///var/lib/holdfast/serve.db",
                {.path = "state"});
  check_scheme(url);
  // Refuses an invalid URL now.
  (void)sql::connector(url, {});
}

state_database::state_database(state_database_options options)
    : options_(std::move(options)), file_(file_of(options_.url)) {
  check_state_url(options_.url);
}

void state_database::add_tables(sql::schema_set tables) {
  const std::scoped_lock lock(mutex_);
  tables_.push_back(std::move(tables));
  tables_exist_ = false;
}

std::string state_database::shown_url() const { return without_password(options_.url); }

void state_database::create_tables(sql::context& database) {
  if (!file_.empty() && is_public_file(file_))
    throw error(
        errc::permission,
        "every user of this machine may read or change the state file; run: chmod 600 " + file_);
  const auto dialect = database.dialect();
  (void)state_columns(dialect);  // refuses an unknown dialect
  const auto connection = database.pool.acquire_writer("state.open");
  for (const auto& set : tables_) {
    if (sql::create_schema(*connection, dialect, set) < set.current)
      (void)sql::upgrade_schema(*connection, dialect, set);
  }
}

std::shared_ptr<sql::context> state_database::opened() {
  // Held while the database is opened: the second thread would only do the same. After a failure
  // the threads that waited do not try one after the other.
  const std::scoped_lock lock(mutex_);
  if (tables_exist_) return context_;
  const auto now = std::chrono::steady_clock::now();
  if (failure_ && now - failed_ < failure_pause) throw error(*failure_);
  try {
    open();
    failure_.reset();
  } catch (const error& problem) {
    failure_ = problem;
    failed_ = std::chrono::steady_clock::now();
    throw;
  }
  return context_;
}

void state_database::open() {
  if (!context_)
    context_ = std::make_shared<sql::context>(
        sql::connector(options_.url, {.connect_timeout = options_.timeout,
                                      .statement_timeout = options_.timeout,
                                      .password = options_.password}),
        sql::context_options{.pool = {.maximum = 4, .acquire_timeout = options_.timeout},
                             .statement_timeout = options_.timeout,
                             .expected_dialect = sql::dialect_of_url(options_.url),
                             .clock = options_.clock,
                             .log = options_.log});
  create_tables(*context_);
  tables_exist_ = true;
}

state_session state_database::read(const char* operation) {
  auto database = opened();
  auto connection = database->pool.acquire_reader(operation);
  return {std::move(database), std::move(connection)};
}

state_session state_database::write(const char* operation) {
  auto database = opened();
  auto connection = database->pool.acquire_writer(operation);
  return {std::move(database), std::move(connection)};
}

void state_database::check_file() {
  if (file_.empty()) return;
  auto session = write("state.check");
  if (!sql::file_was_replaced(session.connection())) return;
  log().write(
      log_level::warning,
      "the state file was deleted or replaced; only the tokens of the file that is there now "
      "are valid; if there are none, run: holdfast serve token add --role admin --state " +
          shown_url(),
      {{"file", file_}});
  const std::scoped_lock lock(mutex_);
  context_.reset();
  tables_exist_ = false;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
