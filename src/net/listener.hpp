#pragma once

/// \file
/// Sockets that accept connections: TCP, Unix, and those that a service manager passed on.

#include <holdfast/version.hpp>

#include "net/event_loop.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::net {

/// A socket that listens. Owns it, and the file of a Unix socket that it made.
/// Thread-safety: immutable, apart from the move.
class listening_socket {
 public:
  /// Several sockets of a process may have the same address, one for each loop.
  enum class sharing : std::uint8_t {
    none,
    first,  ///< the address must be free: not shared by another process either
    next    ///< another socket of this process has it
  };
  struct options {
    sharing port = sharing::none;
    int backlog = 511;
    /// Of the file of a Unix socket.
    unsigned mode = 0600;
  };

  /// `host:port`, where the port may be 0, or a path that begins with a slash. An existing Unix
  /// socket is replaced if no process accepts on it. Throws errc::invalid_argument if the text is
  /// not an address of this machine, errc::unavailable if it cannot be used.
  [[nodiscard]] static listening_socket open(const std::string& address, const options& options);
  /// Returns the sockets that a service manager passed on (LISTEN_PID, LISTEN_FDS), and removes the
  /// variables. Throws errc::invalid_argument if a descriptor is not a socket that listens.
  [[nodiscard]] static std::vector<listening_socket> inherited();

  listening_socket(listening_socket&& other) noexcept;
  listening_socket& operator=(listening_socket&&) = delete;
  ~listening_socket();

  [[nodiscard]] int descriptor() const noexcept { return socket_; }
  /// With the port that the system chose.
  [[nodiscard]] const std::string& address() const noexcept { return address_; }
  [[nodiscard]] bool is_tcp() const noexcept { return !address_.starts_with('/'); }

 private:
  explicit listening_socket(int socket);
  int socket_ = -1;
  std::string address_{};
  std::string path_{};  // to be removed
};

/// Accepts connections on a loop.
/// Thread-safety: used on the thread of the loop only.
class acceptor final : public event_handler {
 public:
  /// `accept(socket)` owns the socket. It must not throw. The socket must outlive the acceptor. If
  /// the process has no descriptors left, `accept(-1)` is called: it may free some. Then accepting
  /// pauses for 100 ms.
  acceptor(event_loop& loop, const listening_socket& socket, std::function<void(int)> accept);
  void on_events(std::uint32_t events) override;

 private:
  event_loop& loop_;
  int socket_;
  std::function<void(int)> accept_;
  timer pause_;
  registration registration_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::net
