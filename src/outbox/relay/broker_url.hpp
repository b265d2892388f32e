#pragma once

/// \file
/// The URL of a message broker: `scheme://user:password@host:port,host:port/path?name=value`.

#include <holdfast/outbox/relay/broker.hpp>

#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::outbox {

struct HOLDFAST_API broker_endpoint {
  std::string host;
  unsigned port = 0;

  /// `host:port`, with brackets around an IPv6 address.
  [[nodiscard]] std::string text() const;
};

struct HOLDFAST_API broker_url {
  bool tls = false;
  /// At least one.
  std::vector<broker_endpoint> endpoints{};
  std::optional<std::string> user{};
  std::optional<std::string> password{};
  std::string path{};
  std::map<std::string, std::string, std::less<>> parameters{};
  /// Without credentials, path and parameters.
  std::string name{};

  /// Returns the value of a parameter, or the fallback.
  [[nodiscard]] std::string parameter(std::string_view parameter_name,
                                      std::string_view fallback = {}) const;
};

/// What the URLs of a broker may have.
struct broker_url_rules {
  std::string_view scheme;
  std::string_view tls_scheme;
  unsigned port;
  unsigned tls_port;
  std::initializer_list<std::string_view> parameters;
};

/// Parses the URL, and replaces its credentials by those of the options. Checks the options, too.
/// Throws errc::invalid_argument; the message never contains a password.
[[nodiscard]] HOLDFAST_API broker_url parse_broker_url(const std::string& text,
                                                       const broker_url_rules& rules,
                                                       const relay::broker_options& options);

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
