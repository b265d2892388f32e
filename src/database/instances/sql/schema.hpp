#pragma once

#include <holdfast/version.hpp>

#include "sql/schema_set.hpp"

#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::instances {

/// | table | rows |
/// | --- | --- |
/// | {prefix}HOLDFAST_INSTANCE | one for each reporter: its last report |
/// | {prefix}HOLDFAST_COMMAND | one for each command of an operator |
///
/// All times are microseconds since 1970 by the clock of the database. Throws
/// errc::invalid_argument for an invalid prefix.
[[nodiscard]] HOLDFAST_API sql::schema_set instance_tables_schema(std::string_view prefix);

}  // namespace HOLDFAST_NAMESPACE::detail::instances
