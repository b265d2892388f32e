#pragma once

/// \file
/// An idempotent producer of Kafka. librdkafka connects, and repeats requests, by itself; messages
/// of a partition keep their order.

#include <holdfast/outbox/relay/broker.hpp>

#include "outbox/relay/broker.hpp"
#include "outbox/relay/broker_url.hpp"

#include <librdkafka/rdkafka.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <string>

namespace HOLDFAST_NAMESPACE::detail::outbox::kafka {

/// Throws errc::invalid_argument if librdkafka does not accept the settings.
void check_settings(const broker_url& url, const relay::broker_options& options);

class kafka_session final : public broker_session {
 public:
  using steady_time = std::chrono::steady_clock::time_point;

  /// Throws errc::unavailable if no broker answers.
  kafka_session(const broker_url& url, const relay::broker_options& options,
                std::chrono::milliseconds connect_timeout);
  ~kafka_session() override;

  void publish(std::span<const broker_message> messages, std::span<confirmation> confirmations,
               steady_time deadline) override;
  [[nodiscard]] bool usable() override { return !ended_; }

 private:
  struct destroy_producer {
    void operator()(rd_kafka_t* producer) const;
  };

  static void on_delivered(rd_kafka_t* producer, const rd_kafka_message_t* message, void* opaque);
  static void on_error(rd_kafka_t* producer, int code, const char* reason, void* opaque);
  [[nodiscard]] rd_kafka_resp_err_t send(const broker_message& message, confirmation& answer);
  [[nodiscard]] std::string last_error();

  std::size_t unanswered_ = 0;
  bool ended_ = false;
  std::mutex mutex_{};
  std::string last_error_{};
  /// Last: its callbacks use the other members.
  std::unique_ptr<rd_kafka_t, destroy_producer> producer_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::outbox::kafka
