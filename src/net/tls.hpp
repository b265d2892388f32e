#pragma once

/// \file
/// TLS over a connected socket, with OpenSSL. Writes use send(MSG_NOSIGNAL), because OpenSSL's own
/// socket functions raise SIGPIPE.

#include <holdfast/tls.hpp>

#include "net/byte_stream.hpp"

#include <memory>
#include <span>
#include <string>
#include <string_view>

using SSL_CTX = struct ssl_ctx_st;
using SSL = struct ssl_st;

namespace HOLDFAST_NAMESPACE::detail::net {

/// The certificates and rules that all connections of a client share. TLS 1.2 or later.
/// Thread-safety: immutable.
class tls_context {
 public:
  /// Throws errc::invalid_argument if a file cannot be read.
  explicit tls_context(const tls_options& options);

  [[nodiscard]] SSL_CTX* get() const noexcept { return context_.get(); }
  [[nodiscard]] const tls_options& options() const noexcept { return options_; }

 private:
  struct deleter {
    void operator()(SSL_CTX* context) const noexcept;
  };
  tls_options options_;
  std::unique_ptr<SSL_CTX, deleter> context_;
};

/// TLS on one connection.
/// Thread-safety: none.
class tls_session {
 public:
  /// Does not own the socket. `peer` describes the server in messages. Throws
  /// errc::invalid_argument if the host of the address cannot be compared with a certificate.
  tls_session(const tls_context& context, int socket, const std::string& address, std::string peer);
  tls_session(const tls_session&) = delete;
  tls_session& operator=(const tls_session&) = delete;

  /// Continues the handshake. Returns the events to poll for, or 0 when it is done. Throws
  /// errc::permission if the certificate is not accepted, errc::unavailable if the server closes
  /// the connection (transient) or does not speak TLS.
  [[nodiscard]] short handshake();
  [[nodiscard]] io_result write(std::string_view bytes);
  [[nodiscard]] io_result read(std::span<char> buffer);
  /// Returns true if the server has sent no data and has not closed the session.
  [[nodiscard]] bool is_idle() noexcept;
  [[nodiscard]] const std::string& close_reason() const noexcept { return close_reason_; }

 private:
  struct deleter {
    void operator()(SSL* session) const noexcept;
  };
  io_result result_of(int returned, std::size_t bytes);

  int socket_;  // the BIO refers to this member
  bool verify_;
  std::string peer_;
  std::unique_ptr<SSL, deleter> session_;
  std::string close_reason_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::net
