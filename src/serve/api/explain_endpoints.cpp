#include "serve/api/explain_endpoints.hpp"

#include "serve/api/endpoint_table.hpp"
#include "serve/api/point_json.hpp"
#include "serve/api/services.hpp"

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

decision_log& decisions_of(services& shared) {
  if (!shared.decisions)
    throw error(errc::not_found, "no decisions are recorded: no store is configured");
  return *shared.decisions;
}

server_response explain_decision(services& shared, const api_request& request) {
  const auto reported = decisions_of(shared).find(request.path("ref"));
  if (!reported)
    throw error(errc::not_found,
                "there is no decision with this reference; the last " +
                    std::to_string(decision_log::default_capacity) + " are kept",
                {.path = "ref"});
  json_writer out;
  write_decision(out, *reported);
  return json_response(200, out.take());
}

server_response list_decisions(services& shared, const api_request& request) {
  const auto limit = request.query_integer("limit", 100, 1, 1000);
  const auto point = request.query("point").value_or("");
  json_writer out;
  out.begin_object().key("items").begin_array();
  for (const auto& reported : decisions_of(shared).latest(point, static_cast<std::size_t>(limit)))
    write_decision(out, reported);
  out.end_array().end_object();
  return json_response(200, out.take());
}

}  // namespace

void add_explain_endpoints(endpoint_table& table, services& shared) {
  table.add(
      {.method = "GET",
       .path = "/v1/explain/{ref}",
       .summary = "Why a call got its answer",
       .roles = {role::viewer, role::operator_},
       .statuses = {200, 404},
       .answer = [&shared](api_request& request) { return explain_decision(shared, request); }});
  table.add(
      {.method = "GET",
       .path = "/v1/decisions",
       .summary = "The last decisions, the newest first",
       .roles = {role::viewer, role::operator_},
       .query = {{.name = "point", .description = "Only those of this point"},
                 {.name = "limit",
                  .type = parameter_type::integer,
                  .description = "At most so many, up to 1000"}},
       .answer = [&shared](api_request& request) { return list_decisions(shared, request); }});
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
