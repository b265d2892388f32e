#include "serve/api/endpoints.hpp"

#include "serve/api/audit_endpoints.hpp"
#include "serve/api/endpoint_table.hpp"
#include "serve/api/explain_endpoints.hpp"
#include "serve/api/point_endpoints.hpp"
#include "serve/api/services.hpp"
#include "serve/api/session_endpoints.hpp"
#include "serve/api/token_endpoints.hpp"

namespace HOLDFAST_NAMESPACE::detail::serve {

// One line for each part, in the order of the OpenAPI document.
void add_endpoints(endpoint_table& table, services& shared) {
  add_session_endpoints(table, shared);
  add_token_endpoints(table, shared);
  add_audit_endpoints(table, shared);
  add_point_endpoints(table, shared);
  add_explain_endpoints(table, shared);
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
