#pragma once

#include "serve/api/services.hpp"

namespace HOLDFAST_NAMESPACE::detail::serve {

class call_points;
class endpoint_table;

/// The entries of a point, and their invalidation.
void add_point_entry_endpoints(endpoint_table& table, services& shared,
                               const std::shared_ptr<call_points>& points);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
