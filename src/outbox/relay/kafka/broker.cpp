#include "outbox/relay/kafka/broker.hpp"

#include "outbox/relay/kafka/session.hpp"

#include <algorithm>

namespace HOLDFAST_NAMESPACE::detail::outbox::kafka {

namespace {

constexpr std::size_t longest_topic = 249;

bool is_topic_character(unsigned char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

}  // namespace

kafka_broker::kafka_broker(const std::string& url, const relay::broker_options& options)
    : url_(parse_broker_url(url,
                            {.scheme = "kafka",
                             .tls_scheme = "kafka+tls",
                             .port = 9092,
                             .tls_port = 9093,
                             .parameters = {"sasl"}},
                            options)),
      options_(options) {
  check_settings(url_, options_);
}

bool kafka_broker::is_reserved_header(std::string_view /*normalized*/) const noexcept {
  return false;  // Kafka does not act on headers
}

std::string kafka_broker::problem_of(const broker_message& message) const {
  const auto& topic = message.destination;
  if (topic.empty() || topic.size() > longest_topic || topic == "." || topic == ".." ||
      !std::ranges::all_of(topic, is_topic_character))
    return "the topic of the event is not valid for Kafka: it may have 1 to 249 letters, digits, "
           "dots, underscores and hyphens";
  return {};
}

std::unique_ptr<broker_session> kafka_broker::connect(std::chrono::milliseconds timeout) const {
  return std::make_unique<kafka_session>(url_, options_, timeout);
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox::kafka
