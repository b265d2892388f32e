#pragma once

/// \file
/// The store, tenant, name and key that a request means.

#include <holdfast/store.hpp>
#include <holdfast/version.hpp>

#include "serve/api/endpoint.hpp"
#include "serve/api/services.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// A refusal whose status does not follow from an errc, such as 403.
struct refused_request {
  int status = 403;
  std::string detail{};
};

/// Calls a function and makes an answer of a refused_request.
template <class Function>
[[nodiscard]] auto answer_refusals(Function function) {
  return [function = std::move(function)](api_request& request) -> decltype(function(request)) {
    try {
      return function(request);
    } catch (const refused_request& refusal) {
      return problem_response(refusal.status, refusal.detail);
    }
  };
}

/// The tenant whose entries a request means: that of the caller, or the parameter `tenant`. Empty
/// for a store without tenants. Throws refused_request with 403 for another tenant than the
/// caller's, errc::invalid_argument if a tenant is needed and missing, or given and not possible,
/// and errc::not_found for an unknown tenant.
[[nodiscard]] std::string realm_of(const store_service& service, const api_request& request);

/// The path parameter `name` or `key`. With `?encoding=base64url` it is decoded: a path cannot have
/// slashes in a segment. Throws errc::invalid_argument, and errc::ill_formed_text, if a store could
/// not have it.
[[nodiscard]] std::string entry_name(const api_request& request);
[[nodiscard]] std::string entry_key(const api_request& request);

/// The parameters that the functions above read, for endpoint::query.
inline constexpr query_parameter tenant_parameter{
    "tenant", parameter_type::text, "The tenant of the entries, for callers without a tenant"};
inline constexpr query_parameter encoding_parameter{
    "encoding", parameter_type::text, "base64url: name and key of the path are encoded so"};

/// The time of the services' clock, or of the system.
[[nodiscard]] timestamp current_time(const services& shared);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
