#pragma once

/// \file
/// Reads the result of a statement from libpq. Shared by the drivers of PostgreSQL and H2.

#include <holdfast/version.hpp>

#include "sql/answer_limits.hpp"
#include "sql/driver_support.hpp"
#include "sql/postgres/errors.hpp"

#include <libpq-fe.h>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::sql::postgres {

/// Reads the number of affected rows and, if `columns` is not 0, the rows. `read_value` gets the
/// index of a column and its bytes, or nullopt for NULL; a NUL byte follows the bytes.
/// Throws errc::invalid_argument if the result has another number of columns, errc::too_large if
/// its values need more than largest_result.
template <class ReadValue>
[[nodiscard]] outcome read_result(PGresult* result, std::size_t columns, ReadValue read_value) {
  outcome total{.rows = rows(columns)};
  const std::string_view affected = PQcmdTuples(result);  // empty for statements such as BEGIN
  std::from_chars(affected.data(), affected.data() + affected.size(), total.affected);
  if (columns == 0) return total;  // the caller does not need the rows
  check_column_count(static_cast<std::size_t>(PQnfields(result)), columns);
  const int row_count = PQntuples(result);
  // A NULL has four bytes on the wire and is a whole value here.
  if (static_cast<std::size_t>(row_count) > largest_result / (columns * sizeof(value)))
    throw answer_too_large(largest_result, loss::harmless, "the server");
  total.rows.reserve(static_cast<std::size_t>(row_count));
  for (int row = 0; row < row_count; ++row) {
    for (int column = 0; column < static_cast<int>(columns); ++column) {
      std::optional<std::string_view> bytes;
      if (PQgetisnull(result, row, column) == 0)
        bytes.emplace(PQgetvalue(result, row, column),
                      static_cast<std::size_t>(PQgetlength(result, row, column)));
      total.rows.add(read_value(static_cast<std::size_t>(column), bytes));
    }
  }
  return total;
}

}  // namespace HOLDFAST_NAMESPACE::detail::sql::postgres
