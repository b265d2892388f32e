#pragma once

/// \file
/// From the URL of an SQL database to the driver that connects to it.

#include <holdfast/version.hpp>

#include "sql/public_names.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::sql {

/// Login and time limits; `database_options` has the same fields for users.
struct connect_options {
  std::chrono::milliseconds connect_timeout = std::chrono::seconds(5);
  std::chrono::milliseconds statement_timeout = std::chrono::seconds(10);
  std::chrono::milliseconds keepalive = std::chrono::seconds(30);  ///< see pool_options
  std::string user{};                                              ///< replaces the one in the URL
  std::string password{};                                          ///< replaces the one in the URL
  std::string password_file{};  ///< its first line is the password
};

/// Returns the factory of connections to the database of a URL. Throws errc::invalid_argument if
/// the URL is invalid, or if this build does not support that kind of database. Does not connect.
[[nodiscard]] HOLDFAST_API connection_factory connector(std::string_view url,
                                                        const connect_options& options);

/// Returns the dialect that the scheme of a URL implies; `mysql` also for MariaDB. Nothing if only
/// the server knows it, as for `odbc:`. Does not connect.
[[nodiscard]] HOLDFAST_API std::optional<dialect_id> dialect_of_url(std::string_view url);

}  // namespace HOLDFAST_NAMESPACE::detail::sql
