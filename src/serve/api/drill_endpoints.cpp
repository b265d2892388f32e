#include "serve/api/drill_endpoints.hpp"

#include "serve/api/endpoint_table.hpp"
#include "serve/api/json_reader.hpp"
#include "serve/api/point_json.hpp"

#include <algorithm>
#include <charconv>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

server_response drill_response(int status, const drill_report& report) {
  json_writer out;
  write_drill(out, report);
  return json_response(status, out.take());
}

double part_of(const std::string& json) {
  double part = 0;
  const auto* const end = json.data() + json.size();
  const auto [stop, status] = std::from_chars(json.data(), end, part);
  if (status != std::errc{} || stop != end)
    throw error(errc::invalid_argument, "must be a number from 0 to 1", {.path = "part"});
  return part;
}

drill_options drill_options_of(const std::string& body) {
  drill_options options;
  if (body.empty()) return options;
  auto json = json_object::parse(body);
  if (const auto part = json.raw("part")) options.part = part_of(*part);
  if (const auto length = json.duration("length")) options.length = *length;
  options.what_if = json.boolean("whatIf").value_or(false);
  json.finish();
  return options;
}

void audit(services& shared, const api_request& request, const char* action, std::uint64_t count,
           std::string result) {
  if (shared.audit != nullptr)
    shared.audit->record(request.caller, action, request.path("point"), count, std::move(result));
}

server_response start_drill(services& shared, const api_request& request) {
  const auto options = drill_options_of(request.body);
  try {
    const auto report = shared.engine->drill(request.path("point"), options);
    audit(shared, request, "point.drill", 1, options.what_if ? "done: what if" : "done");
    return drill_response(201, report);
  } catch (const error& refusal) {
    audit(shared, request, "point.drill", 0, "refused: " + refusal.message());
    throw;
  }
}

server_response end_drill(services& shared, const api_request& request) {
  const auto report = shared.engine->end_drill(request.path("point"));
  audit(shared, request, "point.drill.end", report.served, "done");
  return drill_response(200, report);
}

server_response show_drill(services& shared, const api_request& request) {
  const auto& name = request.path("point");
  (void)shared.engine->status(name);  // 404 if there is no such point
  for (const auto& report : shared.engine->drills()) {
    if (report.point == name) return drill_response(200, report);
  }
  throw error(errc::not_found, "there was no drill of this point", {.path = "point"});
}

server_response list_drills(services& shared) {
  json_writer out;
  out.begin_object().key("items").begin_array();
  for (const auto& report : shared.engine->drills()) write_drill(out, report);
  out.end_array().end_object();
  return json_response(200, out.take());
}

}  // namespace

void add_drill_endpoints(endpoint_table& table, services& shared) {
  const std::vector<role> readers{role::viewer, role::operator_};
  table.add({.method = "GET",
             .path = "/v1/drills",
             .summary = "The running or last drill of each point",
             .roles = readers,
             .answer = [&shared](api_request&) { return list_drills(shared); }});
  table.add({.method = "GET",
             .path = "/v1/points/{point}/drill",
             .summary = "The running or last drill of a point",
             .roles = readers,
             .statuses = {200, 404},
             .answer = [&shared](api_request& request) { return show_drill(shared, request); }});
  table.add({.method = "POST",
             .path = "/v1/points/{point}/drill",
             .summary = "Rehearses an outage on a part of the calls, for at most 15 minutes",
             .roles = {role::operator_},
             .accepts = {"application/json"},
             .request_schema = R"({"type":"object","properties":{"part":{"type":"number"},)"
                               R"("length":{"type":"string"},"whatIf":{"type":"boolean"}}})",
             .statuses = {201, 404, 409},
             .answer = [&shared](api_request& request) { return start_drill(shared, request); }});
  table.add({.method = "DELETE",
             .path = "/v1/points/{point}/drill",
             .summary = "Ends the drill of a point",
             .roles = {role::operator_},
             .statuses = {200, 404},
             .answer = [&shared](api_request& request) { return end_drill(shared, request); }});
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
