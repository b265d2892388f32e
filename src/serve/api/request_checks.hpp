#pragma once

/// \file
/// The checks between the router and an endpoint. Each returns the answer that refuses the request,
/// or nothing.

#include <holdfast/version.hpp>

#include "serve/api/endpoint.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// 401 without a caller, 403 if the role, the scope or the tenant of the caller does not suffice.
[[nodiscard]] std::optional<server_response> check_permission(const endpoint& row,
                                                              const api_request& request);

/// Decodes the query into `request.query_parameters`. 400 for a parameter that the row does not
/// declare, that occurs twice, or whose value has not the declared type. `+` stands for a space, as
/// in forms.
[[nodiscard]] std::optional<server_response> read_query(const endpoint& row, api_request& request);

/// 413 for content beyond the limit of the row, 415 for a media type that it does not accept.
[[nodiscard]] std::optional<server_response> check_content(const endpoint& row,
                                                           const api_request& request);

/// `store:{store}:read` with the parameters of the path. A colon in a parameter becomes `%3A`, so
/// that it cannot be taken for another part of the scope.
[[nodiscard]] std::string expand_scope(
    std::string_view scope, const std::vector<std::pair<std::string, std::string>>& parameters);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
