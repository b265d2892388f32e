#pragma once

#include "serve/api/services.hpp"

namespace HOLDFAST_NAMESPACE::detail::serve {

class endpoint_table;

/// GET, POST and DELETE of /v1/points/{point}/drill, and GET /v1/drills.
void add_drill_endpoints(endpoint_table& table, services& shared);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
