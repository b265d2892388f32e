#pragma once

/// \file
/// A connected socket on an event loop, plain or with TLS. No function blocks.

#include "net/byte_stream.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::net {

class tls_context;
class tls_server_context;
class tls_session;
struct peer_certificate;

/// Owns the socket.
/// Thread-safety: none.
class socket_stream {
 public:
  explicit socket_stream(int socket) noexcept;
  /// Of a server: the client begins the handshake.
  socket_stream(int socket, const tls_server_context& context);
  /// Of a client. `address` has the host that the certificate must have.
  socket_stream(int socket, const tls_context& context, const std::string& address,
                const std::string& peer);
  ~socket_stream();
  socket_stream(const socket_stream&) = delete;
  socket_stream& operator=(const socket_stream&) = delete;

  /// Continues the TLS handshake, if there is one. Returns the epoll events to wait for, or 0 when
  /// it is done. Throws as tls_session::handshake does.
  [[nodiscard]] std::uint32_t handshake();
  [[nodiscard]] bool is_handshaking() const noexcept { return handshaking_; }
  [[nodiscard]] bool has_tls() const noexcept { return tls_ != nullptr; }
  /// As tls_session::client_certificate; null without TLS.
  [[nodiscard]] std::unique_ptr<const peer_certificate> client_certificate() const;
  [[nodiscard]] io_result write(std::string_view bytes);
  /// With TLS, read until the status is not `done`: decrypted bytes make no event.
  [[nodiscard]] io_result read(std::span<char> buffer);
  /// Tells the peer that nothing more is sent. The peer may still send.
  void shut_down_writing() noexcept;
  /// Makes the destructor reset the connection, so that a peer does not take a part for the whole.
  void reset_on_close() noexcept;
  /// Returns true if the peer is still connected and has sent nothing.
  [[nodiscard]] bool is_idle() noexcept;
  [[nodiscard]] int descriptor() const noexcept { return socket_; }
  [[nodiscard]] const std::string& close_reason() const noexcept { return close_reason_; }

 private:
  int socket_;
  bool handshaking_ = false;
  std::unique_ptr<tls_session> tls_{};
  std::string close_reason_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::net
