#include "serve/api/tenant_endpoints.hpp"

#include <holdfast/error.hpp>

#include "serve/api/endpoint_table.hpp"
#include "serve/api/entry_count.hpp"
#include "serve/api/store_location.hpp"
#include "serve/api/store_watch.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

/// Names of one tenant in one store that are counted.
constexpr std::size_t max_names = 1000;

/// The tenants of all stores that the caller may see, after `after`.
std::set<std::string> visible_tenants(const services& shared, const caller& client,
                                      const std::string& after) {
  std::set<std::string> tenants;
  for (const auto& service : shared.stores) {
    for (const auto& [tenant, prefix] : service.options.realms) {
      if (tenant > after && (client.tenant.empty() || client.tenant == tenant))
        tenants.insert(tenant);
    }
  }
  return tenants;
}

/// The counts of a tenant in a store, or why there are none.
void write_store_count(json_writer& out, services& shared, store_watch& watch,
                       const store_service& service, const std::string& tenant,
                       question_limits& limits, bool with_names) {
  out.begin_object().member("store", service.name);
  store_count count{.at_least = true};
  std::string problem;
  try {
    const auto question = watch.begin_question(service);
    count = count_entries(*service.store, tenant, current_time(shared), max_names, {}, limits);
  } catch (const error& e) {
    problem = to_string(e.code());
  }
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;
  bool at_least = count.at_least;
  for (const auto& name : count.names) {
    entries += name.entries;
    bytes += name.bytes;
    at_least = at_least || name.at_least;
  }
  out.member("entries", entries).member("bytes", bytes).member("atLeast", at_least);
  out.key("problem");
  if (problem.empty()) out.null();
  else out.text(problem);
  if (with_names) {
    out.key("names").begin_array();
    for (const auto& name : count.names) {
      out.begin_object();
      write_count(out, name);
      out.end_object();
    }
    out.end_array();
  }
  out.end_object();
}

void write_tenant(json_writer& out, services& shared, store_watch& watch, const std::string& tenant,
                  question_limits& limits, bool with_names) {
  out.begin_object().member("tenant", tenant).key("stores").begin_array();
  for (const auto& service : shared.stores) {
    if (service.options.realms.contains(tenant))
      write_store_count(out, shared, watch, service, tenant, limits, with_names);
  }
  out.end_array().end_object();
}

server_response list_tenants(services& shared, store_watch& watch, const api_request& request) {
  const auto limit = static_cast<std::size_t>(request.query_integer("limit", 100, 1, 1000));
  const auto tenants = visible_tenants(shared, request.caller, request.query("after").value_or(""));
  json_writer out;
  out.begin_object().key("items").begin_array();
  question_limits limits;
  const auto all_rows = limits.rows;
  std::size_t written = 0;
  std::string last;
  for (auto it = tenants.begin(); it != tenants.end() && written < limit; ++it, ++written) {
    // Each tenant has its share of the rows, so that a large one does not hide those that follow.
    auto share = limits;
    share.rows = std::max<std::size_t>(1, all_rows / std::min(limit, tenants.size()));
    write_tenant(out, shared, watch, *it, share, false);
    last = *it;
  }
  out.end_array().key("next");
  if (written < tenants.size()) out.text(last);
  else out.null();
  out.end_object();
  return json_response(200, out.take());
}

server_response show_tenant(services& shared, store_watch& watch, const api_request& request) {
  const auto& tenant = request.path("tenant");
  if (!visible_tenants(shared, request.caller, {}).contains(tenant))
    throw error(errc::not_found, "no store has a tenant of this name");
  json_writer out;
  question_limits limits;
  write_tenant(out, shared, watch, tenant, limits, true);
  return json_response(200, out.take());
}

}  // namespace

void add_tenant_endpoints(endpoint_table& table, services& shared,
                          const std::shared_ptr<store_watch>& watch) {
  table.add({.method = "GET",
             .path = "/v1/tenants",
             .summary = "The tenants with the number of their entries in each store",
             .roles = {role::viewer, role::operator_},
             .for_tenants = true,
             .query = {{"after", parameter_type::text, "The member `next` of the page before"},
                       {"limit", parameter_type::integer, "1 to 1000, 100 if missing"}},
             .answer = [&shared, watch](api_request& request) {
               return list_tenants(shared, *watch, request);
             }});
  table.add({.method = "GET",
             .path = "/v1/tenants/{tenant}",
             .summary = "The entries of a tenant in each store, by name",
             .roles = {role::viewer, role::operator_},
             .for_tenants = true,
             .answer = [&shared, watch](api_request& request) {
               return show_tenant(shared, *watch, request);
             }});
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
