#pragma once

#include <holdfast/database.hpp>
#include <holdfast/sql.hpp>
#include <holdfast/version.hpp>

#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE {

/// What creates the table of entries of one realm, and its index, where they are not there: the table first. `store_schema` has the lease's
/// table too. Throws errc::invalid_argument for an unknown dialect.
[[nodiscard]] std::vector<std::string> entries_schema(sql::dialect_id dialect, const std::string& prefix, payload_column payload);

}  // namespace HOLDFAST_NAMESPACE
