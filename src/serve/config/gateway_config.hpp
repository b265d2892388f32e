#pragma once

/// \file
/// `[gateway]` of serve.toml.

#include <holdfast/version.hpp>

#include "net/tls.hpp"
#include "serve/config/values.hpp"
#include "serve/gateway/route.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve::config {

struct gateway_config {
  std::vector<std::string> listen{"127.0.0.1:7361"};
  bool allow_plain = false;
  net::tls_server_options tls{.section = "gateway.tls"};
  std::string upstream_ca{};
  std::string secret{};
  std::vector<std::string> trusted_proxies{};
  std::string access_log = "-";
  std::size_t connections = 4096;
  std::size_t connections_per_address = 512;
  std::size_t max_body = std::size_t{8} << 20U;
  std::size_t workers = 16;
  std::size_t queue = 1024;
  std::vector<gateway::route> routes{};
};

/// Nothing if the file has no routes. Reports contradictions as problems.
[[nodiscard]] std::optional<gateway_config> read_gateway(const config_values& values,
                                                         std::vector<problem>& problems);

/// Throws errc::invalid_argument if other machines reach an address without TLS, and the
/// configuration does not allow that.
void check_gateway_addresses(const gateway_config& config);

}  // namespace HOLDFAST_NAMESPACE::detail::serve::config
