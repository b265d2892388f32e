#pragma once

/// \file
/// An HTTP/1.1 client for threads that may wait. Each request has an absolute deadline, which holds
/// for connecting, the TLS handshake, sending and receiving; only resolving a host name is outside
/// of it. Redirects are not followed, and nothing is decompressed.

#include <holdfast/tls.hpp>

#include "http/fields.hpp"
#include "http/limits.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::serve {

struct client_request {
  std::string_view method = "GET";
  /// Path and query, percent-encoded.
  std::string_view target = "/";
  /// Host and Content-Length are added.
  http::field_block fields{};
  std::string_view body{};
  /// For upstream::stream: Host, instead of that of the server.
  std::string_view host{};
};

/// How far a request came.
enum class exchange_status : std::uint8_t {
  complete,     ///< the whole response was received
  unreachable,  ///< no byte of the request was sent
  late,         ///< the deadline has passed
  cut,          ///< the connection ended before the response was complete
  malformed,    ///< the response breaks the rules of HTTP
  head_limit,   ///< the head of the response is too large
  body_limit    ///< the content of the response is too large; status and fields are valid
};

struct client_response {
  exchange_status result = exchange_status::unreachable;
  /// A part of the request may have reached the server.
  bool sent = false;
  /// The server's certificate was not accepted.
  bool certificate_refused = false;
  /// Why the result is not `complete`.
  std::string reason{};
  /// 0 if no head was received.
  int status = 0;
  http::field_block fields{};
  std::string body{};
};

struct client_options {
  /// Used for https only.
  tls_options tls{};
  http::limits limits{};
  /// Connections that are kept open between requests.
  std::size_t max_idle = 64;
  /// After this time the server may have closed an idle connection.
  std::chrono::milliseconds idle_timeout{60'000};
};

/// A client of one server. Keeps connections open between requests.
/// Thread-safety: may be called from any thread; each request has a connection to itself.
class http_client {
 public:
  /// `http://host:port` or `https://host:port`; a path is ignored. Does not connect. Throws
  /// errc::invalid_argument if the URL or the TLS options are invalid.
  http_client(std::string_view url, client_options options);
  ~http_client();
  http_client(const http_client&) = delete;
  http_client& operator=(const http_client&) = delete;

  /// Sends a request and waits for its response. Does not throw because of the server or the
  /// network: `result` says how far it came. Throws errc::invalid_argument if the request cannot be
  /// written. A request is sent a second time only if nothing of it was sent before.
  [[nodiscard]] client_response send(const client_request& request,
                                     std::chrono::steady_clock::time_point deadline);
  /// `https://host:443`, for messages.
  [[nodiscard]] const std::string& server() const noexcept;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve
