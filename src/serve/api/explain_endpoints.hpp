#pragma once

#include <holdfast/version.hpp>

namespace HOLDFAST_NAMESPACE::detail::serve {

class endpoint_table;
struct services;

/// GET /v1/explain/{ref} and /v1/decisions.
void add_explain_endpoints(endpoint_table& table, services& shared);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
