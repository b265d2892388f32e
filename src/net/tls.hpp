#pragma once

/// \file
/// TLS over a connected socket, with OpenSSL. Writes use send(MSG_NOSIGNAL), because OpenSSL's own
/// socket functions raise SIGPIPE.

#include <holdfast/tls.hpp>

#include "net/byte_stream.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

using SSL_CTX = struct ssl_ctx_st;
using SSL = struct ssl_st;

namespace HOLDFAST_NAMESPACE::detail::net {

/// The certificates and rules that all connections of a client share. TLS 1.2 or later.
/// Thread-safety: immutable.
class HOLDFAST_API tls_context {
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

/// The certificate of a server.
struct tls_server_options {
  /// File with the certificate and its chain.
  std::string certificate{};
  /// File with its private key.
  std::string key{};
  /// File with the issuers of client certificates. Set it to require one from each client.
  std::string client_ca{};
  /// Messages name the options as `section.certificate`.
  std::string section = "tls";
};

/// What a server knows of a client that has shown a certificate of a trusted issuer.
struct peer_certificate {
  /// Alternative names of the subject as `dns:host` in lower case, `uri:text` and `email:text`;
  /// common names as `cn:text`.
  std::vector<std::string> names{};
  /// `sha256:` and 64 hexadecimal digits in lower case.
  std::string fingerprint{};
  /// It is not valid any more from the second after this one.
  std::chrono::sys_seconds not_after{};
};

/// What all connections of a server share. TLS 1.2 or later. If a client offers application
/// protocols, `http/1.1` must be one of them.
/// Thread-safety: immutable.
class HOLDFAST_API tls_server_context {
 public:
  /// Throws errc::invalid_argument if a file cannot be read, or the key does not belong to the
  /// certificate.
  explicit tls_server_context(const tls_server_options& options);

  [[nodiscard]] SSL_CTX* get() const noexcept { return context_.get(); }
  [[nodiscard]] bool requires_client_certificate() const noexcept;
  /// The certificate is not valid any more from the second after this one. Empty if it does not
  /// say so in a form that can be read.
  [[nodiscard]] std::optional<std::chrono::sys_seconds> not_after() const;

 private:
  struct deleter {
    void operator()(SSL_CTX* context) const noexcept;
  };
  std::unique_ptr<SSL_CTX, deleter> context_;
};

/// TLS on one connection.
/// Thread-safety: none.
class HOLDFAST_API tls_session {
 public:
  /// Does not own the socket. `peer` describes the server in messages. Throws
  /// errc::invalid_argument if the host of the address cannot be compared with a certificate.
  tls_session(const tls_context& context, int socket, const std::string& address, std::string peer);
  /// The session of a connection that a server accepted.
  tls_session(const tls_server_context& context, int socket, std::string peer);
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
  /// Tells the peer that nothing more is sent. Does not wait, and ignores errors.
  void send_close() noexcept;
  [[nodiscard]] const std::string& close_reason() const noexcept { return close_reason_; }
  /// After the handshake of a server: the certificate of the client, or null if it showed none.
  [[nodiscard]] std::unique_ptr<const peer_certificate> client_certificate() const;

 private:
  void use_socket();

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
