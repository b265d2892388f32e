#pragma once

#include <holdfast/sql.hpp>
#include <holdfast/version.hpp>

#include "sql/odbc_connection.hpp"
#include "sql/odbc_errors.hpp"
#include "sql/odbc_values.hpp"

#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace HOLDFAST_NAMESPACE::sql::odbc {

/// A statement as a driver takes it: question marks only, and which parameter each of them is.
struct marked_text {
  std::string text{};
  std::vector<std::uint8_t> order{};  ///< empty: each once, in order
};
/// `$1` becomes `?`, outside of quotes and comments.
[[nodiscard]] marked_text with_marks(std::string_view text);

/// What is sent: statement, parameters for `rows` rows, and the columns that come back.
struct request {
  marked_text statement{};
  std::vector<column> parameters{};
  std::size_t rows = 1;
  std::vector<type> results{};
  std::size_t most_rows = 0;  ///< 0: all
  bool in_doubt = false;      ///< whether a lost answer leaves it in doubt
};

/// The handles of one connection, and every call of the driver. Failures leave as holdfast::error; diagnostics are read before anything
/// else is asked, since the next call replaces them.
/// Thread-safety: none.
class link {
 public:
  /// Connects.
  explicit link(const odbc_options& options);
  link(const link&) = delete;
  link& operator=(const link&) = delete;
  ~link();

  [[nodiscard]] dialect_id dialect() const noexcept { return dialect_; }
  [[nodiscard]] const habits& how() const noexcept { return how_; }
  [[nodiscard]] bool dead() const noexcept { return dead_; }
  [[nodiscard]] bool takes_arrays() const noexcept { return takes_arrays_; }

  outcome execute(request& what);
  void run(const std::string& text, bool in_doubt);
  void begin();
  void end(bool commit);

 private:
  struct statement_closer {
    void operator()(void* handle) const noexcept { SQLFreeHandle(SQL_HANDLE_STMT, handle); }
  };
  using statement_handle = std::unique_ptr<void, statement_closer>;
  struct kept {
    std::string text;
    statement_handle handle;
  };

  [[noreturn]] void fail(SQLSMALLINT kind, SQLHANDLE handle, bool in_doubt);
  void settle();
  SQLHSTMT prepared(const std::string& text);
  void forget(const std::string& text) noexcept;
  outcome run_prepared(SQLHSTMT statement, request& what);
  void send_pieces(SQLHSTMT statement, request& what);
  void read_results(SQLHSTMT statement, const request& what, outcome& into);
  [[nodiscard]] statement_handle new_statement();

  SQLHENV environment_ = SQL_NULL_HENV;
  SQLHDBC connection_ = SQL_NULL_HDBC;
  std::string secret_{};
  std::chrono::milliseconds limit_;
  dialect_id dialect_ = dialect_id::unknown;
  habits how_{};
  bool dead_ = false;
  bool takes_arrays_ = false;
  std::list<kept> by_use_{};
  std::unordered_map<std::string_view, std::list<kept>::iterator> by_text_{};
};

}  // namespace HOLDFAST_NAMESPACE::sql::odbc
