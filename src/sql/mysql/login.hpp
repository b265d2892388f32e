#pragma once

#include <holdfast/version.hpp>

#include "sql/mysql/connection.hpp"

#include <string>

struct st_mysql;

namespace HOLDFAST_NAMESPACE::detail::sql::mysql {

/// Sets the options of a handle that is not connected yet: protocol, TLS, login methods, timeouts.
void configure(st_mysql* handle, const mysql_options& options);

/// Host and port, or the path of the socket, for messages.
[[nodiscard]] std::string address_of(const mysql_options& options);

/// How a connection with these options is protected. The session refuses to connect with less.
[[nodiscard]] transport_kind transport_of(const mysql_options& options);

}  // namespace HOLDFAST_NAMESPACE::detail::sql::mysql
