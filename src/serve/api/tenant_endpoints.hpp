#pragma once

#include <holdfast/version.hpp>

#include <memory>

namespace HOLDFAST_NAMESPACE::detail::serve {

class endpoint_table;
class store_watch;
struct services;

/// /v1/tenants: the tenants of all stores.
void add_tenant_endpoints(endpoint_table& table, services& shared,
                          const std::shared_ptr<store_watch>& watch);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
