#include "serve/api/outbox_admin.hpp"

#include <holdfast/error.hpp>

#include "serve/api/endpoint_table.hpp"
#include "serve/api/outbox_access.hpp"
#include "serve/api/outbox_json.hpp"

#include <functional>
#include <string>
#include <variant>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

bool may_read(const caller& actor, const std::string& outbox) {
  return tenant_may_use(actor, outbox) &&
         (actor.role != role::application || actor.has_scope("outbox:" + outbox + ":read"));
}

bool sees_backend_messages(const caller& actor) noexcept {
  return actor.role == role::operator_ || actor.role == role::admin;
}

/// The numbers of an outbox, or why there are none.
using outbox_answer = std::variant<outbox_stats, error>;

outbox_answer ask_outbox(const outbox_service& service) {
  try {
    const auto call = service.calls->begin();
    return service.outbox.admin().stats();
  } catch (const error& problem) {
    return problem;
  }
}

void write_outbox(json_writer& out, const outbox_service& service, const outbox_answer& answer,
                  const caller& actor) {
  out.begin_object().member("name", service.name).member("lanes", service.outbox.lanes());
  const auto* const problem = std::get_if<error>(&answer);
  out.member("available", problem == nullptr);
  if (problem != nullptr) write_problem(out.key("problem"), *problem, sees_backend_messages(actor));
  else write_stats(out, std::get<outbox_stats>(answer));
  out.end_object();
}

/// One database that is down or hangs must not hide the others.
server_response list_outboxes(const services& shared, const api_request& request) {
  std::vector<const outbox_service*> visible;
  std::vector<std::function<outbox_answer()>> questions;
  for (const auto& service : shared.outboxes) {
    if (!may_read(request.caller, service.name)) continue;
    visible.push_back(&service);
    questions.emplace_back([&service] { return ask_outbox(service); });
  }
  const auto answers = shared.databases->ask(std::move(questions));
  const outbox_answer late =
      error(errc::timeout, "the database does not answer in time", {.transient = true});
  json_writer out;
  out.begin_object().key("items").begin_array();
  for (std::size_t i = 0; i < visible.size(); ++i)
    write_outbox(out, *visible[i], answers[i].value_or(late), request.caller);
  out.end_array().end_object();
  return json_response(200, out.take());
}

server_response show_outbox(const outbox_service& service, const api_request&) {
  const auto admin = service.outbox.admin();
  outbox_stats sum;
  json_writer lanes;
  lanes.begin_array();
  for (std::size_t lane = 0; lane < service.outbox.lanes(); ++lane) {
    const auto stats = admin.stats(lane);
    sum += stats;
    lanes.begin_object().member("lane", lane);
    write_stats(lanes, stats);
    lanes.end_object();
  }
  lanes.end_array();
  json_writer out;
  out.begin_object().member("name", service.name).member("available", true);
  write_stats(out, sum);
  out.key("lanes").raw(lanes.json()).end_object();
  return json_response(200, out.take());
}

server_response set_paused(const services& shared, const outbox_service& service,
                           const api_request& request, bool paused) {
  const auto record = [&](std::string result) {
    if (shared.audit != nullptr)
      shared.audit->record(request.caller, paused ? "outbox.pause" : "outbox.resume", service.name,
                           service.outbox.lanes(), std::move(result));
  };
  try {
    if (paused) service.outbox.admin().pause();
    else service.outbox.admin().resume();
  } catch (const error& problem) {
    record(std::string("failed: ") + problem.what());
    throw;
  }
  record("done");
  json_writer out;
  out.begin_object().member("paused", paused).end_object();
  return json_response(200, out.take());
}

}  // namespace

void add_outbox_admin_endpoints(endpoint_table& table, services& shared) {
  const std::vector<role> readers{role::viewer, role::operator_, role::application};
  table.add(
      {.method = "GET",
       .path = "/v1/outboxes",
       .summary = "The outboxes that the caller may read, with their numbers",
       .roles = readers,
       .for_tenants = true,
       .answer = [&shared](const api_request& request) { return list_outboxes(shared, request); }});
  table.add({.method = "GET",
             .path = "/v1/outboxes/{outbox}",
             .summary = "The numbers of an outbox, and of each of its lanes",
             .roles = readers,
             .scope = "outbox:{outbox}:read",
             .for_tenants = true,
             .statuses = {200, 504},
             .answer = on_outbox(shared, show_outbox)});
  for (const bool paused : {true, false}) {
    table.add({.method = "POST",
               .path = paused ? "/v1/outboxes/{outbox}/pause" : "/v1/outboxes/{outbox}/resume",
               .summary = paused ? "Stops the delivery to all workers; publishing continues"
                                 : "Delivers again",
               .roles = {role::operator_},
               .scope = "outbox:{outbox}:act",
               .for_tenants = true,
               .statuses = {200, 504},
               .answer = on_outbox(
                   shared, [&shared, paused](outbox_service& service, api_request& request) {
                     return set_paused(shared, service, request, paused);
                   })});
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
