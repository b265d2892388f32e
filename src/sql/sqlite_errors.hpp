#pragma once

#include <holdfast/error.hpp>
#include <holdfast/version.hpp>

#include <string>

/// What a failure of SQLite means to a caller: result code in, holdfast::error out. Needs no SQLite.
namespace HOLDFAST_NAMESPACE::sql {

/// `extended`: an extended result code. Never in doubt; who commits knows better.
[[nodiscard]] error sqlite_error(int extended, const std::string& message);

}  // namespace HOLDFAST_NAMESPACE::sql
