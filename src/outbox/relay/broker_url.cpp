#include "outbox/relay/broker_url.hpp"

#include <holdfast/error.hpp>

#include "base/url.hpp"

#include <algorithm>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::outbox {

namespace {

[[noreturn]] void refuse_broker_url(const std::string& message) {
  throw error(errc::invalid_argument, message);
}

void check_options(const relay::broker_options& options) {
  if (options.connect_timeout.count() <= 0 || options.timeout.count() <= 0 ||
      options.pause.count() <= 0)
    throw error(errc::invalid_argument, "connect_timeout, timeout and pause must be positive");
  if (options.tls_certificate.empty() != options.tls_key.empty())
    throw error(errc::invalid_argument,
                "a client certificate needs tls_certificate and tls_key; set both");
}

}  // namespace

std::string broker_endpoint::text() const {
  const bool ipv6 = host.find(':') != std::string::npos;
  return (ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

std::string broker_url::parameter(std::string_view parameter_name,
                                  std::string_view fallback) const {
  const auto position = parameters.find(parameter_name);
  return position == parameters.end() ? std::string(fallback) : position->second;
}

broker_url parse_broker_url(const std::string& text, const broker_url_rules& rules,
                            const relay::broker_options& options) {
  check_options(options);
  auto parsed = parse_url_of_hosts(text);
  broker_url result;
  result.tls = parsed.scheme == rules.tls_scheme;
  if (!parsed.has_authority || (!result.tls && parsed.scheme != rules.scheme))
    refuse_broker_url("the URL of the broker must begin with " + std::string(rules.scheme) +
                      ":// or " + std::string(rules.tls_scheme) + "://");
  const unsigned default_port = result.tls ? rules.tls_port : rules.port;
  if (parsed.host.empty())
    refuse_broker_url("the URL of the broker has no host; write it as scheme://host:port");
  for (auto& host : parsed.hosts)
    result.endpoints.push_back(
        {.host = std::move(host.name), .port = host.port.value_or(default_port)});
  for (const auto& [parameter, value] : parsed.parameters) {
    if (std::ranges::find(rules.parameters, parameter) != rules.parameters.end()) continue;
    std::string names;
    for (const auto name : rules.parameters) names.append(names.empty() ? "" : ", ").append(name);
    refuse_broker_url("the URL of the broker has an unknown parameter; known are: " + names);
  }
  result.user = options.user.empty() ? parsed.user : options.user;
  result.password = options.password.empty() ? parsed.password : options.password;
  result.path = std::move(parsed.path);
  result.parameters = std::move(parsed.parameters);
  for (const auto& endpoint : result.endpoints)
    result.name.append(result.name.empty() ? parsed.scheme + "://" : ",").append(endpoint.text());
  return result;
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
