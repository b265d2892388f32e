#pragma once

/// \file
/// The connection string that the ODBC driver manager is given, and what it must not contain.

#include <holdfast/version.hpp>

#include "sql/odbc_connection.hpp"
#include "sql/odbc_values.hpp"

#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::sql::odbc {

/// Whether the string has a password of its own, in `PWD=` or `Password=`.
[[nodiscard]] bool has_password(std::string_view connection_string);

/// The caller's string with user and password added, for the caller to wipe. Its length fits SQLSMALLINT.
///
/// Throws errc::too_large above 32,767 UTF-16 units, the most that ODBC can be told, and errc::invalid_argument when the string could load
/// code into this process or write a file: a path in `Driver=`, `FILEDSN=` or any attribute that is not known to name data, a server or a
/// credential, and attributes such as `LoadExt=`, `PLUGIN_DIR=` and `DumpFile=` whatever their value is. Drivers and data sources are named
/// as odbcinst.ini and odbc.ini do. The environment variable HOLDFAST_ODBC_FILES=1 allows all of it, for machines where nothing can be
/// registered. Messages contain no part of the string.
[[nodiscard]] HOLDFAST_API std::vector<SQLWCHAR> complete_connection_string(const odbc_options& options);

}  // namespace HOLDFAST_NAMESPACE::sql::odbc
