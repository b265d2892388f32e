#pragma once

/// \file
/// Parameters and values of SQLite. A time is stored as an integer: microseconds since 1970.

#include <holdfast/version.hpp>

#include "sql/public_names.hpp"

struct sqlite3_stmt;

namespace HOLDFAST_NAMESPACE::detail::sql::sqlite {

/// Binds a value to the parameter with this number, counted from 1, and returns SQLite's result
/// code. Does not copy: the value must live until the statement was run.
[[nodiscard]] int bind_parameter(sqlite3_stmt* statement, int number, const parameter& value);

/// Reads a column of the current row. SQLite stores any value in any column: text in the place of a
/// number or a time is read as NULL.
[[nodiscard]] value read_value(sqlite3_stmt* statement, int column, type expected);

}  // namespace HOLDFAST_NAMESPACE::detail::sql::sqlite
