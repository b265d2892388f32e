#include "commands/outbox/relay_target.hpp"

#include <holdfast/error.hpp>
#include <holdfast/outbox/relay.hpp>
#include <holdfast/outbox/relay/kafka.hpp>
#include <holdfast/outbox/relay/nats.hpp>
#include <holdfast/outbox/relay/rabbitmq.hpp>

#include "base/url.hpp"

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace holdfast::cli {

namespace {

[[maybe_unused]] relay::broker_options options_of(const relay_request& request) {
  relay::broker_options options{
      .timeout = request.timeout, .source = request.source, .credentials = request.credentials};
  if (const char* password = std::getenv("HOLDFAST_RELAY_PASSWORD")) options.password = password;
  const auto from_environment = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  options.tls_ca = from_environment("HOLDFAST_RELAY_CA");
  options.tls_certificate = from_environment("HOLDFAST_RELAY_CERTIFICATE");
  options.tls_key = from_environment("HOLDFAST_RELAY_KEY");
  return options;
}

[[noreturn]] [[maybe_unused]] void refuse_missing(const std::string& broker) {
  throw error(errc::unsupported_type, "this program was built without " + broker +
                                          "; install its client library and build it again");
}

/// `redis+stream://host:6379/0?stream=KEY&limit=1000`: the URL of a Redis, and the stream.
delivery_target redis_target([[maybe_unused]] const std::string& text) {
#if HOLDFAST_HAS_REDIS
  const auto parsed = detail::parse_url(text);
  const auto stream = parsed.parameters.find("stream");
  if (stream == parsed.parameters.end() || stream->second.empty())
    throw error(errc::invalid_argument,
                "--relay names no stream; write redis+stream://host:6379?stream=KEY");
  std::size_t limit = 0;
  for (const auto& [name, value] : parsed.parameters) {
    if (name == "stream") continue;
    const bool is_number = !value.empty() && value.size() < 19 &&
                           value.find_first_not_of("0123456789") == std::string::npos;
    if (name != "limit" || !is_number)
      throw error(errc::invalid_argument,
                  "--relay redis+stream:// has the parameters stream and limit, a number");
    limit = std::stoull(value);
  }
  std::string url = text.substr(0, text.find('?'));
  url.erase(url.find("+stream"), std::string_view("+stream").size());
  redis::options settings;
  if (const char* password = std::getenv("HOLDFAST_RELAY_PASSWORD")) settings.password = password;
  return {.handler =
              relay::redis_stream(redis::client(url, std::move(settings)), stream->second, limit)};
#else
  refuse_missing("Redis");
#endif
}

}  // namespace

delivery_target make_relay_target(const relay_request& request) {
  const std::string scheme = request.url.substr(0, request.url.find(':'));
  if (scheme == "amqp" || scheme == "amqps") {
#if HOLDFAST_HAS_RABBITMQ
    return {.batch = relay::rabbitmq(request.url, options_of(request))};
#else
    refuse_missing("RabbitMQ");
#endif
  }
  if (scheme == "nats" || scheme == "tls") {
#if HOLDFAST_HAS_NATS
    return {.batch = relay::nats(request.url, options_of(request))};
#else
    refuse_missing("NATS");
#endif
  }
  if (scheme == "kafka" || scheme == "kafka+tls") {
#if HOLDFAST_HAS_KAFKA
    return {.batch = relay::kafka(request.url, options_of(request))};
#else
    refuse_missing("Kafka");
#endif
  }
  if (scheme == "redis+stream" || scheme == "rediss+stream") return redis_target(request.url);
  throw error(errc::invalid_argument,
              "--relay needs a URL that begins with amqp://, amqps://, nats://, tls://, kafka://, "
              "kafka+tls://, redis+stream://, rediss+stream://, http://, https:// or file:");
}

}  // namespace holdfast::cli
