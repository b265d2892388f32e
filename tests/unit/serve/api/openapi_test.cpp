// The OpenAPI document has every row of the table, and nothing else.

#include "serve/api/openapi.hpp"

#include "serve/api/endpoint_table.hpp"

#include <gtest/gtest.h>
#include <simdjson.h>

#include <set>
#include <string>

namespace {

using namespace holdfast::detail::serve;

server_response ok(api_request&) { return {}; }

endpoint_table two_rows() {
  endpoint_table table;
  table.add({.method = "GET",
             .path = "/v1/points/{point}/entries",
             .summary = "Lists \"entries\"",
             .roles = {role::viewer, role::application},
             .scope = "point:{point}:read",
             .query = {{.name = "after"}, {.name = "limit", .type = parameter_type::integer}},
             .response_schema = R"({"type":"object"})",
             .statuses = {200, 404},
             .answer = ok});
  table.add({.method = "POST",
             .path = "/v1/points/{point}/entries",
             .summary = "s",
             .roles = {role::operator_},
             .accepts = {"application/json"},
             .request_schema = R"({"type":"object","properties":{"key":{"type":"string"}}})",
             .statuses = {202},
             .answer = ok});
  add_openapi_endpoint(table);
  return table;
}

TEST(OpenApi, HasEveryRow) {
  const auto table = two_rows();
  simdjson::dom::parser parser;
  const simdjson::dom::element document = parser.parse(openapi_document(table));
  EXPECT_EQ(std::string_view(document["openapi"]), "3.1.0");
  std::set<std::string> operations;
  for (const auto& [path, methods] : simdjson::dom::object(document["paths"])) {
    for (const auto& [method, operation] : simdjson::dom::object(methods))
      operations.insert(std::string(method) + " " + std::string(path));
  }
  EXPECT_EQ(operations,
            (std::set<std::string>{"get /v1/openapi.json", "get /v1/points/{point}/entries",
                                   "post /v1/points/{point}/entries"}));
  const simdjson::dom::element get = document["paths"]["/v1/points/{point}/entries"]["get"];
  EXPECT_EQ(std::string_view(get["operationId"]), "get_v1_points_point_entries");
  EXPECT_EQ(simdjson::dom::array(get["parameters"]).size(), 3U);
  EXPECT_EQ(std::string_view(get["x-holdfast-scope"]), "point:{point}:read");
  EXPECT_EQ(std::string_view(get["responses"]["200"]["description"]), "OK");
  EXPECT_EQ(std::string_view(get["responses"]["404"]["$ref"]), "#/components/responses/problem");
  const simdjson::dom::element post = document["paths"]["/v1/points/{point}/entries"]["post"];
  EXPECT_EQ(std::string_view(post["requestBody"]["content"]["application/json"]["schema"]["type"]),
            "object");
}

}  // namespace
