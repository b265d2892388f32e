#pragma once

#include <holdfast/sql.hpp>
#include <holdfast/store.hpp>
#include <holdfast/version.hpp>

#include "sql/schema_set.hpp"

#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::store {

/// Returns the statements that create the entry table of one realm and its index if they do not
/// exist, the table first. (`store_schema` also creates the lease table.) The table is
/// `<prefix>FAILOVER_STORE`; a prefix may contain qualifiers, as in `schema.` or `schema.acme_`.
/// Throws errc::invalid_argument for an unknown dialect.
[[nodiscard]] std::vector<std::string> entries_schema(sql::dialect_id dialect,
                                                      const std::string& prefix,
                                                      payload_column payload);

/// The tables of a store: one set for each realm. Its version is 1, and the published columns of
/// FAILOVER_STORE never change, because a Java library may share the table. Throws
/// errc::invalid_argument for an invalid prefix.
[[nodiscard]] HOLDFAST_API std::vector<sql::schema_set> schema_sets(const store_options& options);

}  // namespace HOLDFAST_NAMESPACE::detail::store
