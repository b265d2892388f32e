#pragma once

#include <holdfast/version.hpp>

#include "sql/odbc/connection.hpp"
#include "sql/odbc/errors.hpp"
#include "sql/odbc/values.hpp"
#include "sql/placeholders.hpp"
#include "sql/statement_cache.hpp"

#include <memory>
#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::sql::odbc {

/// A statement with its parameters. It owns everything that the driver reads.
struct request {
  question_mark_text statement{};
  std::vector<bound_parameter> parameters{};
  std::size_t rows = 1;  ///< the number of values in each parameter
  std::vector<type> results{};
  std::size_t most_rows = 0;  ///< to read; 0: all
  loss on_loss = loss::harmless;
};

/// The handles of one connection. All calls of the driver are made here. Failures are thrown as
/// holdfast::error. Their diagnostics have to be read first, because the next call replaces them.
///
/// Thread-safety: none.
class session {
 public:
  /// Connects.
  explicit session(const odbc_options& options);
  session(const session&) = delete;
  session& operator=(const session&) = delete;
  ~session();

  [[nodiscard]] dialect_id dialect() const noexcept { return dialect_; }
  [[nodiscard]] const value_format& format() const noexcept { return format_; }
  [[nodiscard]] bool dead() const noexcept { return dead_; }
  /// Whether the server refused a write because it is read-only.
  [[nodiscard]] bool read_only() const noexcept { return read_only_; }
  /// Whether the driver accepts arrays of parameters.
  [[nodiscard]] bool takes_arrays() const noexcept { return takes_arrays_; }

  outcome execute(request& r);
  void run(const std::string& text, loss on_loss);
  void begin();
  void commit();
  void rollback();

 private:
  struct free_statement {
    void operator()(void* handle) const noexcept { SQLFreeHandle(SQL_HANDLE_STMT, handle); }
  };
  using statement_handle = std::unique_ptr<void, free_statement>;

  [[noreturn]] void fail(SQLSMALLINT kind, SQLHANDLE handle, loss on_loss);
  [[noreturn]] void fail(SQLHSTMT statement, loss on_loss) {
    fail(SQL_HANDLE_STMT, statement, on_loss);
  }
  void free_handles() noexcept;
  void connect(const odbc_options& options);
  void examine_server();
  void apply_settings();
  [[nodiscard]] statement_handle new_statement();
  SQLHSTMT prepare(const std::string& text);
  outcome run_prepared(SQLHSTMT statement, request& r);
  void bind(SQLHSTMT statement, request& r);
  SQLRETURN send_requested_parameters(SQLHSTMT statement, request& r);
  void read_results(SQLHSTMT statement, const request& r, bool has_cursor, outcome& result);
  void read_rows(SQLHSTMT statement, const request& r, rows& result);
  void end_transaction(SQLSMALLINT completion, loss on_loss);

  SQLHENV environment_ = SQL_NULL_HENV;
  SQLHDBC connection_ = SQL_NULL_HDBC;
  std::string secret_{};
  std::chrono::milliseconds limit_;
  dialect_id dialect_ = dialect_id::unknown;
  value_format format_{};
  bool dead_ = false;
  bool read_only_ = false;
  bool takes_arrays_ = false;
  statement_cache<statement_handle> statements_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::sql::odbc
