#pragma once

/// \file
/// MariaDB and MySQL: INSERT statements with VALUES, for 64, 16, 4 and 1 rows. A row_list would be
/// slower there: JSON_TABLE writes rows with long texts to a temporary table on disk.

#include <holdfast/version.hpp>

#include "outbox/sql/statement.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::outbox {

/// Thread-safety: every function may be called from any thread.
class row_inserts {
 public:
  /// `insert` ends with VALUES, `row` is one row with a `?` for each value, and `conflict` comes
  /// after the rows. `columns` are the types of the values of a row.
  row_inserts(const statement_builder& builder, std::string_view insert, std::string_view row,
              std::string_view conflict, std::vector<sql::type> columns);

  /// Inserts rows whose values stand one after the other. Returns the number of changed rows.
  std::uint64_t insert(const lane_session& session, std::span<const sql::parameter> values) const;

 private:
  struct sized_statement {
    std::size_t values;
    sql::statement text;
  };
  std::vector<sized_statement> statements_{};  ///< the largest first
};

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
