#pragma once

/// \file
/// Converts failures of MySQL and MariaDB to holdfast::error. Does not need the client library.

#include <holdfast/error.hpp>
#include <holdfast/version.hpp>

#include "sql/call_deadline.hpp"

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::sql::mysql {

/// The error of the server, or of the client library (numbers from 2000 to 2999).
struct server_message {
  unsigned number = 0;
  std::string_view sqlstate{};
  std::string_view text{};
};

/// Whether the connection cannot be used after this error.
[[nodiscard]] bool ends_connection(unsigned number) noexcept;
/// Whether the server has, or may have, rolled back the transaction. It does not always tell.
[[nodiscard]] bool ends_transaction(unsigned number) noexcept;
/// Whether the statement must be prepared again.
[[nodiscard]] bool ends_statement(unsigned number) noexcept;

/// The error for a failed call. It is in doubt if the connection was lost and `on_loss` says so.
/// Server text that contains `secret` is not shown.
[[nodiscard]] error to_error(const server_message& message, loss on_loss, std::string_view secret);

[[nodiscard]] error timed_out(std::chrono::milliseconds limit, loss on_loss);
/// The answer needs more than `limit` bytes of memory.
[[nodiscard]] error answer_too_large(std::size_t limit, loss on_loss);
[[nodiscard]] error closed_while_idle();
[[nodiscard]] error already_broken();

/// `address` is host and port, or the path of the socket.
[[nodiscard]] error could_not_connect(const std::string& address, const server_message& message,
                                      std::string_view secret);
[[nodiscard]] error could_not_connect_in_time(const std::string& address,
                                              std::chrono::milliseconds limit);
/// TLS is required, but the server does not offer it.
[[nodiscard]] error without_tls(const std::string& address);
/// The first packet does not belong to the protocol.
[[nodiscard]] error not_a_server(const std::string& address);

}  // namespace HOLDFAST_NAMESPACE::detail::sql::mysql
