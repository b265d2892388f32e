#pragma once

#include <holdfast/version.hpp>

namespace HOLDFAST_NAMESPACE::detail::serve {

class endpoint_table;
struct services;

/// /v1/audit, for admins.
void add_audit_endpoints(endpoint_table& table, services& shared);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
