#pragma once

/// \file
/// Converts failures of H2 to holdfast::error. Its SQLSTATEs are partly those of PostgreSQL, partly
/// those of ODBC, and partly its own (five digits from 90000).

#include <holdfast/error.hpp>
#include <holdfast/version.hpp>

#include "sql/postgres/errors.hpp"

namespace HOLDFAST_NAMESPACE::detail::sql::h2 {

[[nodiscard]] error to_error(const postgres::server_message& message);

}  // namespace HOLDFAST_NAMESPACE::detail::sql::h2
