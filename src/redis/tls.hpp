#pragma once

/// \file
/// TLS over a socket, by OpenSSL. Its writes go through send(MSG_NOSIGNAL): OpenSSL's own would raise SIGPIPE.

#include "redis/wire.hpp"

#include <memory>
#include <span>
#include <string>
#include <string_view>

using SSL_CTX = struct ssl_ctx_st;
using SSL = struct ssl_st;

namespace HOLDFAST_NAMESPACE::redis {

/// What all connections of a client share: certificates and rules. TLS 1.2 or later.
/// Thread-safety: immutable.
class tls_context {
 public:
  /// Throws errc::invalid_argument for files that cannot be read.
  explicit tls_context(const tls_options& options);
  ~tls_context();
  tls_context(const tls_context&) = delete;
  tls_context& operator=(const tls_context&) = delete;

  [[nodiscard]] SSL_CTX* get() const noexcept { return held_; }
  [[nodiscard]] const tls_options& options() const noexcept { return options_; }

 private:
  tls_options options_;
  SSL_CTX* held_ = nullptr;
};

/// One connection.
/// Thread-safety: none.
class tls_session {
 public:
  /// Throws errc::invalid_argument for a host whose name cannot be looked for in a certificate.
  tls_session(const tls_context& context, int socket, const std::string& address);
  ~tls_session();
  tls_session(const tls_session&) = delete;
  tls_session& operator=(const tls_session&) = delete;

  /// Goes on shaking hands. Returns what to wait for, as for poll; 0 when it is done. Throws errc::permission when the certificate is
  /// refused, errc::unavailable when the server closes it (transient) or does not speak TLS.
  [[nodiscard]] short shake();
  [[nodiscard]] step_result write(std::string_view bytes);
  [[nodiscard]] step_result read(std::span<char> into);
  /// Is there nothing but the protocol's own messages, and no goodbye?
  [[nodiscard]] bool quiet() noexcept;
  [[nodiscard]] const std::string& why() const noexcept { return why_; }

 private:
  step_result result_of(int returned, std::size_t bytes);

  int socket_;  // of whoever made us; OpenSSL looks here
  bool verify_;
  std::string address_;  // for messages
  SSL* held_ = nullptr;
  std::string why_{};
};

}  // namespace HOLDFAST_NAMESPACE::redis
