#pragma once

#include <holdfast/version.hpp>

#include "sql/public_names.hpp"

#include <string>

namespace HOLDFAST_NAMESPACE::detail::sql {

/// An expression for the server's time in microseconds since 1970. All dialects can compare and add
/// such numbers.
[[nodiscard]] HOLDFAST_API std::string server_microseconds(dialect_id dialect);

}  // namespace HOLDFAST_NAMESPACE::detail::sql
