#pragma once

/// \file
/// The upsert of entries in each dialect. All of them have the same guard: a row is replaced only
/// by an entry that is not older, or if its AS_OF is beyond the skew horizon.
///
///     PostgreSQL, SQLite      INSERT ... ON CONFLICT DO UPDATE ... WHERE
///     MySQL, MariaDB          INSERT ... ON DUPLICATE KEY UPDATE, guarded column by column
///     H2, SQL Server, Oracle  MERGE

#include <holdfast/sql.hpp>
#include <holdfast/version.hpp>

#include "store/sql/dialect_expressions.hpp"

#include <string>

namespace HOLDFAST_NAMESPACE::detail::store {

/// Row parameters: name, key, as_of, expire_on, payload, class. Common parameters: the skew
/// horizon, as often as the statement needs it.
[[nodiscard]] sql::batch_statement make_upsert(const std::string& table, sql::type payload,
                                               const time_expressions& time);

}  // namespace HOLDFAST_NAMESPACE::detail::store
