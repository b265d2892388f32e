#pragma once

#include <holdfast/version.hpp>

#include "serve/gateway/gateway_request.hpp"
#include "serve/gateway/received_response.hpp"
#include "serve/gateway/route_runtime.hpp"

#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve::gateway {

/// The targets whose kept answers a request with an unsafe method makes invalid (RFC 9111, section
/// 4.4): that of the request, and those of Location and Content-Location if they are of the same
/// origin. None if the response is an error.
[[nodiscard]] std::vector<invalidation> invalidated_targets(gateway_runtime& runtime,
                                                            const gateway_request& request,
                                                            const received_response& response);

}  // namespace HOLDFAST_NAMESPACE::detail::serve::gateway
