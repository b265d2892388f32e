#pragma once

#include <holdfast/version.hpp>

#include "serve/config/server_config.hpp"

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

class endpoint_table;

/// What the endpoints of the server itself show. The functions must not wait, apart from `metrics`.
struct server_view {
  std::function<std::size_t()> hung_loops{};
  std::function<std::vector<std::string>()> missing{};
  std::function<std::string()> metrics{};
  std::function<std::vector<config::effective_value>()> configuration{};
  /// The file of the configuration, or empty.
  std::string file{};
};

/// /healthz, /readyz, /metrics, /v1/openapi.json and /v1/configuration.
void add_server_endpoints(endpoint_table& table, server_view view);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
