#pragma once

#include <holdfast/version.hpp>

#include <string_view>

namespace HOLDFAST_NAMESPACE::sql {

/// What may stand in front of the names of our tables: letters, digits, underscores, and dots between qualifiers. Throws errc::invalid_argument for a
/// prefix that could be more than a name.
HOLDFAST_API void check_table_prefix(std::string_view prefix);

}  // namespace HOLDFAST_NAMESPACE::sql
