#pragma once

#include <holdfast/sql.hpp>
#include <holdfast/store.hpp>
#include <holdfast/version.hpp>

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

}  // namespace HOLDFAST_NAMESPACE::detail::store
