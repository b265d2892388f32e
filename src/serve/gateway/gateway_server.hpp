#pragma once

/// \file
/// The gateway: listeners of its own, and the routes. A path of an upstream never reaches the API.

#include <holdfast/version.hpp>

#include "serve/gateway/route_runtime.hpp"
#include "serve/http_server.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve::gateway {

struct gateway_options {
  /// `host:port` or the path of a Unix socket.
  std::vector<std::string> listen{};
  /// Null: no TLS.
  std::shared_ptr<const net::tls_server_context> tls{};
  std::size_t loops = 1;
  std::size_t connections = 4096;
  std::size_t connections_per_address = 512;
  /// Largest content of a request.
  std::uint64_t max_body = std::uint64_t{8} << 20U;
  std::chrono::milliseconds head_timeout{10'000};
  std::chrono::milliseconds idle_timeout{60'000};
  runtime_options runtime{};
};

/// Thread-safety: `addresses` and `counts` may be called from any thread, the others on one.
class gateway_server {
 public:
  /// Registers the points of the routes. Throws errc::invalid_argument.
  explicit gateway_server(gateway_options options);
  ~gateway_server();
  gateway_server(const gateway_server&) = delete;
  gateway_server& operator=(const gateway_server&) = delete;

  /// Listens, and starts the threads. Throws errc::unavailable.
  void start();
  /// Empty before `start`.
  [[nodiscard]] std::vector<std::string> addresses() const;
  [[nodiscard]] server_counts counts() const noexcept;
  [[nodiscard]] const std::shared_ptr<gateway_runtime>& runtime() const noexcept {
    return runtime_;
  }
  void set_tls(std::shared_ptr<const net::tls_server_context> context);
  /// Checks routes, and registers the points of new ones. They are used after `set_routes`. Throws
  /// errc::invalid_argument.
  [[nodiscard]] std::shared_ptr<gateway_runtime> prepare_routes(std::vector<route> routes) const;
  /// For requests that begin later; the others end with the routes that they have.
  void set_routes(std::shared_ptr<gateway_runtime> prepared);
  /// Every answer is from now on the last of its connection.
  void begin_drain() noexcept;
  /// Waits for the requests under way until the deadline. Returns what was left, in a few words
  /// each. Then threads that wait for a database still use this object: do not destroy it.
  std::vector<std::string> stop(std::chrono::steady_clock::time_point deadline);

 private:
  void handle(const server_request& request, responder answer);

  gateway_options options_;
  std::shared_ptr<gateway_runtime> runtime_;
  std::unique_ptr<http_server> transport_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve::gateway
