#include "serve/api/outbox_events.hpp"

#include <holdfast/error.hpp>

#include "serve/api/endpoint_table.hpp"
#include "serve/api/event_filter.hpp"
#include "serve/api/event_ids.hpp"
#include "serve/api/outbox_access.hpp"
#include "serve/api/outbox_json.hpp"
#include "serve/api/outbox_scan.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

constexpr std::size_t max_groups = 200;
/// The first table of a page waits for the groups.
constexpr std::chrono::milliseconds longest_grouping{700};

server_response list_events(const services& shared, const outbox_service& service,
                            const api_request& request, scan_what selection) {
  const auto limit = static_cast<std::size_t>(request.query_integer("limit", 100, 1, 1000));
  const auto filter = read_filter(request, shared.clock->now());
  const auto turn = shared.questions->enter(service.url);
  const auto page = scan_filtered(service, selection, filter, request.query("after").value_or(""),
                                  limit, *shared.clock);
  json_writer out;
  out.begin_object().key("items").begin_array();
  for (const auto& record : page.records) write_record(out, record, payload_view::none);
  out.end_array().member("examined", page.examined);
  if (!page.next.empty()) out.member("next", page.next);
  out.end_object();
  return json_response(200, out.take());
}

/// Events of one type with one error.
struct event_group {
  std::uint64_t count = 0;
  timestamp first = timestamp::max();
  timestamp last = timestamp::min();
};
using event_groups = std::map<std::pair<std::string, std::string>, event_group>;

std::string write_groups(const event_groups& groups, const scan_budget& budget, bool complete) {
  std::vector<const event_groups::value_type*> largest;
  largest.reserve(groups.size());
  for (const auto& group : groups) largest.push_back(&group);
  // Among groups of one size, by name.
  std::ranges::sort(largest, [](const auto* a, const auto* b) {
    return std::tie(b->second.count, a->first) < std::tie(a->second.count, b->first);
  });
  json_writer out;
  out.begin_object().key("items").begin_array();
  for (const auto* group : std::span(largest).first(std::min(largest.size(), max_groups))) {
    out.begin_object()
        .member("type", group->first.first)
        .member("error", group->first.second)
        .member("count", group->second.count)
        .member("first", group->second.first)
        .member("last", group->second.last)
        .end_object();
  }
  out.end_array()
      .member("groups", groups.size())
      .member("examined", budget.examined())
      .member("atLeast", !complete)
      .end_object();
  return out.take();
}

server_response group_parked(const services& shared, const outbox_service& service,
                             const api_request& request) {
  const auto filter = read_filter(request, shared.clock->now());
  const auto turn = shared.questions->enter(service.url);
  scan_budget budget(*shared.clock, longest_grouping);
  event_groups groups;
  const bool complete =
      scan_within(service, scan_what::parked, budget, [&](const outbox_record& record) {
        if (!filter.matches(record)) return true;
        auto& group = groups[{record.details.event.type, record.details.last_error}];
        const auto parked_at = record.until.value_or(record.details.created_at);
        ++group.count;
        group.first = std::min(group.first, parked_at);
        group.last = std::max(group.last, parked_at);
        return true;
      });
  return json_response(200, write_groups(groups, budget, complete));
}

/// The event of the path. Throws errc::not_found.
outbox_record find_event(const outbox_service& service, const api_request& request) {
  const auto& text = request.path("id");
  auto record = service.outbox.find(normalized_uuid(text).value_or(text));
  if (!record)
    throw error(errc::not_found,
                "there is no such event: it was delivered, discarded, or never published");
  return *std::move(record);
}

server_response show_event(const services& shared, const outbox_service& service,
                           const api_request& request) {
  const bool reveal = request.query_flag("reveal");
  if (reveal && request.caller.role != role::admin)
    return problem_response(403, "payloads are shown to the role admin only");
  const auto record = find_event(service, request);
  if (reveal && shared.audit != nullptr)
    shared.audit->record(request.caller, "outbox.reveal",
                         service.name + "/" + record.details.event.id, 1, "done");
  json_writer out;
  write_record(out, record, reveal ? payload_view::masked : payload_view::none);
  return json_response(200, out.take());
}

server_response explain_event(const outbox_service& service, const api_request& request) {
  const auto record = find_event(service, request);
  json_writer out;
  out.begin_object()
      .member("id", record.details.event.id)
      .member("says", service.outbox.admin().explain(record.details.event.id));
  write_record(out.key("event"), record, payload_view::none);
  out.end_object();
  return json_response(200, out.take());
}

std::vector<query_parameter> list_parameters() {
  auto parameters = filter_parameters();
  parameters.push_back({"after", parameter_type::text, "The next of the page before"});
  parameters.push_back({"limit", parameter_type::integer, "Most events of a page; 100 if missing"});
  return parameters;
}

}  // namespace

void add_outbox_event_endpoints(endpoint_table& table, services& shared) {
  const std::vector<role> readers{role::viewer, role::operator_, role::application};
  constexpr std::string_view scope = "outbox:{outbox}:read";
  const auto list = [&shared](scan_what selection) {
    return on_outbox(shared, [&shared, selection](outbox_service& service, api_request& request) {
      return list_events(shared, service, request, selection);
    });
  };
  table.add({.method = "GET",
             .path = "/v1/outboxes/{outbox}/events",
             .summary = "Events that match, without payloads; looks at 10,000 at most",
             .roles = readers,
             .scope = scope,
             .for_tenants = true,
             .query = list_parameters(),
             .statuses = {200, 504},
             .answer = list(scan_what::all)});
  table.add({.method = "GET",
             .path = "/v1/outboxes/{outbox}/parked",
             .summary = "Parked events that match, without payloads; looks at 10,000 at most",
             .roles = readers,
             .scope = scope,
             .for_tenants = true,
             .query = list_parameters(),
             .statuses = {200, 504},
             .answer = list(scan_what::parked)});
  table.add({.method = "GET",
             .path = "/v1/outboxes/{outbox}/parked/groups",
             .summary = "Parked events by type and error; looks at 10,000 at most",
             .roles = readers,
             .scope = scope,
             .for_tenants = true,
             .query = filter_parameters(),
             .statuses = {200, 504},
             .answer = on_outbox(shared, [&shared](outbox_service& service, api_request& request) {
               return group_parked(shared, service, request);
             })});
  table.add({.method = "GET",
             .path = "/v1/outboxes/{outbox}/events/{id}",
             .summary = "An event and its history; with reveal, its payload",
             .roles = readers,
             .scope = scope,
             .for_tenants = true,
             .query = {{"reveal", parameter_type::boolean,
                        "Show the payload, with secrets masked; for the role admin, audited"}},
             .statuses = {200, 504},
             .answer = on_outbox(shared, [&shared](outbox_service& service, api_request& request) {
               return show_event(shared, service, request);
             })});
  table.add({.method = "GET",
             .path = "/v1/outboxes/{outbox}/events/{id}/explain",
             .summary = "One sentence that says why an event is not delivered yet",
             .roles = readers,
             .scope = scope,
             .for_tenants = true,
             .statuses = {200, 504},
             .answer = on_outbox(shared, explain_event)});
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
