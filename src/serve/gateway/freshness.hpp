#pragma once

/// \file
/// Age and freshness of a response (RFC 9111, section 4.2).

#include <holdfast/clock.hpp>
#include <holdfast/version.hpp>

#include "serve/gateway/response_fields.hpp"

#include <chrono>
#include <optional>

namespace HOLDFAST_NAMESPACE::detail::serve::gateway {

/// How long a response is fresh: s-maxage, max-age, or Expires without Date. Zero if it does not
/// say: the gateway guesses nothing. `received` stands for a Date that is missing.
[[nodiscard]] std::chrono::seconds freshness_lifetime(const response_fields& response,
                                                      timestamp received);

/// The age that the response had when it left its server: the field Age.
[[nodiscard]] std::chrono::seconds initial_age(const response_fields& response);

/// Age of a response of the time `as_of`.
[[nodiscard]] std::chrono::seconds age_at(const response_fields& response, timestamp as_of,
                                          timestamp now);

}  // namespace HOLDFAST_NAMESPACE::detail::serve::gateway
