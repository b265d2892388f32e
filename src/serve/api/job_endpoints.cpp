#include "serve/api/job_endpoints.hpp"

#include <holdfast/error.hpp>

#include "serve/api/endpoint_table.hpp"
#include "serve/api/job_runner.hpp"
#include "serve/api/json_writer.hpp"
#include "serve/api/services.hpp"

#include <string>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

/// A caller with a tenant sees the jobs of its tenant.
bool may_see(const caller& actor, const job_status& status) {
  return actor.tenant.empty() || actor.tenant == status.tenant;
}

server_response list_jobs(const services& shared, const api_request& request) {
  json_writer out;
  out.begin_object().key("items").begin_array();
  if (shared.jobs != nullptr) {
    for (const auto& status : shared.jobs->list()) {
      if (may_see(request.caller, status)) out.raw(to_json(status));
    }
  }
  out.end_array().end_object();
  return json_response(200, out.take());
}

job_status find_job(const services& shared, const api_request& request) {
  if (shared.jobs != nullptr) {
    auto status = shared.jobs->find(request.path("id"));
    if (status && may_see(request.caller, *status)) return *std::move(status);
  }
  throw error(errc::not_found,
              "there is no such job; jobs end with the server, and old ones are forgotten");
}

server_response stop_job(const services& shared, const api_request& request) {
  const auto id = find_job(shared, request).id;
  const bool stopped = shared.jobs->stop(id, "stopped by " + request.caller.name);
  const auto status = find_job(shared, request);
  if (!stopped && status.state != job_state::running)
    return problem_response(409, "the job has ended: " + std::string(to_string(status.state)));
  if (stopped && shared.audit != nullptr)
    shared.audit->record(request.caller, "job.stop", id, status.changed, "requested");
  return json_response(202, to_json(status));
}

}  // namespace

void add_job_endpoints(endpoint_table& table, services& shared) {
  table.add(
      {.method = "GET",
       .path = "/v1/jobs",
       .summary = "Bulk actions that run, and the last 100 that have ended",
       .roles = {role::operator_},
       .for_tenants = true,
       .answer = [&shared](const api_request& request) { return list_jobs(shared, request); }});
  table.add({.method = "GET",
             .path = "/v1/jobs/{id}",
             .summary = "Progress of a bulk action",
             .roles = {role::operator_},
             .for_tenants = true,
             .answer = [&shared](const api_request& request) {
               return json_response(200, to_json(find_job(shared, request)));
             }});
  table.add(
      {.method = "DELETE",
       .path = "/v1/jobs/{id}",
       .summary = "Stops a bulk action after its step",
       .roles = {role::operator_},
       .for_tenants = true,
       .statuses = {202, 409},
       .answer = [&shared](const api_request& request) { return stop_job(shared, request); }});
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
