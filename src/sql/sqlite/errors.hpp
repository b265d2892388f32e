#pragma once

/// \file
/// Converts result codes of SQLite to holdfast::error. Does not need SQLite.

#include <holdfast/error.hpp>
#include <holdfast/version.hpp>

#include "sql/public_names.hpp"

#include <string>

namespace HOLDFAST_NAMESPACE::detail::sql::sqlite {

/// `message` is that of sqlite3_errmsg. The error is never in doubt: only the caller knows whether
/// it was committing.
[[nodiscard]] error to_error(int extended_code, const std::string& message);

}  // namespace HOLDFAST_NAMESPACE::detail::sql::sqlite
