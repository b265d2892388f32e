#pragma once

/// \file
/// What a relay needs from a message broker. rabbitmq/, nats/ and kafka/ implement it.

#include <holdfast/worker.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::outbox {

/// An event as it is published.
struct broker_message {
  /// Lives longer than the message.
  const holdfast::event* event = nullptr;
  std::chrono::milliseconds created_at{};
  std::string destination{};
  /// Attributes of the CloudEvent, with the prefix of the broker, and headers of the event.
  std::vector<std::pair<std::string, std::string>> headers{};
};

/// What is known about a published message.
struct confirmation {
  enum class kind : std::uint8_t {
    confirmed,     ///< the broker has it
    rejected,      ///< the broker will never accept it
    refused,       ///< it did not arrive; an operator can fix that, for example with a queue
    unavailable,   ///< the broker does not accept messages now
    unanswered,    ///< no answer in time
    disconnected,  ///< the connection ended before the answer
  };
  kind status = kind::unavailable;
  std::string reason = "not sent";
};

/// One connection to a broker. Thread-safety: for one thread at a time.
class broker_session {
 public:
  broker_session() = default;
  broker_session(const broker_session&) = delete;
  broker_session& operator=(const broker_session&) = delete;
  virtual ~broker_session() = default;

  /// Publishes messages in order and waits for their confirmations until the deadline. Sets one
  /// confirmation for each message. Does not throw if the broker fails.
  virtual void publish(std::span<const broker_message> messages,
                       std::span<confirmation> confirmations,
                       std::chrono::steady_clock::time_point deadline) = 0;
  /// False if the connection has ended, or answers may still be on their way.
  [[nodiscard]] virtual bool usable() = 0;
};

/// How a broker wants its messages.
struct message_format {
  /// Before the name of each attribute of a CloudEvent.
  std::string_view attribute_prefix;
  /// The values of attributes are percent-encoded.
  bool percent_encoded = false;
  /// Header or attribute with the content type. Empty: it is a property of the message.
  std::string_view content_type{};
  /// The broker keeps the order of a key even if some of its messages fail. Otherwise a message of
  /// a key is sent when the one before it is confirmed.
  bool pipelines_keys = false;
};

/// A broker that a URL names. Thread-safety: every function may be called from any thread.
class broker {
 public:
  broker() = default;
  broker(const broker&) = delete;
  broker& operator=(const broker&) = delete;
  virtual ~broker() = default;

  /// For messages, without credentials: `amqp://host:5672`.
  [[nodiscard]] virtual const std::string& name() const noexcept = 0;
  [[nodiscard]] virtual message_format format() const noexcept = 0;
  /// An event must not set this header, because the broker acts on it. The name is normalized.
  [[nodiscard]] virtual bool is_reserved_header(std::string_view normalized) const noexcept = 0;
  /// Returns why the broker cannot take the message, or an empty text.
  [[nodiscard]] virtual std::string problem_of(const broker_message& message) const = 0;
  /// Throws errc::unavailable if the broker cannot be used.
  [[nodiscard]] virtual std::unique_ptr<broker_session> connect(
      std::chrono::milliseconds timeout) const = 0;
};

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
