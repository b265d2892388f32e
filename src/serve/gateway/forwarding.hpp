#pragma once

/// \file
/// Which fields pass the gateway, in each direction (RFC 9110, section 7.6).

#include <holdfast/version.hpp>

#include "http/fields.hpp"
#include "serve/gateway/response_fields.hpp"
#include "serve/gateway/route.hpp"

#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::serve::gateway {

/// What the gateway knows about the client of a request.
struct client_facts {
  /// Its address, or `unix`.
  std::string_view address{};
  std::string_view host{};
  bool secure = false;
  /// Its Forwarded and X-Forwarded-For are passed on: it is a proxy of the owner.
  bool trusted = false;
};

/// The fields for the upstream. Leaves out what belongs to the connection of the client, what
/// describes another target, and for GET and HEAD the conditions that the gateway answers itself.
/// Adds Via, Forwarded, X-Forwarded-For and X-Forwarded-Proto, and X-Forwarded-Host if the route
/// forwards the host.
[[nodiscard]] http::field_block forwarded_request(const route& rules, std::string_view method,
                                                  const http::fields& request,
                                                  const client_facts& client);

/// The fields of a response without those that belong to the connection of the upstream.
/// Content-Length is left out, too: the server sets it.
[[nodiscard]] response_fields passed_response(const http::fields& response);

}  // namespace HOLDFAST_NAMESPACE::detail::serve::gateway
