#pragma once

/// \file
/// Connects to a host that may have several addresses, or to a Unix socket. Only resolving a host
/// name blocks.

#include <holdfast/error.hpp>

#include "net/poll_timeout.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <cstddef>
#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::net {

/// One address of a host, as the socket functions need it.
struct socket_address {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

/// Returns all addresses of `host:port`, or the address of a socket path. Resolving a name blocks;
/// how long is up to the system. `peer` describes the server in messages: `Redis at host:port`.
/// Throws errc::unavailable (transient).
[[nodiscard]] HOLDFAST_API std::vector<socket_address> resolve(const std::string& address,
                                                               const std::string& peer);

/// Tries addresses in their order and returns the first socket that connects. When an address is
/// silent, the dialer tries the next one in parallel after a delay; when an address refuses, it
/// tries the next one at once (RFC 8305, "happy eyeballs").
/// Thread-safety: none.
class HOLDFAST_API dialer {
 public:
  /// `peer` describes the server in messages.
  dialer(std::string peer, std::vector<socket_address> addresses, steady::time_point deadline);
  ~dialer();
  dialer(const dialer&) = delete;
  dialer& operator=(const dialer&) = delete;

  /// Checks the attempts under way and starts new ones that are due. Returns the connected socket,
  /// which the caller owns, or -1 if none is connected yet. Throws errc::unavailable or
  /// errc::timeout (transient) when all addresses have failed, or the deadline has passed.
  [[nodiscard]] int advance();
  /// Adds the sockets to poll before the next call of `advance`.
  void add_polls(std::vector<pollfd>& polls) const;
  /// Returns when to call `advance` even if no socket is ready.
  [[nodiscard]] steady::time_point wake_at() const noexcept;

 private:
  [[nodiscard]] int start_next();
  [[nodiscard]] int find_connected();
  [[noreturn]] void fail(int error_number) const;

  std::string peer_;
  std::vector<socket_address> addresses_;
  steady::time_point deadline_;
  steady::duration delay_{};  // between attempts, while earlier ones are silent
  std::size_t next_ = 0;      // index of the next address to try
  steady::time_point next_at_{};
  std::vector<int> pending_{};  // sockets that are connecting
  int last_error_ = 0;
};

}  // namespace HOLDFAST_NAMESPACE::detail::net
