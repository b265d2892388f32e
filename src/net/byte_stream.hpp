#pragma once

/// \file
/// A stream of bytes to a server over a TCP or Unix socket, with or without TLS. No function blocks
/// except the constructor: one that cannot proceed says what to wait for.

#include <holdfast/error.hpp>

#include "net/poll_timeout.hpp"

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::net {

class dialer;
class tls_context;
class tls_session;

enum class io_status : std::uint8_t {
  done,        ///< some bytes were transferred
  wait_read,   ///< wait until the socket is readable
  wait_write,  ///< wait until the socket is writable
  closed       ///< the stream has ended; `close_reason` says why
};

struct io_result {
  io_status status = io_status::done;
  std::size_t bytes = 0;
  bool in_order = false;  ///< if closed: the peer ended the stream itself, and nothing was cut off
};

struct stream_options {
  /// What the server is, for messages: `Redis` gives "cannot connect to Redis at host:port".
  std::string_view service{};
  /// Idle time before TCP keep-alive probes; 0 disables them.
  std::chrono::seconds keep_alive{};
  /// Null: no TLS. Must outlive the stream.
  const tls_context* tls = nullptr;
};

/// Thread-safety: none.
class HOLDFAST_API byte_stream {
 public:
  /// Resolves the host, which blocks as long as the system needs, regardless of the deadline.
  /// Throws errc::unavailable (transient).
  byte_stream(const std::string& address, const stream_options& options,
              steady::time_point deadline);
  ~byte_stream();
  byte_stream(const byte_stream&) = delete;
  byte_stream& operator=(const byte_stream&) = delete;

  /// Continues to connect, TLS included. Returns true when that is done. Throws errc::unavailable
  /// or errc::timeout (both transient), or errc::permission if the certificate is not accepted.
  [[nodiscard]] bool set_up();
  /// While `set_up` is not done: adds the sockets to poll before the next call of it.
  void add_polls(std::vector<pollfd>& polls) const;
  /// While `set_up` is not done: when to call it even if no socket is ready.
  [[nodiscard]] steady::time_point wake_at() const noexcept;

  /// Returns true while `set_up` waits for the handshake of TLS.
  [[nodiscard]] bool in_handshake() const noexcept { return handshake_events_ != 0; }
  [[nodiscard]] bool uses_tls() const noexcept { return tls_context_ != nullptr; }

  [[nodiscard]] io_result write(std::string_view bytes);
  [[nodiscard]] io_result read(std::span<char> buffer);
  [[nodiscard]] const std::string& close_reason() const noexcept { return close_reason_; }
  /// Returns true if the server is still connected and has sent nothing. Check it before a
  /// connection is used again.
  [[nodiscard]] bool is_idle() noexcept;
  [[nodiscard]] int descriptor() const noexcept { return socket_; }
  /// After fork, in the child: closes the child's descriptor and sends nothing, because the server
  /// is connected to the parent.
  void abandon() noexcept;

 private:
  void use_socket(int socket);

  std::string address_;
  std::string peer_;  // for messages: `Redis at host:port`
  std::chrono::seconds keep_alive_;
  const tls_context* tls_context_;
  steady::time_point deadline_;     // of set_up
  std::unique_ptr<dialer> dialer_;  // until the socket is connected
  int socket_ = -1;
  std::unique_ptr<tls_session> tls_{};
  short handshake_events_ = 0;  // what the TLS handshake waits for; 0 when it is done
  std::string close_reason_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::net
