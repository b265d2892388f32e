#pragma once

/// \file
/// Publishes events to topics of Kafka, with an idempotent producer. Only in builds with
/// librdkafka.

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
///     kafka://host:9092,other:9092/orders.{type}
///
/// `kafka+tls://` uses TLS. A user in the URL logs in with SASL; `?sasl=SCRAM-SHA-512` chooses the
/// mechanism (PLAIN). An event is done when all in-sync replicas have its message (acks=all). The
/// key of the event is the key of the message.
///
/// Copies share their producers. Thread-safety: every function may be called from any thread; each
/// call has a producer to itself.
class HOLDFAST_API kafka {
 public:
  /// Throws errc::invalid_argument if the URL or an option is invalid. Does not connect.
  explicit kafka(const std::string& url, const broker_options& options = {});

  /// Publishes one event and waits until it is confirmed.
  [[nodiscard]] outcome operator()(const delivery& delivery) const;
  /// Publishes events together, those of a key in order, and waits until they are confirmed.
  [[nodiscard]] std::vector<outcome> operator()(std::span<const delivery* const> deliveries) const;

 private:
  std::shared_ptr<detail::outbox::broker_relay> relay_;
};

}  // namespace HOLDFAST_NAMESPACE::relay
