#pragma once

#include "serve/api/services.hpp"

namespace HOLDFAST_NAMESPACE::detail::serve {

class call_points;
class endpoint_table;

/// POST /v1/points/{point}/answers and .../recover: protected calls of other programs. The points
/// outlive the table.
void add_call_endpoints(endpoint_table& table, services& shared,
                        const std::shared_ptr<call_points>& points);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
