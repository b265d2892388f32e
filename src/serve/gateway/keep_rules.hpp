#pragma once

/// \file
/// Which responses are kept, for how long, and when a kept response may be given to a client (rules
/// 4 to 8 of docs/gateway.md).

#include <holdfast/clock.hpp>
#include <holdfast/failover/expiry.hpp>
#include <holdfast/version.hpp>

#include "http/cache_control.hpp"
#include "http/fields.hpp"
#include "serve/gateway/response_fields.hpp"
#include "serve/gateway/route.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::serve::gateway {

/// What the rules need of a request.
struct request_facts {
  bool get = false;
  bool head = false;
  bool has_authorization = false;
  bool has_cookie = false;
  http::cache_control directives{};

  [[nodiscard]] static request_facts of(std::string_view method, const http::fields& request);
};

/// The credential of a request that is not part of the key, so that the response is for its caller
/// alone (RFC 9111, section 3.5); empty if the request has no such
/// credential, or the response allows to share it.
[[nodiscard]] std::string_view unkeyed_credential(const route& rules, const request_facts& request,
                                                  const http::cache_control& response) noexcept;

/// Statuses of an upstream that count as its failure.
[[nodiscard]] bool is_failure(const route& rules, int status) noexcept;

enum class keep_action : std::uint8_t {
  keep,        ///< keep the response
  invalidate,  ///< it is newer than what is kept, but may not be kept: an older one must not return
  pass         ///< leave what is kept in force
};

struct keep_decision {
  keep_action action = keep_action::pass;
  /// Why it is not kept: `no-store`. Empty if it is.
  std::string_view reason{};
};

/// Decides about a response that was received completely, and is not a failure.
[[nodiscard]] keep_decision decide_keep(const route& rules, const request_facts& request,
                                        int status, const response_fields& response,
                                        std::size_t content_size);

/// The longest time for which an answer of the time `as_of` can be kept.
[[nodiscard]] timestamp longest_expiry(const route& rules, const expiry& usual, timestamp as_of);

/// Until when a response of the time `as_of` may be served. May be before `as_of`: not at all.
[[nodiscard]] timestamp keep_until(const route& rules, const response_fields& response,
                                   const expiry& usual, timestamp as_of);

enum class reuse : std::uint8_t {
  none,     ///< ask the upstream
  young,    ///< give the kept response
  refresh,  ///< give it, and ask the upstream meanwhile
};

/// Whether a kept response may be given without asking the upstream, on a route with a soft expiry.
/// What the response says about its freshness is obeyed; the soft expiry counts where it says
/// nothing (RFC 9111, section 4.2.2).
[[nodiscard]] reuse decide_reuse(const request_facts& request, const response_fields& kept,
                                 timestamp as_of, timestamp now, std::chrono::microseconds soft);

/// Why a kept response must not be given to this client, as `detail` of Cache-Status says it:
/// `forbidden-by=must-revalidate`. Empty: it may be given.
[[nodiscard]] std::string_view refusal_of(const route& rules, const request_facts& request,
                                          const response_fields& kept, timestamp as_of,
                                          timestamp now);

}  // namespace HOLDFAST_NAMESPACE::detail::serve::gateway
