#pragma once

#include <holdfast/sql.hpp>
#include <holdfast/version.hpp>

#include <functional>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// Calls a function with the connection to the state database of the server, which is a file of
/// SQLite. Throws what the function throws, and errors of the database. Empty: the server has no
/// state database, and what it knows is lost at its end.
/// Thread-safety: may be called from any thread.
using state_access = std::function<void(const std::function<void(sql::connection&)>&)>;

}  // namespace HOLDFAST_NAMESPACE::detail::serve
