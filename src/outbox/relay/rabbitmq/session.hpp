#pragma once

/// \file
/// A connection to RabbitMQ with one channel in confirm mode.

#include <holdfast/outbox/relay/broker.hpp>

#include "outbox/relay/broker.hpp"
#include "outbox/relay/broker_url.hpp"

#include <amqp.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace HOLDFAST_NAMESPACE::detail::outbox::rabbitmq {

class rabbitmq_session final : public broker_session {
 public:
  using steady_time = std::chrono::steady_clock::time_point;

  /// Connects and logs in. Throws errc::unavailable.
  rabbitmq_session(const broker_endpoint& endpoint, const broker_url& url,
                   const relay::broker_options& options, steady_time deadline);

  void publish(std::span<const broker_message> messages, std::span<confirmation> confirmations,
               steady_time deadline) override;
  [[nodiscard]] bool usable() override;

 private:
  struct close_connection {
    void operator()(amqp_connection_state_t_* connection) const {
      (void)amqp_destroy_connection(connection);
    }
  };
  /// The messages of one call.
  struct exchange_state {
    std::span<const broker_message> messages;
    std::span<confirmation> confirmations;
    std::uint64_t first_tag = 0;
    std::size_t sent = 0;
    std::size_t unanswered = 0;
  };

  void open_socket(const broker_endpoint& endpoint, bool tls, const relay::broker_options& options,
                   steady_time deadline);
  void log_in(const broker_url& url);
  void open_channel();
  /// Returns false if the connection has ended, or does not take data.
  [[nodiscard]] bool send(const broker_message& message, steady_time deadline);
  void send_all(exchange_state& state, steady_time deadline);
  /// Waits a moment at most. Returns false if the connection is still blocked, or has ended.
  [[nodiscard]] bool wait_until_unblocked(steady_time deadline);
  /// Reads one frame. Returns false if there is none until the deadline, or the connection ended.
  [[nodiscard]] bool read_frame(exchange_state& state, steady_time deadline);
  void on_method(exchange_state& state, const amqp_method_t& method);
  void on_confirmed(exchange_state& state, std::uint64_t tag, bool multiple, bool accepted);
  void on_returned(exchange_state& state, const amqp_basic_properties_t& properties);
  void end(const std::string& reason);

  std::unique_ptr<amqp_connection_state_t_, close_connection> connection_;
  std::string exchange_;
  std::uint64_t next_tag_ = 1;
  bool ended_ = false;
  /// RabbitMQ is short of memory or disk and does not read messages.
  bool blocked_ = false;
  std::string problem_{};
  std::string return_reason_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::outbox::rabbitmq
