#pragma once

/// \file
/// An HTTP/1.1 client on an event loop, with a pool of connections to one server.
///
///   upstream_call   owned by the caller. Destroying it ends the request: its callback is not
///                   called, and its connection is closed, because a response may be under way.
///   exchange        owned by the upstream, named by a number. It goes through waiting (for a free
///                   connection), connecting, sending and receiving.

#include "http/limits.hpp"
#include "net/connector.hpp"
#include "serve/http_client.hpp"
#include "serve/response_collector.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

struct upstream_options {
  net::connector::target server{};
  /// Value of Host.
  std::string host{};
  http::limits limits{};
  /// Open at the same time. Further requests wait, within their deadline.
  std::size_t max_connections = 256;
  std::chrono::milliseconds connect_timeout{1'000};
  /// After this time an idle connection is closed.
  std::chrono::milliseconds idle_timeout{60'000};
};

struct upstream_state;

/// A request under way. Must not outlive its loop.
/// Thread-safety: used on the thread of the loop only.
class upstream_call {
 public:
  upstream_call() = default;
  upstream_call(std::weak_ptr<upstream_state> state, std::uint64_t number) noexcept
      : state_(std::move(state)), number_(number) {}
  upstream_call(upstream_call&& other) noexcept = default;
  upstream_call& operator=(upstream_call&& other) noexcept;
  ~upstream_call() { cancel(); }

  void cancel() noexcept;
  /// Reads no further, so that the server has to wait.
  void pause() noexcept;
  void resume();
  /// Replaces the deadline.
  void set_deadline(net::steady::time_point deadline);

 private:
  std::weak_ptr<upstream_state> state_{};
  std::uint64_t number_ = 0;
};

/// Thread-safety: used on the thread of the loop only.
class upstream {
 public:
  using callback = std::function<void(client_response)>;

  upstream(net::event_loop& loop, upstream_options options);
  /// Ends all requests; their callbacks are not called.
  ~upstream();
  upstream(const upstream&) = delete;
  upstream& operator=(const upstream&) = delete;

  /// Sends a request. The callback is called later, from the loop, once, unless the call is
  /// cancelled; it may destroy the call. Throws errc::invalid_argument if the request cannot be
  /// written.
  [[nodiscard]] upstream_call send(const client_request& request, net::steady::time_point deadline,
                                   callback done);
  /// As `send`, with a response of any size in parts. The receiver must outlive the call. It may
  /// cancel, pause or destroy the call. Bytes of the content are not limited.
  [[nodiscard]] upstream_call stream(const client_request& request,
                                     net::steady::time_point deadline, response_receiver& receiver);
  /// For the connections that are opened from now on.
  void set_addresses(std::vector<net::socket_address> addresses);
  /// Open connections, idle ones included.
  [[nodiscard]] std::size_t connections() const noexcept;

 private:
  std::shared_ptr<upstream_state> state_;
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve
