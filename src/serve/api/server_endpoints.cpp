#include "serve/api/server_endpoints.hpp"

#include "serve/api/endpoint_table.hpp"
#include "serve/api/health_answers.hpp"
#include "serve/api/host_names.hpp"
#include "serve/api/json_writer.hpp"
#include "serve/api/openapi.hpp"

#include <memory>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

/// A scraper on this machine needs no token; it sees no more than a viewer.
bool may_see_metrics(const caller& client) {
  if (!client.identified) return is_loopback(client.address);
  return client.role != role::application && client.tenant.empty();
}

server_response answer_scraper(const api_request& request, const server_view& view) {
  if (!may_see_metrics(request.caller)) {
    if (request.caller.identified)
      return problem_response(403, "this needs the role viewer, and no tenant");
    auto refusal = problem_response(401, "send a token of a viewer: Authorization: Bearer hf_...");
    refusal.fields.add("WWW-Authenticate", "Bearer realm=\"holdfast\"");
    return refusal;
  }
  return metrics_answer(view.metrics());
}

server_response configuration_answer(const server_view& view) {
  json_writer out;
  out.begin_object().member("file", view.file).key("items").begin_array();
  for (const auto& value : view.configuration()) {
    out.begin_object().member("key", value.key).member("value", value.value);
    out.member("line", value.line).end_object();
  }
  return json_response(200, out.end_array().end_object().take());
}

constexpr std::string_view readiness_schema = R"({"type":"object","required":["ready","missing"],
"properties":{"ready":{"type":"boolean"},"missing":{"type":"array","items":{"type":"string"}}}})";
constexpr std::string_view configuration_schema = R"({"type":"object","required":["file","items"],
"properties":{"file":{"type":"string"},"items":{"type":"array","items":{"type":"object",
"required":["key","value","line"],"properties":{"key":{"type":"string"},
"value":{"type":"string"},"line":{"type":"integer","description":"0: not from the file"}}}}}})";

}  // namespace

void add_server_endpoints(endpoint_table& table, server_view view) {
  const auto shared = std::make_shared<const server_view>(std::move(view));
  // On the loops: they answer while all workers wait for a database.
  table.add({.method = "GET",
             .path = "/healthz",
             .summary = "Whether the process works: all loops react within a second",
             .statuses = {200, 503},
             .immediate = true,
             .answer = [shared](api_request&) { return liveness_answer(shared->hung_loops()); }});
  table.add({.method = "GET",
             .path = "/readyz",
             .summary = "Whether the server should get requests, and what is missing",
             .response_schema = readiness_schema,
             .statuses = {200, 503},
             .immediate = true,
             .answer = [shared](api_request&) { return readiness_answer(shared->missing()); }});
  table.add(
      {.method = "GET",
       .path = "/metrics",
       .summary = "Metrics in the text format of Prometheus; for viewers and this machine",
       .answer = [shared](api_request& request) { return answer_scraper(request, *shared); }});
  table.add({.method = "GET",
             .path = "/v1/configuration",
             .summary = "The keys that are in force, without secrets",
             .roles = {role::operator_},
             .response_schema = configuration_schema,
             .answer = [shared](api_request&) { return configuration_answer(*shared); }});
  add_openapi_endpoint(table);
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
