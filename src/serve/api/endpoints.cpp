#include "serve/api/endpoints.hpp"

#include "serve/api/endpoint_table.hpp"
#include "serve/api/entry_endpoints.hpp"
#include "serve/api/explain_endpoints.hpp"
#include "serve/api/key_endpoints.hpp"
#include "serve/api/point_endpoints.hpp"
#include "serve/api/search_endpoints.hpp"
#include "serve/api/sequence_cache.hpp"
#include "serve/api/sequence_endpoints.hpp"
#include "serve/api/services.hpp"
#include "serve/api/store_endpoints.hpp"
#include "serve/api/store_watch.hpp"
#include "serve/api/tenant_endpoints.hpp"

namespace HOLDFAST_NAMESPACE::detail::serve {

// One line for each part, in the order of the OpenAPI document.
void add_endpoints(endpoint_table& table, services& shared) {
  const auto watch = std::make_shared<store_watch>(shared);
  add_key_endpoints(table, shared);
  add_store_endpoints(table, shared, watch);
  add_entry_endpoints(table, shared, watch);
  add_sequence_endpoints(table, shared, std::make_shared<sequence_cache>(shared));
  add_tenant_endpoints(table, shared, watch);
  add_search_endpoints(table, shared, watch);
  add_point_endpoints(table, shared);
  add_explain_endpoints(table, shared);
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
