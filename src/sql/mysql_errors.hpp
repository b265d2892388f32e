#pragma once

#include <holdfast/error.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

/// What a failure of MySQL or MariaDB means to a caller: error number in, holdfast::error out. Needs no client library.
namespace HOLDFAST_NAMESPACE::sql::mysql {

/// What the server said, or what the client library says about it (numbers from 2000).
struct server_message {
  unsigned number = 0;
  std::string_view sqlstate{};
  std::string_view text{};
};

/// After these nobody listens at the other end, or nobody knows what comes next.
[[nodiscard]] bool ends_connection(unsigned number) noexcept;
/// After these what was done in the transaction is gone, or may be: the server does not always say.
[[nodiscard]] bool ends_transaction(unsigned number) noexcept;
/// The statement must be prepared again.
[[nodiscard]] bool ends_statement(unsigned number) noexcept;

/// `sent_change`: something that may change data was under way, which puts a lost connection in doubt; an answer never is.
/// A text that contains `secret` is not passed on.
[[nodiscard]] error from_server(const server_message& from, bool sent_change, std::string_view secret);

/// Nobody answered in time.
[[nodiscard]] error out_of_time(std::chrono::milliseconds limit, bool sent_change);

/// The server sent more than `most` bytes of memory can hold.
[[nodiscard]] error answer_too_large(std::size_t most, bool sent_change);

/// The server hung up while the connection was idle: nothing was sent.
[[nodiscard]] error hung_up();
/// An earlier failure broke the connection: nothing was sent.
[[nodiscard]] error already_broken();

/// `where` is host and port, or the socket.
[[nodiscard]] error could_not_connect(const std::string& where, const server_message& from, std::string_view secret);
/// TLS was required and the server offers none.
[[nodiscard]] error without_tls(const std::string& where);
/// What listens there does not speak the protocol.
[[nodiscard]] error not_a_server(const std::string& where);
[[nodiscard]] error could_not_connect_in_time(const std::string& where, std::chrono::milliseconds limit);

}  // namespace HOLDFAST_NAMESPACE::sql::mysql
