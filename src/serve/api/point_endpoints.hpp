#pragma once

#include "serve/api/services.hpp"

namespace HOLDFAST_NAMESPACE::detail::serve {

class endpoint_table;

/// Endpoints below /v1/points. Registers the points of the configuration, so the engine must be
/// there. Adds nothing if there is none.
void add_point_endpoints(endpoint_table& table, services& shared);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
