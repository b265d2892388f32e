#pragma once

/// \file
/// Options of the relays to message brokers: relay::rabbitmq, relay::nats and relay::kafka.
/// docs/outbox-brokers.md describes URLs, confirmations and failures.

#include <holdfast/version.hpp>

#include <chrono>
#include <string>

namespace HOLDFAST_NAMESPACE {

namespace detail::outbox {
class broker_relay;
}  // namespace detail::outbox

namespace relay {

struct broker_options {
  /// Routing key (RabbitMQ), subject (NATS) or topic (Kafka) of an event, with the placeholders
  /// `{type}`, `{key}` and `{aggregate_type}`: `orders.{type}`. Empty: that of the URL.
  std::string destination{};
  /// Replaces the user of the URL.
  std::string user{};
  /// Replaces the password of the URL, so that it need not be in an argument or a file.
  std::string password{};
  /// With TLS: PEM file of the certificates to trust. Empty: those of the system.
  std::string tls_ca{};
  /// With TLS: PEM files of the client certificate and its private key, if the broker asks for one.
  std::string tls_certificate{};
  std::string tls_key{};
  /// With TLS: false accepts any certificate. For tests only.
  bool tls_verify = true;
  /// How long to wait for a connection.
  std::chrono::milliseconds connect_timeout = std::chrono::seconds(10);
  /// How long one call waits until the broker has confirmed its events.
  std::chrono::milliseconds timeout = std::chrono::seconds(30);
  /// How long events wait when the broker does not accept them, and between two attempts to
  /// connect.
  std::chrono::milliseconds pause = std::chrono::seconds(1);
  /// The attribute `source` of the CloudEvent.
  std::string source = "/holdfast/outbox";
  /// Pass on the credentials of events; see cloud_event_options.
  bool credentials = false;
};

}  // namespace relay

}  // namespace HOLDFAST_NAMESPACE
