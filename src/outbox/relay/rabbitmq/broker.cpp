#include "outbox/relay/rabbitmq/broker.hpp"

#include <holdfast/error.hpp>

#include "outbox/relay/rabbitmq/session.hpp"

#include <algorithm>
#include <array>

namespace HOLDFAST_NAMESPACE::detail::outbox::rabbitmq {

namespace {

/// Of a routing key, a content type and the name of a header.
constexpr std::size_t longest_short_text = 255;
/// All headers must fit in one frame of 128 KiB.
constexpr std::size_t most_header_bytes = 100'000;

}  // namespace

rabbitmq_broker::rabbitmq_broker(const std::string& url, const relay::broker_options& options)
    : url_(parse_broker_url(url,
                            {.scheme = "amqp",
                             .tls_scheme = "amqps",
                             .port = 5672,
                             .tls_port = 5671,
                             .parameters = {"exchange", "routing_key"}},
                            options)),
      options_(options) {}

bool rabbitmq_broker::is_reserved_header(std::string_view normalized) const noexcept {
  // CC and BCC add receivers. The others are set by RabbitMQ or its plugins, or instruct them.
  constexpr std::array<std::string_view, 4> reserved{"cc", "bcc", "x-delay",
                                                     "x-deduplication-header"};
  return std::ranges::find(reserved, normalized) != reserved.end() ||
         normalized.starts_with("cloudevents") || normalized.starts_with("x-death") ||
         normalized.starts_with("x-first-death") || normalized.starts_with("x-last-death") ||
         normalized.starts_with("x-stream-");
}

std::string rabbitmq_broker::problem_of(const broker_message& message) const {
  if (message.destination.size() > longest_short_text)
    return "the routing key is longer than 255 bytes";
  if (message.event->content_type.size() > longest_short_text)
    return "the content type is longer than 255 bytes";
  std::size_t bytes = 0;
  for (const auto& [name, value] : message.headers) {
    if (name.size() > longest_short_text) return "the name of a header is longer than 255 bytes";
    bytes += name.size() + value.size() + 8;
  }
  if (bytes > most_header_bytes) return "the headers are longer than 100000 bytes";
  return {};
}

std::unique_ptr<broker_session> rabbitmq_broker::connect(std::chrono::milliseconds timeout) const {
  std::string problem;
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  for (const auto& endpoint : url_.endpoints) {
    try {
      return std::make_unique<rabbitmq_session>(endpoint, url_, options_, deadline);
    } catch (const error& failure) {
      problem = failure.message();
    }
  }
  throw error(errc::unavailable, problem, {.transient = true});
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox::rabbitmq
