#pragma once

/// \file
/// What the client is told about its answer: Cache-Status (RFC 9211), Holdfast-Answer, Warning.

#include <holdfast/clock.hpp>
#include <holdfast/failover/answer.hpp>
#include <holdfast/version.hpp>

#include "http/cache_status.hpp"
#include "serve/gateway/route.hpp"
#include "serve/http_server.hpp"

#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::serve::gateway {

/// Where a kept answer comes from.
struct kept_answer_facts {
  timestamp as_of{};
  timestamp expires{};
  cause_code cause = cause_code::failed;
  /// Reference of the decision; may be empty.
  std::string ref{};
};

/// Adds Cache-Status, unless the route does not tell this client. `previous` are the values of the
/// response: those of caches nearer to the origin.
void add_cache_status(const route& rules, std::string_view client_address,
                      const http::cache_status& status, std::string_view previous,
                      server_response& response);

/// `stored;as-of=@1794783600;expires=@1794870000;cause=failed;ref="c7h2k9"` (RFC 9651).
[[nodiscard]] std::string holdfast_answer_field(const kept_answer_facts& facts);

}  // namespace HOLDFAST_NAMESPACE::detail::serve::gateway
