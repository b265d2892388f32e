#pragma once

/// \file
/// Reads server_facts and table_facts from the catalog of a database. The queries need only the
/// rights of an ordinary user.

#include "store/doctor/database_facts.hpp"

#include <string>

namespace HOLDFAST_NAMESPACE::detail::store {

/// Returns whether there are catalog queries for this dialect.
[[nodiscard]] bool has_catalog_queries(sql::dialect_id dialect) noexcept;

/// Throw errc::unsupported_type if there are no queries for the dialect, and what the connection
/// throws.
[[nodiscard]] server_facts query_server(sql::connection& connection, sql::dialect_id dialect);
[[nodiscard]] table_facts query_table(sql::connection& connection, sql::dialect_id dialect,
                                      const std::string& name);

}  // namespace HOLDFAST_NAMESPACE::detail::store
