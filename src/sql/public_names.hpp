#pragma once

/// \file
/// Makes the public names of holdfast/sql.hpp visible in holdfast::detail::sql. Every header of
/// that namespace includes this file, so that `sql::statement` names the public type also in code
/// inside holdfast::detail, where `sql` is the private namespace.

#include <holdfast/sql.hpp>
#include <holdfast/version.hpp>

namespace HOLDFAST_NAMESPACE::detail::sql {

using namespace ::holdfast::sql;

}  // namespace HOLDFAST_NAMESPACE::detail::sql
