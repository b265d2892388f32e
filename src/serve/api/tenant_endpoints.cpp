#include "serve/api/tenant_endpoints.hpp"

#include <holdfast/error.hpp>

#include "serve/api/endpoint_table.hpp"
#include "serve/api/entry_count.hpp"
#include "serve/api/store_location.hpp"
#include "serve/api/store_watch.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

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

/// The entries of a tenant in a store, or why there are none.
struct tenant_count {
  store_count count{.at_least = true};
  std::string problem{};
};
using tenant_counts = std::map<std::string, tenant_count>;

/// Each tenant has `rows`, so that a large one does not hide those that follow.
tenant_counts count_tenants(services& shared, store_watch& watch, const store_service& service,
                            const std::vector<std::string>& tenants, std::size_t rows) {
  tenant_counts counts;
  question_limits limits;
  for (const auto& tenant : tenants) {
    if (!service.options.realms.contains(tenant)) continue;
    auto& result = counts[tenant];
    limits.rows = rows;
    try {
      const auto question = watch.begin_question(service);
      result.count =
          count_entries(*service.store, tenant, current_time(shared), max_names, {}, limits);
    } catch (const error& e) {
      result.problem = to_string(e.code());
    }
  }
  return counts;
}

void write_store_count(json_writer& out, const store_service& service, const tenant_count& counted,
                       bool with_names) {
  out.begin_object().member("store", service.name);
  const auto& count = counted.count;
  const auto& problem = counted.problem;
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

/// The counts of each store, in their order. All stores are asked at the same time.
std::vector<std::optional<tenant_counts>> ask_stores(services& shared,
                                                     const std::shared_ptr<store_watch>& watch,
                                                     const std::vector<std::string>& tenants,
                                                     std::size_t rows) {
  std::vector<std::function<tenant_counts()>> questions;
  questions.reserve(shared.stores.size());
  for (const auto& service : shared.stores)
    questions.emplace_back([&shared, watch, &service, tenants, rows] {
      return count_tenants(shared, *watch, service, tenants, rows);
    });
  return shared.databases->ask(std::move(questions));
}

void write_tenant(json_writer& out, const services& shared,
                  const std::vector<std::optional<tenant_counts>>& counts,
                  const std::string& tenant, bool with_names) {
  const tenant_count late{.problem = std::string(to_string(errc::timeout))};
  out.begin_object().member("tenant", tenant).key("stores").begin_array();
  for (std::size_t i = 0; i < shared.stores.size(); ++i) {
    const auto& service = shared.stores[i];
    if (!service.options.realms.contains(tenant)) continue;
    const auto& count = counts[i];
    write_store_count(out, service, count ? count->at(tenant) : late, with_names);
  }
  out.end_array().end_object();
}

server_response list_tenants(services& shared, const std::shared_ptr<store_watch>& watch,
                             const api_request& request) {
  const auto limit = static_cast<std::size_t>(request.query_integer("limit", 100, 1, 1000));
  const auto tenants = visible_tenants(shared, request.caller, request.query("after").value_or(""));
  std::vector<std::string> page(tenants.begin(), tenants.end());
  if (page.size() > limit) page.resize(limit);
  const auto rows = question_limits{}.rows / std::max<std::size_t>(1, page.size());
  const auto counts = ask_stores(shared, watch, page, std::max<std::size_t>(1, rows));
  json_writer out;
  out.begin_object().key("items").begin_array();
  for (const auto& tenant : page) write_tenant(out, shared, counts, tenant, false);
  out.end_array().key("next");
  if (page.size() < tenants.size()) out.text(page.back());
  else out.null();
  out.end_object();
  return json_response(200, out.take());
}

server_response show_tenant(services& shared, const std::shared_ptr<store_watch>& watch,
                            const api_request& request) {
  const auto& tenant = request.path("tenant");
  if (!visible_tenants(shared, request.caller, {}).contains(tenant))
    throw error(errc::not_found, "no store has a tenant of this name");
  json_writer out;
  write_tenant(out, shared, ask_stores(shared, watch, {tenant}, question_limits{}.rows), tenant,
               true);
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
               return list_tenants(shared, watch, request);
             }});
  table.add({.method = "GET",
             .path = "/v1/tenants/{tenant}",
             .summary = "The entries of a tenant in each store, by name",
             .roles = {role::viewer, role::operator_},
             .for_tenants = true,
             .answer = [&shared, watch](api_request& request) {
               return show_tenant(shared, watch, request);
             }});
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
