#pragma once

#include <holdfast/version.hpp>

#include <memory>

namespace HOLDFAST_NAMESPACE::detail::serve {

class endpoint_table;
class store_watch;
struct services;

/// GET /v1/search: finds an id, a key, a URL or a name.
void add_search_endpoints(endpoint_table& table, services& shared,
                          const std::shared_ptr<store_watch>& watch);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
