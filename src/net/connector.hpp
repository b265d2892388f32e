#pragma once

/// \file
/// Connects to a server on an event loop, with TLS if it is asked for.

#include <holdfast/error.hpp>

#include "net/dialer.hpp"
#include "net/event_loop.hpp"
#include "net/socket_stream.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::net {

/// One attempt to connect. Destroying it ends the attempt, and its callback is not called.
/// Thread-safety: used on the thread of the loop only.
class connector final : public event_handler {
 public:
  struct target {
    /// For messages, and for the certificate: `host:port`.
    std::string address{};
    /// Resolved before, because that blocks.
    std::vector<socket_address> addresses{};
    /// Null: no TLS. Must outlive the connector.
    const tls_context* tls = nullptr;
  };
  /// Gets the stream, or null and the error that prevented the connection.
  using callback = std::function<void(std::unique_ptr<socket_stream>, const error* problem)>;

  /// The callback is called later, from the loop, once. It must not destroy the connector, but may
  /// give it to event_loop::retire.
  connector(event_loop& loop, const target& server, steady::time_point deadline, callback done);
  ~connector();
  void on_events(std::uint32_t events) override;

 private:
  void advance();
  /// Returns the connected stream when the handshake is done, or null.
  [[nodiscard]] std::unique_ptr<socket_stream> try_connect();
  void watch_dialer();

  event_loop& loop_;
  std::string address_;
  const tls_context* tls_;
  steady::time_point deadline_;
  callback done_;
  std::unique_ptr<dialer> dialer_;
  std::unique_ptr<socket_stream> stream_{};
  // The dialer has several sockets while addresses are silent.
  std::vector<std::unique_ptr<registration>> watches_{};
  timer timer_;
};

}  // namespace HOLDFAST_NAMESPACE::detail::net
