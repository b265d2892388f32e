#include "serve/api/endpoints.hpp"

#include "serve/api/endpoint_table.hpp"
#include "serve/api/services.hpp"

namespace HOLDFAST_NAMESPACE::detail::serve {

// One line for each part, in the order of the OpenAPI document.
void add_endpoints([[maybe_unused]] endpoint_table& table, [[maybe_unused]] services& shared) {}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
