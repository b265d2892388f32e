#pragma once

/// \file
/// What every driver says of a column that must not be NULL, and is. Whoever knows what was written can tell from it whose fault that is.

#include <holdfast/error.hpp>

#include <string_view>

namespace HOLDFAST_NAMESPACE::sql {

/// With the mark of the drivers' tables for "instead of the server's own words", and without.
inline constexpr std::string_view unfilled_column_alone =
    "=a column that is not ours must be filled; give the column a default, or let it be NULL";
inline constexpr std::string_view unfilled_column = unfilled_column_alone.substr(1);

[[nodiscard]] inline bool is_unfilled_column(const error& e) {
  return e.code() == errc::missing_object && e.message().find(unfilled_column) != std::string_view::npos;
}

}  // namespace HOLDFAST_NAMESPACE::sql
