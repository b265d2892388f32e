#pragma once

#include <holdfast/version.hpp>

namespace HOLDFAST_NAMESPACE::detail::serve {

class endpoint_table;
struct services;

/// Endpoints below /v1/tokens, for admins.
void add_token_endpoints(endpoint_table& table, services& shared);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
