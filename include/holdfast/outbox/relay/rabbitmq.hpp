#pragma once

/// \file
/// Publishes events to an exchange of RabbitMQ, with publisher confirms. Only in builds with
/// librabbitmq.

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
///     amqp://user:password@host:5672/vhost?exchange=orders&routing_key=orders.{type}
///
/// `amqps://` uses TLS. Without `exchange` the default exchange is used: the routing key is the
/// name of a queue. An event is done when RabbitMQ has confirmed its persistent message, and a
/// queue got it: messages are mandatory. Of the events of a key, one at a time is not confirmed.
///
/// Copies share their connections. Thread-safety: every function may be called from any thread;
/// each call has a connection to itself.
class HOLDFAST_API rabbitmq {
 public:
  /// Throws errc::invalid_argument if the URL or an option is invalid. Does not connect.
  explicit rabbitmq(const std::string& url, const broker_options& options = {});

  /// Publishes one event and waits until it is confirmed.
  [[nodiscard]] outcome operator()(const delivery& delivery) const;
  /// Publishes events together, those of a key in order, and waits until they are confirmed.
  [[nodiscard]] std::vector<outcome> operator()(std::span<const delivery* const> deliveries) const;

 private:
  std::shared_ptr<detail::outbox::broker_relay> relay_;
};

}  // namespace HOLDFAST_NAMESPACE::relay
