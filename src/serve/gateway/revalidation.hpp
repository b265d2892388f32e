#pragma once

/// \file
/// Asking the upstream whether a kept response is still valid (RFC 9111, section 4.3), instead of
/// getting the whole again.

#include <holdfast/version.hpp>

#include "http/fields.hpp"
#include "serve/gateway/gateway_request.hpp"
#include "serve/gateway/response_fields.hpp"
#include "serve/gateway/stored_response.hpp"

namespace HOLDFAST_NAMESPACE::detail::serve::gateway {

/// Whether a kept response can be confirmed for this request: a 200 with a validator, for a client
/// that may have it and asks for the whole.
[[nodiscard]] bool is_confirmable(const route& rules, const gateway_request& request,
                                  const stored_response& kept);

/// Adds If-None-Match and If-Modified-Since.
void add_validators(const response_fields& kept, http::field_block& request);

/// Whether a 304 with these fields is about the kept response (section 4.3.4): its entity tag, if
/// it has one, is that of the kept response.
[[nodiscard]] bool is_about(const response_fields& update, const response_fields& kept);

/// The fields of the kept response after a 304 (section 3.2): those of the 304 replace the ones of
/// the same name. What described the older answer itself, such as Age, ends.
[[nodiscard]] response_fields merge_fields(const response_fields& kept,
                                           const response_fields& update);

}  // namespace HOLDFAST_NAMESPACE::detail::serve::gateway
