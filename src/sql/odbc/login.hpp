#pragma once

/// \file
/// The connection string for the ODBC driver manager.

#include <holdfast/version.hpp>

#include "sql/odbc/connection.hpp"
#include "sql/odbc/values.hpp"

#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::sql::odbc {

/// Whether the string contains a password, in `PWD=` or `Password=`.
[[nodiscard]] bool has_password(std::string_view connection_string);

/// Adds user and password to the caller's string. The caller has to wipe the result. Its length
/// fits SQLSMALLINT.
///
/// Throws errc::too_large above 32,767 UTF-16 units, the most that ODBC accepts.
///
/// Throws errc::invalid_argument if the string could load code into this process or write a file:
/// a path in `Driver=`, `FILEDSN=` or any attribute that is not known to name data, a server or a
/// credential, and attributes such as `LoadExt=`, `PLUGIN_DIR=` and `DumpFile=` with any value.
/// Drivers and data sources have the names of odbcinst.ini and odbc.ini instead. The environment
/// variable HOLDFAST_ODBC_FILES=1 allows all of it, for machines where nothing can be registered.
/// Messages contain no part of the string.
[[nodiscard]] HOLDFAST_API std::vector<SQLWCHAR> complete_connection_string(
    const odbc_options& options);

}  // namespace HOLDFAST_NAMESPACE::detail::sql::odbc
