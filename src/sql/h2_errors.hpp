#pragma once

#include <holdfast/error.hpp>
#include <holdfast/version.hpp>

#include "sql/postgres_errors.hpp"

/// What a failure of H2 means to a caller. Its SQLSTATEs are partly PostgreSQL's, partly ODBC's, partly its own (five digits from 90000 on).
namespace HOLDFAST_NAMESPACE::sql::h2 {

[[nodiscard]] error from_server(const postgres::server_message& from);

}  // namespace HOLDFAST_NAMESPACE::sql::h2
