#pragma once

/// \file
/// The database in which the server keeps its own state: tokens, sessions, the audit log. Other
/// parts of the server add tables of their own.

#include <holdfast/clock.hpp>
#include <holdfast/error.hpp>
#include <holdfast/log.hpp>
#include <holdfast/sql.hpp>
#include <holdfast/version.hpp>

#include "sql/context.hpp"
#include "sql/schema_set.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// The types of columns in one dialect.
struct state_column_types {
  std::string integer;
  /// Of text with at most so many characters.
  [[nodiscard]] std::string text(std::size_t size) const;
  sql::dialect_id dialect;
};
/// Throws errc::invalid_argument for an unknown dialect.
[[nodiscard]] state_column_types state_columns(sql::dialect_id dialect);
/// The statement that creates a table unless it exists. `columns`: the text in parentheses.
[[nodiscard]] std::string create_state_table(sql::dialect_id dialect, const std::string& table,
                                             const std::string& columns);

/// A connection that is lent for one operation. Texts have `?` for parameters.
/// Thread-safety: none.
class state_session {
 public:
  state_session(std::shared_ptr<sql::context> database, sql::pooled_connection connection)
      : database_(std::move(database)), connection_(std::move(connection)) {}

  [[nodiscard]] sql::dialect_id dialect() { return database_->dialect(); }
  [[nodiscard]] sql::connection& connection() noexcept { return *connection_; }

  /// Returns the number of affected rows.
  std::uint64_t execute(std::string_view text, std::span<const sql::parameter> parameters);
  std::uint64_t execute(std::string_view text, std::initializer_list<sql::parameter> parameters) {
    return execute(text, std::span(parameters.begin(), parameters.size()));
  }
  sql::rows query(std::string_view text, std::span<const sql::parameter> parameters,
                  std::vector<sql::type> results);
  sql::rows query(std::string_view text, std::initializer_list<sql::parameter> parameters,
                  std::vector<sql::type> results) {
    return query(text, std::span(parameters.begin(), parameters.size()), std::move(results));
  }
  /// The clause that limits the rows of an ordered query, with one parameter.
  [[nodiscard]] std::string_view row_limit();

  /// Runs `work` in a transaction: all of it or nothing.
  template <class Work>
  void transact(Work&& work) {
    connection_->begin();
    try {
      work();
      connection_->commit();
    } catch (...) {
      connection_->rollback();
      throw;
    }
  }

 private:
  [[nodiscard]] sql::statement statement(std::string_view text,
                                         std::span<const sql::parameter> parameters,
                                         std::vector<sql::type> results);

  std::shared_ptr<sql::context> database_;  // before the connection, which is returned to it
  sql::pooled_connection connection_;
};

/// NULL is an empty text, or 0.
[[nodiscard]] std::string text_of(const sql::rows& rows, std::size_t row, std::size_t column);
[[nodiscard]] std::int64_t integer_of(const sql::rows& rows, std::size_t row, std::size_t column);
/// An empty text is NULL, as Oracle has it.
[[nodiscard]] sql::parameter nullable(std::string_view text) noexcept;
[[nodiscard]] std::int64_t to_integer(timestamp time) noexcept;
[[nodiscard]] timestamp to_time(std::int64_t microseconds) noexcept;

/// `sqlite:` and `$STATE_DIRECTORY/serve.db`, else `~/.local/state/holdfast/serve.db`. Creates the
/// directory (mode 0700) if `create` is set. Throws errc::invalid_argument if neither variable is
/// set, and errc::unavailable if the directory cannot be created.
[[nodiscard]] std::string default_state_url(bool create);

/// Throws errc::invalid_argument with the path `state` or `url` if the URL is invalid or names a
/// database without SQL. Does not connect.
void check_state_url(const std::string& url);

struct state_database_options {
  /// An SQL database: `sqlite:///var/lib/holdfast/serve.db`, `postgresql://host/name`.
  std::string url{};
  std::string password{};
  std::shared_ptr<const holdfast::clock> clock{};  ///< never null
  std::shared_ptr<const logger> log{};             ///< never null
  /// Of connecting and of one statement. Tests shorten it.
  std::chrono::milliseconds timeout{5'000};
};

/// Connects when it is first used, and again after failures.
/// Thread-safety: may be called from any thread. Every function but the constructor may wait.
class state_database {
 public:
  /// Throws errc::invalid_argument if the URL is invalid or names a database without SQL.
  explicit state_database(state_database_options options);

  /// Adds tables that are created, or upgraded, when the database is opened next. Before its first
  /// use.
  void add_tables(sql::schema_set tables);

  /// Lends a connection, for reading or for writing. Opens the database and creates the tables if
  /// that did not happen before. `operation` is a text that lives as long as the program. Throws
  /// errors of the database, and errc::permission if every user may change the file.
  [[nodiscard]] state_session read(const char* operation);
  [[nodiscard]] state_session write(const char* operation);

  /// Opens the file again if it was deleted or replaced: this process would work on a file that
  /// no other process sees.
  void check_file();

  /// Without its password.
  [[nodiscard]] std::string shown_url() const;
  [[nodiscard]] const holdfast::clock& clock() const noexcept { return *options_.clock; }
  [[nodiscard]] const logger& log() const noexcept { return *options_.log; }

 private:
  [[nodiscard]] std::shared_ptr<sql::context> opened();
  void open();
  void create_tables(sql::context& database);

  const state_database_options options_;
  const std::string file_;  // empty: not a file
  std::mutex mutex_{};
  std::vector<sql::schema_set> tables_{};
  std::shared_ptr<sql::context> context_{};
  bool tables_exist_ = false;
  std::optional<error> failure_{};  // of the last attempt to open
  std::chrono::steady_clock::time_point failed_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve
