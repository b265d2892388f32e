#pragma once

#include <holdfast/version.hpp>

#include "sql/public_names.hpp"

#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::sql {

/// Checks the prefix of the table names: letters, digits, underscores, and dots between qualifiers.
/// Throws errc::invalid_argument for other characters: the prefix becomes a part of SQL text.
HOLDFAST_API void check_table_prefix(std::string_view prefix);

}  // namespace HOLDFAST_NAMESPACE::detail::sql
