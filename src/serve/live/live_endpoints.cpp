#include "serve/live/live_endpoints.hpp"

#include <holdfast/error.hpp>

#include "serve/api/json_reader.hpp"
#include "serve/api/json_writer.hpp"

#include <algorithm>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

/// The sentence in front of an answer does not depend on the caller, but the numbers are those of
/// all tenants.
void refuse_tenant(const api_request& request) {
  if (!request.caller.tenant.empty())
    throw error(errc::permission, "the state of the server is not for a single tenant");
}

/// A time or duration of the query, read as a member of JSON is.
json_object parameters_of(const api_request& request,
                          std::initializer_list<std::string_view> names) {
  json_writer out;
  out.begin_object();
  for (const auto name : names)
    if (const auto text = request.query(name)) out.member(name, *text);
  return json_object::parse(out.end_object().json());
}

std::vector<std::string> split_series(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const auto part = text.substr(0, text.find(','));
    if (!part.empty()) parts.emplace_back(part);
    text.remove_prefix(std::min(text.size(), part.size() + 1));
  }
  return parts;
}

std::string history_json(const history_answer& answer) {
  json_writer out;
  out.begin_object().key("at").begin_array();
  for (const auto moment : answer.moment) out.time(moment);
  out.end_array().key("series").begin_array();
  for (const auto& series : answer.all) {
    out.begin_object().member("name", series.id.name).key("labels").begin_object();
    out.member(series.id.name.substr(0, series.id.name.find('.')), series.id.subject);
    out.end_object().key("values").begin_array();
    for (const auto value : series.values) out.number(value);
    out.end_array().end_object();
  }
  return out.end_array().end_object().take();
}

server_response answer_history(const live_parts& parts, const api_request& request) {
  refuse_tenant(request);
  const auto names = request.query("series");
  if (!names)
    throw error(errc::invalid_argument, "give series, such as point.rate:countries",
                {.path = "series"});
  auto parameters = parameters_of(request, {"from", "to", "step"});
  const auto now = parts.shared.clock->now();
  history_request question{
      .series = split_series(*names),
      .begin_time = parameters.time("from").value_or(now - std::chrono::hours(1)),
      .end_time = parameters.time("to").value_or(now)};
  question.step = std::chrono::duration_cast<std::chrono::seconds>(
      parameters.duration("step").value_or(std::chrono::seconds(10)));
  return json_response(200, history_json(parts.past.read(question)));
}

server_response answer_incidents(const live_parts& parts, const api_request& request) {
  refuse_tenant(request);
  const auto limit = static_cast<std::size_t>(request.query_integer("limit", 100, 1, 1'000));
  const auto page = parts.incidents.list(limit + 1, request.query("after").value_or(""));
  json_writer out;
  out.begin_object().key("items").begin_array();
  for (std::size_t i = 0; i < std::min(limit, page.size()); ++i) {
    const auto& each = page[i];
    out.begin_object().member("id", each.id).member("opened", each.opened).key("closed");
    if (each.closed) out.time(*each.closed);
    else out.null();
    out.key("subjects").begin_array();
    for (const auto& subject : each.subjects) out.text(subject);
    out.end_array().member("entries", each.timeline.size()).end_object();
  }
  out.end_array();
  if (page.size() > limit) out.member("next", page[limit - 1].id);
  return json_response(200, out.end_object().take());
}

server_response answer_incident(const live_parts& parts, const api_request& request) {
  refuse_tenant(request);
  const auto match = parts.incidents.find(request.path("id"));
  if (!match) throw error(errc::not_found, "there is no incident with this id");
  const auto format = request.query("format").value_or("json");
  if (format == "json") return json_response(200, to_json(*match));
  if (format != "markdown")
    throw error(errc::invalid_argument, "the format is json or markdown", {.path = "format"});
  server_response response{.body = to_markdown(*match)};
  response.fields.add("Content-Type", "text/markdown; charset=utf-8");
  response.fields.add("Content-Disposition",
                      "attachment; filename=\"incident-" + match->id + ".md\"");
  return response;
}

server_response answer_note(const live_parts& parts, const api_request& request) {
  refuse_tenant(request);
  auto body = json_object::parse(request.body);
  const auto text = body.required_text("text");
  body.finish();
  const auto& id = request.path("id");
  const auto changed =
      parts.incidents.add_note(id, request.caller.name, text, parts.shared.clock->now());
  if (parts.shared.audit != nullptr)
    parts.shared.audit->record(request.caller, "incident.note", id, 1, "done");
  return json_response(201, to_json(changed));
}

}  // namespace

std::vector<endpoint> live_endpoints(live_parts parts) {
  const std::vector<role> readers{role::viewer, role::operator_};
  std::vector<endpoint> rows;
  rows.push_back({.method = "GET",
                  .path = "/v1/status",
                  .summary = "The state of everything in one object, computed once a second",
                  .roles = readers,
                  .answer = [parts](api_request& request) {
                    refuse_tenant(request);
                    const auto status = parts.state.status();
                    if (!status)
                      throw error(errc::unavailable, "the server is starting; ask again",
                                  {.transient = true});
                    return json_response(200, *status);
                  }});
  rows.push_back({.method = "GET",
                  .path = "/v1/events",
                  .summary = "Server-Sent Events: state, incident, job, audit and bye",
                  .roles = readers,
                  .start = [parts](const std::shared_ptr<api_request>& request, responder answer) {
                    parts.hub.subscribe(request->caller, request->fields.find("Last-Event-ID"),
                                        std::move(answer));
                  }});
  rows.push_back(
      {.method = "GET",
       .path = "/v1/history",
       .summary = "Numbers over time, at most 20,000",
       .roles = readers,
       .query = {{"series", parameter_type::text,
                  "Names with commas: point.rate, or point.rate:countries"},
                 {"from", parameter_type::time, "Default: an hour ago"},
                 {"to", parameter_type::time, "Default: now"},
                 {"step", parameter_type::duration, "10s to 24h; default 10s"}},
       .answer = [parts](api_request& request) { return answer_history(parts, request); }});
  rows.push_back(
      {.method = "GET",
       .path = "/v1/incidents",
       .summary = "Incidents, the newest first",
       .roles = readers,
       .query = {{"after", parameter_type::text, "The id in next of the page before"},
                 {"limit", parameter_type::integer, "1 to 1000; default 100"}},
       .answer = [parts](api_request& request) { return answer_incidents(parts, request); }});
  rows.push_back(
      {.method = "GET",
       .path = "/v1/incidents/{id}",
       .summary = "An incident with its timeline",
       .roles = readers,
       .query = {{"format", parameter_type::text, "json or markdown"}},
       .answer = [parts](api_request& request) { return answer_incident(parts, request); }});
  rows.push_back({.method = "POST",
                  .path = "/v1/incidents/{id}/notes",
                  .summary = "Adds a note to an incident",
                  .roles = {role::operator_},
                  .accepts = {"application/json"},
                  .request_schema = R"({"type":"object","required":["text"],"properties":{)"
                                    R"("text":{"type":"string","maxLength":4000}}})",
                  .statuses = {201},
                  .max_body = std::size_t{32} << 10U,
                  .answer = [parts](api_request& request) { return answer_note(parts, request); }});
  return rows;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
