#pragma once

#include <holdfast/version.hpp>

#include <memory>

namespace HOLDFAST_NAMESPACE::detail::serve {

class endpoint_table;
class store_watch;
struct services;

/// GET, PUT and DELETE of /v1/stores/{store}/{name}/{key}.
void add_entry_endpoints(endpoint_table& table, services& shared,
                         const std::shared_ptr<store_watch>& watch);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
