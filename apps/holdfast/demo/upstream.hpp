#pragma once

/// \file
/// The upstream of the demonstration: a small HTTP server in another process, which can be killed.

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace holdfast::cli {

/// Answers `GET /rates/<currency>` on loopback with `<currency> <rate>`.
/// Thread-safety: none.
class upstream {
 public:
  /// Starts the server. Throws errc::unavailable.
  explicit upstream(std::string rate);
  upstream(const upstream&) = delete;
  upstream& operator=(const upstream&) = delete;
  ~upstream() { kill(); }

  /// Kills the server with SIGKILL and waits until it has ended.
  void kill() noexcept;
  /// Starts the server again on the same port, with another rate. Throws errc::unavailable.
  void restart(std::string rate);
  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }

 private:
  void start();

  std::string rate_;
  std::uint16_t port_ = 0;
  pid_t child_ = -1;
};

/// Sends a request to a server on loopback, and returns its whole answer. Throws std::runtime_error
/// if the server does not accept the connection.
[[nodiscard]] std::string http_reply(std::uint16_t port, const std::string& request);

/// Sends a request to a server on loopback, and returns the body of its answer. Throws
/// std::runtime_error if there is no answer, or its status is not one of success.
[[nodiscard]] std::string http_exchange(std::uint16_t port, const std::string& request);

/// A GET request of one connection.
[[nodiscard]] std::string get_request(const std::string& path);

/// Returns the body of the answer of a server on loopback. Throws std::runtime_error if there is no
/// answer, or its status is not one of success.
[[nodiscard]] std::string http_get(std::uint16_t port, const std::string& path);

}  // namespace holdfast::cli
