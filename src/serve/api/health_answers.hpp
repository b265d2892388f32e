#pragma once

/// \file
/// The answers at /healthz, /readyz and /metrics. The server and observation_server share them.

#include <holdfast/version.hpp>

#include "serve/http_server.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// `hung_loops` is the result of http_server::hung_loops.
[[nodiscard]] server_response liveness_answer(std::size_t hung_loops);
/// 503 with the names of what is missing, or 200.
[[nodiscard]] server_response readiness_answer(const std::vector<std::string>& missing);
/// `text` is in the format of Prometheus.
[[nodiscard]] server_response metrics_answer(std::string text);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
