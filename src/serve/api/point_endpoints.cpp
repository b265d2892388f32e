#include "serve/api/point_endpoints.hpp"

#include "serve/api/call_endpoints.hpp"
#include "serve/api/call_points.hpp"
#include "serve/api/drill_endpoints.hpp"
#include "serve/api/endpoint_table.hpp"
#include "serve/api/point_entry_endpoints.hpp"
#include "serve/api/point_json.hpp"

#include <algorithm>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

server_response list_points(services& shared, const api_request& request) {
  const auto limit = static_cast<std::size_t>(request.query_integer("limit", 100, 1, 1000));
  const auto after = request.query("after").value_or("");
  const auto points = shared.engine->points();
  auto it = std::ranges::upper_bound(points, after, {}, &point_status::name);
  if (after.empty()) it = points.begin();
  json_writer out;
  out.begin_object().key("items").begin_array();
  std::string last;
  for (std::size_t count = 0; it != points.end() && count < limit; ++it, ++count) {
    write_point(out, *it);
    last = it->name;
  }
  out.end_array();
  if (it != points.end()) out.member("next", last);
  out.end_object();
  return json_response(200, out.take());
}

server_response describe_point(services& shared, const api_request& request) {
  const auto& name = request.path("point");
  json_writer out;
  out.begin_object().key("status");
  write_point(out, shared.engine->status(name));
  out.key("rules");
  write_rules(out, shared.engine->resolved(name));
  out.key("coverage");
  write_coverage(out, shared.engine->coverage(name));
  out.end_object();
  return json_response(200, out.take());
}

server_response describe_outlook(services& shared, const api_request& request) {
  json_writer out;
  write_outlook(out, shared.engine->outlook(request.path("point")));
  return json_response(200, out.take());
}

server_response describe_coverage(services& shared, const api_request& request) {
  json_writer out;
  write_coverage(out, shared.engine->coverage(request.path("point")));
  return json_response(200, out.take());
}

}  // namespace

void add_point_endpoints(endpoint_table& table, services& shared) {
  if (!shared.engine) return;
  const std::vector<role> readers{role::viewer, role::operator_};
  table.add({.method = "GET",
             .path = "/v1/points",
             .summary = "The points and their numbers, by name",
             .roles = readers,
             .query = {{.name = "after", .description = "Names after this one"},
                       {.name = "limit",
                        .type = parameter_type::integer,
                        .description = "At most so many, up to 1000"}},
             .answer = [&shared](api_request& request) { return list_points(shared, request); }});
  table.add(
      {.method = "GET",
       .path = "/v1/points/{point}",
       .summary = "The numbers of a point, and the rules in force",
       .roles = readers,
       .statuses = {200, 404},
       .answer = [&shared](api_request& request) { return describe_point(shared, request); }});
  table.add(
      {.method = "GET",
       .path = "/v1/points/{point}/outlook",
       .summary = "What expires when, if the upstream stays down",
       .roles = readers,
       .statuses = {200, 404, 504},
       .answer = [&shared](api_request& request) { return describe_outlook(shared, request); }});
  table.add(
      {.method = "GET",
       .path = "/v1/points/{point}/coverage",
       .summary = "Which part of recent calls kept answers could have served",
       .roles = readers,
       .statuses = {200, 404},
       .answer = [&shared](api_request& request) { return describe_coverage(shared, request); }});
  const auto points = std::make_shared<call_points>(shared.engine, shared.point_names);
  add_point_entry_endpoints(table, shared, points);
  add_drill_endpoints(table, shared);
  add_call_endpoints(table, shared, points);
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
