#pragma once

/// \file
/// Converts failures of PostgreSQL to holdfast::error. Does not need libpq.

#include <holdfast/error.hpp>
#include <holdfast/version.hpp>

#include "sql/call_deadline.hpp"

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::sql::postgres {

/// The fields of an error response that a message may use. DETAIL and HINT are not among them:
/// they repeat values.
struct server_message {
  std::string_view sqlstate;
  std::string_view text{};
  std::string_view function{};  ///< of the server's source code; not translated
  std::string_view column{};
};

/// The error that the server answered with. An answer is not in doubt, except for the two SQLSTATEs
/// with which a server says that it does not know the outcome.
[[nodiscard]] error to_error(const server_message& message);

/// The connection was lost before the answer came. `sqlstate` is the reason that the server sent
/// when it closed the connection, if it sent one.
[[nodiscard]] error connection_lost(loss on_loss, std::string_view sqlstate,
                                    std::string_view server = "PostgreSQL");
/// The server did not answer, and new connections lead to another one.
[[nodiscard]] error server_replaced(loss on_loss, std::string_view server = "PostgreSQL");
[[nodiscard]] error timed_out(std::chrono::milliseconds limit, loss on_loss,
                              std::string_view server = "PostgreSQL");
/// The answer needs more than `limit` bytes of memory.
[[nodiscard]] error answer_too_large(std::size_t limit, loss on_loss,
                                     std::string_view server = "PostgreSQL");

/// `report` is what libpq says about its attempts to connect: one or more lines for each address,
/// with an SQLSTATE where a server answered (PQERRORS_VERBOSE). `address` is host and port. Text
/// that contains `secret` is not shown.
[[nodiscard]] error could_not_connect(const std::string& address, std::string_view report,
                                      std::string_view secret,
                                      std::string_view server = "PostgreSQL");

}  // namespace HOLDFAST_NAMESPACE::detail::sql::postgres
