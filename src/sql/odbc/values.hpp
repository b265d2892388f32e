#pragma once

/// \file
/// Parameters and values of ODBC. Text is UTF-16, whatever the locale of the process.

#include <holdfast/version.hpp>

#include "sql/public_names.hpp"

#include <sql.h>
#include <sqlext.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::sql::odbc {

/// A single value above this size is sent in pieces while the statement runs.
inline constexpr std::size_t large_value = std::size_t{64} << 10U;

/// Throws errc::ill_formed_text if the text is not UTF-8.
[[nodiscard]] std::vector<SQLWCHAR> to_wide(std::string_view text);
[[nodiscard]] std::string from_wide(std::span<const SQLWCHAR> text);

/// How values are sent on one connection.
struct value_format {
  /// SQLite: a time is an integer, microseconds since 1970, as in our own SQLite driver.
  bool times_as_numbers = false;
  /// Oracle: its driver does not support 64-bit integers.
  bool numbers_as_text = false;
};

/// A parameter of a statement, for one row or for many: an array whose elements have equal size. It
/// owns its memory, because a driver that hangs may read it long after the caller has gone.
class bound_parameter {
 public:
  /// Throws errc::invalid_argument (wrong type), errc::out_of_range (a time before the year 1),
  /// errc::ill_formed_text.
  bound_parameter(type declared, std::span<const parameter> values, const value_format& format);

  /// Binds it as parameter `number`, counted from 1. Returns the result of SQLBindParameter.
  SQLRETURN bind(SQLHSTMT statement, SQLUSMALLINT number);
  /// Whether `token`, from SQLParamData, asks for this parameter.
  [[nodiscard]] bool is_requested_by(SQLPOINTER token) const noexcept { return token == this; }
  /// Sends the value in pieces. Returns the result of the last SQLPutData.
  SQLRETURN send_pieces(SQLHSTMT statement) const;

 private:
  void add_numbers(std::span<const parameter> values, type declared);
  void add_times(std::span<const parameter> values);
  void add_bytes(std::span<const parameter> values);
  void add_texts(std::span<const parameter> values, type declared);
  void add_element(const void* data, std::size_t length);

  SQLSMALLINT c_type_ = SQL_C_WCHAR;
  SQLSMALLINT sql_type_ = SQL_WVARCHAR;
  SQLULEN column_size_ = 1;
  SQLSMALLINT decimal_digits_ = 0;
  std::size_t element_size_ = 0;
  bool in_pieces_ = false;
  std::vector<char> elements_{};
  std::vector<SQLLEN> lengths_{};
  SQLLEN length_at_execution_ = 0;
};

/// The values as the text of a PostgreSQL array: `{"a",NULL}`.
[[nodiscard]] std::string array_text(type declared, std::span<const parameter> values);

/// The approximate size of a value in a bound_parameter, in bytes.
[[nodiscard]] std::size_t size_of(const parameter& value) noexcept;

/// Reads a column of the current row. If the driver reports a failure, sets `failure` to its return
/// code.
[[nodiscard]] value read_value(SQLHSTMT statement, SQLUSMALLINT column, type expected,
                               const value_format& format, SQLRETURN& failure);

}  // namespace HOLDFAST_NAMESPACE::detail::sql::odbc
