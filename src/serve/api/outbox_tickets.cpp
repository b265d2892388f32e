#include "serve/api/outbox_tickets.hpp"

#include <holdfast/error.hpp>

#include "serve/api/endpoint_table.hpp"
#include "serve/api/event_reader.hpp"
#include "serve/api/json_reader.hpp"
#include "serve/api/json_slices.hpp"
#include "serve/api/outbox_access.hpp"
#include "serve/api/outbox_json.hpp"
#include "serve/api/outbox_scan.hpp"

#include <optional>
#include <string>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

constexpr std::string_view ticket_path = "/v1/outboxes/{outbox}/tickets/{ticket}";

scheduled schedule(const outbox_service& service, const std::string& ticket,
                   const std::optional<timestamp>& due,
                   const std::optional<std::chrono::milliseconds>& after, const event& becomes) {
  try {
    return due ? service.outbox.schedule(ticket, *due, becomes)
               : service.outbox.schedule(ticket, after.value_or(std::chrono::milliseconds(0)),
                                         becomes);
  } catch (const error& problem) {
    throw with_client_advice(problem, service);
  }
}

server_response schedule_ticket(const outbox_service& service, const api_request& request) {
  auto body = json_object::parse(request.body);
  const auto due = body.time("at");
  const auto after = body.duration("after");
  auto object = body.object("event");
  body.finish();
  if (due.has_value() == after.has_value())
    throw error(errc::invalid_argument, "send either at (a time) or after (a duration)");
  if (!object)
    throw error(errc::invalid_argument, "is required: the event that the ticket becomes",
                {.path = "event"});
  const auto becomes = read_event(*object, member_slice(request.body, "event"));
  const auto& ticket = request.path("ticket");
  const auto result = schedule(service, ticket, due, after, becomes);
  json_writer out;
  out.begin_object().member("ticket", ticket).member("expiresAt", result.expires_at);
  if (result.before) out.member("before", *result.before);
  out.end_object();
  return json_response(result.before ? 200 : 201, out.take());
}

server_response cancel_ticket(const outbox_service& service, const api_request& request) {
  const auto key = request.query("key").value_or("");
  switch (service.outbox.cancel(request.path("ticket"), key)) {
    case cancel_status::cancelled:
      return {.status = 204};
    case cancel_status::fired:
      return problem_response(409, "it is too late: the ticket has become its event");
    case cancel_status::unknown:
      break;
  }
  return problem_response(
      404, "there is no such ticket; if its event has a key, the parameter key must name it");
}

/// Tickets are found by scanning their lane.
server_response show_ticket(const services& shared, const outbox_service& service,
                            const api_request& request) {
  const auto& ticket = request.path("ticket");
  const auto key = request.query("key").value_or("");
  const auto lane = service.outbox.lane_of(key.empty() ? ticket : key);
  const auto turn = shared.questions->enter(service.url);
  scan_budget budget(*shared.clock);
  std::string after;
  do {
    auto page = service.outbox.backend()->scan(lane, scan_what::tickets, after, scan_page_size);
    for (const auto& record : page.records) {
      if (record.details.event.id != ticket) continue;
      json_writer out;
      write_record(out, record, payload_view::none);
      return json_response(200, out.take());
    }
    budget.spend(page.records.size());
    after = std::move(page.after);
  } while (!after.empty() && !budget.is_spent());
  if (after.empty())
    return problem_response(
        404, "there is no such ticket; if its event has a key, the parameter key must name it");
  return problem_response(404, "the ticket is not among the first " +
                                   std::to_string(budget.examined()) + " tickets of its lane");
}

}  // namespace

void add_outbox_ticket_endpoints(endpoint_table& table, services& shared) {
  const std::vector<query_parameter> key_parameter{
      {"key", parameter_type::text, "Key of the event that the ticket becomes, if it has one"}};
  table.add({.method = "PUT",
             .path = ticket_path,
             .summary = "Schedules an event that can be cancelled; replaces the ticket",
             .roles = {role::application},
             .scope = "outbox:{outbox}:publish",
             .for_tenants = true,
             .accepts = {"application/json"},
             .statuses = {201, 200, 422, 504},
             .answer = on_outbox(shared, schedule_ticket)});
  table.add({.method = "DELETE",
             .path = ticket_path,
             .summary = "Cancels a ticket",
             .roles = {role::application},
             .scope = "outbox:{outbox}:publish",
             .for_tenants = true,
             .query = key_parameter,
             .statuses = {204, 409, 504},
             .answer = on_outbox(shared, cancel_ticket)});
  table.add({.method = "GET",
             .path = ticket_path,
             .summary = "A ticket: when it expires, and what it becomes",
             .roles = {role::viewer, role::operator_, role::application},
             .scope = "outbox:{outbox}:read",
             .for_tenants = true,
             .query = key_parameter,
             .statuses = {200, 504},
             .answer = on_outbox(shared, [&shared](outbox_service& service, api_request& request) {
               return show_ticket(shared, service, request);
             })});
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
