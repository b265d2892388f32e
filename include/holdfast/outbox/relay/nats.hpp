#pragma once

/// \file
/// Publishes events to a stream of NATS JetStream. Only in builds with libnats.

#include <holdfast/outbox/outcome.hpp>
#include <holdfast/outbox/relay/broker.hpp>
#include <holdfast/version.hpp>
#include <holdfast/worker.hpp>

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE::relay {

/// A handler for worker::handle, handle_batch and handle_other_types.
///
///     nats://user:password@host:4222/orders.{type}
///
/// `tls://` uses TLS; several hosts are separated by commas; `?creds=FILE` names a file with
/// credentials. An event is done when a stream has acknowledged its message. The header Nats-Msg-Id
/// is the id of the event, so that the stream drops repeated messages within its window. Of the
/// events of a key, one at a time is not confirmed.
///
/// Copies share their connections. Thread-safety: every function may be called from any thread;
/// each call has a connection to itself.
class HOLDFAST_API nats {
 public:
  /// Throws errc::invalid_argument if the URL or an option is invalid. Does not connect.
  explicit nats(const std::string& url, const broker_options& options = {});

  /// Publishes one event and waits until it is confirmed.
  [[nodiscard]] outcome operator()(const delivery& delivery) const;
  /// Publishes events together, those of a key in order, and waits until they are confirmed.
  [[nodiscard]] std::vector<outcome> operator()(std::span<const delivery* const> deliveries) const;

 private:
  std::shared_ptr<detail::outbox::broker_relay> relay_;
};

}  // namespace HOLDFAST_NAMESPACE::relay
