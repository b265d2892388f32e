#include "serve/api/outbox_bulk.hpp"

#include <holdfast/error.hpp>

#include "serve/api/endpoint_table.hpp"
#include "serve/api/json_reader.hpp"
#include "serve/api/outbox_access.hpp"
#include "serve/api/outbox_json.hpp"
#include "serve/api/outbox_scan.hpp"
#include "serve/api/parked_action.hpp"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

constexpr std::size_t max_ids = 500;

job_runner& runner_of(const services& shared) {
  if (shared.jobs == nullptr) throw error(errc::unavailable, "this server runs no jobs");
  return *shared.jobs;
}

server_response job_started(const std::string& id, std::optional<std::uint64_t> matched,
                            bool at_least) {
  json_writer out;
  out.begin_object().member("job", id);
  if (matched) out.member("matched", *matched).member("atLeast", at_least);
  out.end_object();
  auto response = json_response(202, out.take());
  response.fields.add("Location", "/v1/jobs/" + id);
  return response;
}

void audit_action(const services& shared, const api_request& request, const std::string& action,
                  const std::string& subject, std::uint64_t count, std::string result) {
  if (shared.audit != nullptr)
    shared.audit->record(request.caller, action, subject, count, std::move(result));
}

server_response act_on_ids(const services& shared, const outbox_service& service,
                           const api_request& request, parked_action action,
                           const std::vector<std::string>& ids) {
  const std::string name = "outbox." + std::string(to_string(action));
  if (ids.empty() || ids.size() > max_ids)
    throw error(errc::invalid_argument,
                "needs 1 to 500 ids; for more, send select, which starts a job", {.path = "ids"});
  if (std::set<std::string_view>(ids.begin(), ids.end()).size() != ids.size())
    throw error(errc::invalid_argument, "has an id twice; send each id once", {.path = "ids"});
  std::vector<bool> done;
  try {
    done = apply_to_ids(service, action, ids);
  } catch (const error& problem) {
    audit_action(shared, request, name, service.name, 0, std::string("failed: ") + problem.what());
    throw;
  }
  const auto count = std::count(done.begin(), done.end(), true);
  audit_action(shared, request, name, service.name, static_cast<std::uint64_t>(count), "done");
  json_writer out;
  out.begin_object().key("items").begin_array();
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto* const result = !done[i]                          ? "notParked"
                               : action == parked_action::replay ? "replayed"
                                                                 : "discarded";
    out.begin_object().member("id", ids[i]).member("result", result).end_object();
  }
  out.end_array().member("changed", std::int64_t{count}).end_object();
  return json_response(200, out.take());
}

/// Counts what a job would take, as far as a question may count.
std::pair<std::uint64_t, bool> count_matches(const services& shared, const outbox_service& service,
                                             const event_filter& filter) {
  const auto turn = shared.questions->enter(service.url);
  scan_budget budget(*shared.clock);
  std::uint64_t count = 0;
  const bool complete =
      scan_within(service, scan_what::parked, budget, [&](const outbox_record& record) {
        count += filter.matches(record) ? 1U : 0U;
        return true;
      });
  return {count, complete};
}

server_response act_on_selection(const services& shared, const outbox_service& service,
                                 const api_request& request, parked_action action,
                                 json_object select, std::optional<std::uint64_t> at_most) {
  auto& runner = runner_of(shared);
  const auto began = store_time(service);
  const auto filter = read_filter(select, began);
  const auto [matched, complete] = count_matches(shared, service, filter);
  const auto id = runner.start({.kind = "outbox." + std::string(to_string(action)),
                                .subject = service.name,
                                .resource = service.url,
                                .actor = request.caller,
                                .matched = matched,
                                .at_most = at_most,
                                .step = make_parked_step(service, action, filter, began, at_most)});
  return job_started(id, matched, !complete);
}

server_response act_on_parked(const services& shared, const outbox_service& service,
                              const api_request& request, parked_action action) {
  auto body = json_object::parse(request.body);
  const auto ids = body.texts("ids");
  auto select = body.object("select");
  const auto at_most = body.integer("atMost");
  body.finish();
  if (ids.has_value() == select.has_value())
    throw error(errc::invalid_argument,
                "send either ids (up to 500) or select, which may be {} for all parked events");
  if (at_most && (*at_most < 1 || ids))
    throw error(errc::invalid_argument, "must be positive, and goes with select",
                {.path = "atMost"});
  if (ids) return act_on_ids(shared, service, request, action, *ids);
  std::optional<std::uint64_t> limit;
  if (at_most) limit = static_cast<std::uint64_t>(*at_most);
  return act_on_selection(shared, service, request, action, *std::move(select), limit);
}

std::string report_json(const check_report& report, bool repaired) {
  json_writer out;
  out.begin_object()
      .member("well", report.well())
      .member("repair", repaired)
      .member("events", report.events)
      .member("withoutEntry", report.without_entry)
      .member("withoutPlace", report.without_place)
      .member("withoutHead", report.without_head)
      .member("bytesOff", report.bytes_off)
      .member("badFields", report.bad_fields)
      .end_object();
  return out.take();
}

std::uint64_t defects_of(const check_report& report) noexcept {
  return report.without_entry + report.without_place + report.without_head + report.bad_fields +
         (report.bytes_off != 0 ? 1U : 0U);
}

/// Checks a lane in each step.
std::function<job_step()> make_check_step(const outbox_service& service, bool repair) {
  struct progress {
    std::size_t lane = 0;
    check_report sum{};
  };
  return [&service, repair, state = std::make_shared<progress>()] {
    const auto report = service.outbox.backend()->check(state->lane, repair);
    state->sum += report;
    ++state->lane;
    return job_step{.examined = report.events,
                    .changed = repair ? defects_of(report) : 0,
                    .finished = state->lane == service.outbox.lanes(),
                    .result = report_json(state->sum, repair)};
  };
}

server_response check(const services& shared, const outbox_service& service,
                      const api_request& request) {
  bool repair = false;
  if (!request.body.empty()) {
    auto body = json_object::parse(request.body);
    repair = body.boolean("repair").value_or(false);
    const auto confirm = body.text("confirm");
    body.finish();
    if (repair && confirm != service.name)
      throw error(errc::invalid_argument,
                  "must be the name of the outbox, to confirm that it is to be repaired",
                  {.path = "confirm"});
  }
  const auto id = runner_of(shared).start({.kind = repair ? "outbox.repair" : "outbox.check",
                                           .subject = service.name,
                                           .resource = service.url,
                                           .actor = request.caller,
                                           .step = make_check_step(service, repair)});
  return job_started(id, std::nullopt, false);
}

}  // namespace

void add_outbox_bulk_endpoints(endpoint_table& table, services& shared) {
  const auto add = [&](std::string_view path, std::string_view summary, outbox_action action,
                       std::vector<int> statuses) {
    table.add({.method = "POST",
               .path = path,
               .summary = summary,
               .roles = {role::operator_},
               .scope = "outbox:{outbox}:act",
               .for_tenants = true,
               .accepts = {"application/json"},
               .statuses = std::move(statuses),
               .answer = on_outbox(shared, std::move(action))});
  };
  add("/v1/outboxes/{outbox}/replay", "Makes parked events due again: up to 500 ids, or a job",
      [&shared](outbox_service& service, api_request& request) {
        return act_on_parked(shared, service, request, parked_action::replay);
      },
      {200, 202, 409, 504});
  add("/v1/outboxes/{outbox}/discard", "Deletes parked events: up to 500 ids, or a job",
      [&shared](outbox_service& service, api_request& request) {
        return act_on_parked(shared, service, request, parked_action::discard);
      },
      {200, 202, 409, 504});
  add("/v1/outboxes/{outbox}/check", "Compares the data of an outbox, and repairs it, as a job",
      [&shared](outbox_service& service, api_request& request) {
        return check(shared, service, request);
      },
      {202, 409, 504});
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
