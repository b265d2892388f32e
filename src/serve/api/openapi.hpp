#pragma once

#include <holdfast/version.hpp>

#include <string>

namespace HOLDFAST_NAMESPACE::detail::serve {

class endpoint_table;

/// The OpenAPI 3.1 document of all rows.
[[nodiscard]] std::string openapi_document(const endpoint_table& table);

/// `GET /v1/openapi.json`. The document has the rows that are in the table at the first request.
void add_openapi_endpoint(endpoint_table& table);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
