#pragma once

#include <holdfast/outbox/relay/broker.hpp>

#include "outbox/relay/broker.hpp"
#include "outbox/relay/broker_url.hpp"

#include <memory>
#include <string>

namespace HOLDFAST_NAMESPACE::detail::outbox::rabbitmq {

/// An exchange of RabbitMQ.
class rabbitmq_broker final : public broker {
 public:
  /// Throws errc::invalid_argument if the URL is invalid.
  rabbitmq_broker(const std::string& url, const relay::broker_options& options);

  /// The template of the routing key in the URL.
  [[nodiscard]] std::string destination() const { return url_.parameter("routing_key", "{type}"); }

  [[nodiscard]] const std::string& name() const noexcept override { return url_.name; }
  [[nodiscard]] message_format format() const noexcept override {
    return {.attribute_prefix = "cloudEvents:"};
  }
  [[nodiscard]] bool is_reserved_header(std::string_view normalized) const noexcept override;
  [[nodiscard]] std::string problem_of(const broker_message& message) const override;
  [[nodiscard]] std::unique_ptr<broker_session> connect(
      std::chrono::milliseconds timeout) const override;

 private:
  const broker_url url_;
  const relay::broker_options options_;
};

}  // namespace HOLDFAST_NAMESPACE::detail::outbox::rabbitmq
