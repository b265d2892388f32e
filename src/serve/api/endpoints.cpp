#include "serve/api/endpoints.hpp"

#include "serve/api/endpoint_table.hpp"
#include "serve/api/explain_endpoints.hpp"
#include "serve/api/point_endpoints.hpp"
#include "serve/api/services.hpp"

namespace HOLDFAST_NAMESPACE::detail::serve {

// One line for each part, in the order of the OpenAPI document.
void add_endpoints(endpoint_table& table, services& shared) {
  add_point_endpoints(table, shared);
  add_explain_endpoints(table, shared);
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
