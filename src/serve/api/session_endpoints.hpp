#pragma once

#include <holdfast/version.hpp>

namespace HOLDFAST_NAMESPACE::detail::serve {

class endpoint_table;
struct services;

/// /v1/session: signing in and out of the console, and who the caller is.
void add_session_endpoints(endpoint_table& table, services& shared);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
