#pragma once

#include <holdfast/version.hpp>

#include <memory>

namespace HOLDFAST_NAMESPACE::detail::serve {

class endpoint_table;
class store_watch;
struct services;

/// /v1/stores, /v1/stores/{store} with its names, keys, doctor and clean.
void add_store_endpoints(endpoint_table& table, services& shared,
                         const std::shared_ptr<store_watch>& watch);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
