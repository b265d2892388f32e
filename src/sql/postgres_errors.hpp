#pragma once

#include <holdfast/error.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

/// What a failure of PostgreSQL means to a caller: SQLSTATE in, holdfast::error out. Needs no libpq.
namespace HOLDFAST_NAMESPACE::sql::postgres {

/// The parts of an error response that may be shown. The detail and the hint are not among them: they repeat values.
struct server_message {
  std::string_view sqlstate;
  std::string_view text{};
  std::string_view function{};  ///< of the server's source, the same in every language
};

/// An answer, hence never in doubt, except for the two codes by which a server says that it does not know itself.
[[nodiscard]] error from_server(const server_message& from);

/// Nobody answered. `sqlstate` is what the server said when it hung up, if it said anything.
[[nodiscard]] error connection_lost(bool in_doubt, std::string_view sqlstate, std::string_view server = "PostgreSQL");
[[nodiscard]] error out_of_time(std::chrono::milliseconds limit, bool in_doubt, std::string_view server = "PostgreSQL");
/// The server sent more than `most` bytes of memory can hold.
[[nodiscard]] error answer_too_large(std::size_t most, bool in_doubt, std::string_view server = "PostgreSQL");

/// From libpq's account of the attempts, one or more lines each, with SQLSTATEs where a server answered (verbose errors).
/// `where` is host and port; no text with `secret` in it is passed on.
[[nodiscard]] error could_not_connect(const std::string& where, std::string_view account, std::string_view secret,
                                      std::string_view server = "PostgreSQL");

}  // namespace HOLDFAST_NAMESPACE::sql::postgres
