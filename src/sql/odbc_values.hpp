#pragma once

#include <holdfast/sql.hpp>
#include <holdfast/version.hpp>

#include <sql.h>
#include <sqlext.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Our values as ODBC takes and gives them. Text is UTF-16, whatever the locale of the process.
namespace HOLDFAST_NAMESPACE::sql::odbc {

/// Values of more than this travel in pieces while the statement runs.
inline constexpr std::size_t large_value = std::size_t{64} << 10U;

/// Throws errc::ill_formed_text.
[[nodiscard]] std::vector<SQLWCHAR> to_wide(std::string_view text);
[[nodiscard]] std::string from_wide(std::span<const SQLWCHAR> text);

/// How values travel on one connection.
struct habits {
  bool times_as_numbers = false;  ///< SQLite: microseconds since 1970, as its own driver stores them
  bool numbers_as_text = false;   ///< Oracle's driver knows no 64-bit integers
};

/// One parameter of a statement, for one row or for many: an array with elements of equal size. It owns all it holds: a driver that hangs
/// may look at it long after its caller has gone.
class column {
 public:
  /// Throws errc::invalid_argument (a value of another type), errc::out_of_range (a time before the year 1), errc::ill_formed_text.
  column(type declared, std::span<const parameter> values, const habits& how);

  /// In pieces, at execution: one row with a large value.
  [[nodiscard]] bool in_pieces() const noexcept { return in_pieces_; }
  /// As parameter `number` of a statement. The result of SQLBindParameter.
  SQLRETURN bind(SQLHSTMT to, SQLUSMALLINT number);
  /// Sends the pieces. The result of the last SQLPutData.
  SQLRETURN put(SQLHSTMT to) const;
  /// Whether SQLParamData asks for this one.
  [[nodiscard]] bool is_asked_for(SQLPOINTER token) const noexcept { return token == this; }

 private:
  void add_element(const void* data, std::size_t length);
  void fill(std::span<const std::vector<SQLWCHAR>> texts);

  SQLSMALLINT c_type_ = SQL_C_WCHAR;
  SQLSMALLINT sql_type_ = SQL_WVARCHAR;
  SQLULEN size_ = 1;
  SQLSMALLINT digits_ = 0;
  std::size_t stride_ = 0;
  bool in_pieces_ = false;
  std::vector<char> data_{};
  std::vector<SQLLEN> lengths_{};
  SQLLEN at_execution_ = 0;
};

/// A column as the text of a PostgreSQL array: `{"a",NULL}`.
[[nodiscard]] std::string array_text(type declared, std::span<const parameter> values);

/// Bytes that a value takes in an array, about.
[[nodiscard]] std::size_t size_of(const parameter& value) noexcept;

/// Reads a column of the current row. `failed` is what the driver answered when it is no success.
[[nodiscard]] value read(SQLHSTMT from, SQLUSMALLINT column, type wanted, const habits& how, SQLRETURN& failed);

}  // namespace HOLDFAST_NAMESPACE::sql::odbc
