#include "serve/api/store_endpoints.hpp"

#include <holdfast/error.hpp>
#include <holdfast/store/tenants.hpp>

#include "serve/api/endpoint_table.hpp"
#include "serve/api/entry_count.hpp"
#include "serve/api/json_reader.hpp"
#include "serve/api/store_location.hpp"
#include "serve/api/store_watch.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

constexpr std::int64_t default_limit = 100;
constexpr std::int64_t max_limit = 1000;
constexpr query_parameter after_parameter{"after", parameter_type::text,
                                          "The member `next` of the page before"};
constexpr query_parameter limit_parameter{"limit", parameter_type::integer,
                                          "Rows of a page: 1 to 1000, 100 if missing"};

std::size_t limit_of(const api_request& request) {
  return static_cast<std::size_t>(request.query_integer("limit", default_limit, 1, max_limit));
}

bool sees_backend(const caller& client) {
  return client.role == role::operator_ || client.role == role::admin;
}

// ---- the store

void write_options(json_writer& out, const store_service& service, const caller& client) {
  const auto& options = service.options;
  out.key("options").begin_object();
  out.member("prefix", options.prefix)
      .member("maxSkewMilliseconds",
              std::chrono::duration_cast<std::chrono::milliseconds>(options.max_skew).count())
      .member("payload", options.payload == payload_column::text ? "text" : "bytes")
      .member("peer", options.peer == peer::java ? "java" : "none")
      .member("zone", options.zone);
  out.key("tenants");
  if (client.tenant.empty()) out.number(static_cast<std::uint64_t>(options.realms.size()));
  else out.null();
  out.end_object();
}

void write_health(json_writer& out, const observed_store& observed, const caller& client) {
  out.key("health");
  if (!observed.health) {
    out.null();
    return;
  }
  const auto& health = *observed.health;
  out.begin_object()
      .member("at", observed.health_at)
      .member("available", health.available)
      .member("healthy", health.healthy());
  // The problem can contain the message of a backend.
  if (sees_backend(client)) out.member("problem", health.problem);
  out.member("nativeUpsert", health.native_upsert)
      .member("abandoned", health.abandoned)
      .member("unreadable", health.unreadable)
      .member("retried", health.retried)
      .member("unsaved", health.unsaved)
      .member("failed", health.failed)
      .member("quarantined", health.quarantined)
      .end_object();
}

void write_findings(json_writer& out, const observed_store& observed) {
  out.key("findings");
  if (!observed.findings) {
    out.null();
    return;
  }
  out.begin_object().member("at", observed.findings_at);
  for (const auto& [level, count] : *observed.findings) out.member(to_string(level), count);
  out.end_object();
}

void write_store(json_writer& out, const store_service& service, const observed_store& observed,
                 const caller& client) {
  out.begin_object().member("name", service.name).member("url", service.url);
  out.member("waits", service.store->waits());
  write_options(out, service, client);
  write_health(out, observed, client);
  write_findings(out, observed);
  out.end_object();
}

bool is_visible(const store_service& service, const caller& client) {
  return client.tenant.empty() || service.options.realms.contains(client.tenant);
}

server_response list_stores(services& shared, const std::shared_ptr<store_watch>& watch,
                            const api_request& request) {
  std::vector<const store_service*> visible;
  std::vector<std::function<observed_store()>> questions;
  for (const auto& service : shared.stores) {
    if (!is_visible(service, request.caller)) continue;
    visible.push_back(&service);
    questions.emplace_back([watch, &service] { return watch->observe(service); });
  }
  const auto answers = shared.databases->ask(std::move(questions));
  json_writer out;
  out.begin_object().key("items").begin_array();
  for (std::size_t i = 0; i < visible.size(); ++i) {
    const auto& answer = answers[i];
    write_store(out, *visible[i], answer ? *answer : watch->last_observation(*visible[i]),
                request.caller);
  }
  out.end_array().key("next").null().end_object();
  return json_response(200, out.take());
}

server_response show_store(services& shared, store_watch& watch, const api_request& request) {
  const auto& service = shared.find_store(request.path("store"));
  if (!is_visible(service, request.caller)) (void)realm_of(service, request);  // refuses
  json_writer out;
  write_store(out, service, watch.observe(service), request.caller);
  return json_response(200, out.take());
}

// ---- names and keys

server_response list_names(services& shared, store_watch& watch, const api_request& request) {
  const auto& service = shared.find_store(request.path("store"));
  const auto realm = realm_of(service, request);
  const auto question = watch.begin_question(service);
  question_limits limits;
  const auto count = count_entries(*service.store, realm, current_time(shared), limit_of(request),
                                   request.query("after").value_or(""), limits);
  json_writer out;
  out.begin_object().key("items").begin_array();
  for (const auto& name : count.names) {
    out.begin_object();
    write_count(out, name);
    out.end_object();
  }
  out.end_array().member("atLeast", count.at_least).key("next");
  if (count.at_least) out.text(count.names.back().name);
  else out.null();
  out.end_object();
  return json_response(200, out.take());
}

void write_row(json_writer& out, const entry& row, timestamp now) {
  out.begin_object()
      .member("key", row.key)
      .member("asOf", row.as_of)
      .member("expires", row.expire_on)
      .member("class", row.payload_class)
      .member("bytes", std::uint64_t{row.payload ? row.payload->size() : 0})
      .member("tombstone", row.tombstone())
      .member("expired", row.expire_on < now)
      .end_object();
}

server_response list_keys(services& shared, store_watch& watch, const api_request& request) {
  const auto& service = shared.find_store(request.path("store"));
  const auto realm = realm_of(service, request);
  const auto name = entry_name(request);
  const auto limit = limit_of(request);
  const auto question = watch.begin_question(service);
  const tenant_scope scope(realm.empty() ? std::nullopt : std::optional(realm));
  const auto now = current_time(shared);
  const question_limits limits;
  std::optional<std::string> next = request.query("after").value_or("");
  std::uint64_t unreadable = 0;
  json_writer out;
  out.begin_object().member("name", name).key("items").begin_array();
  // Payloads are read with the rows, so a page of the answer is read in several steps.
  constexpr std::size_t step = 100;
  for (std::size_t rows = 0; next && rows < limit && !limits.is_late();) {
    auto page = service.store->find_all(place(name, realm), std::min(step, limit - rows), *next);
    for (const auto& row : page.entries) write_row(out, row, now);
    rows += page.entries.size() + page.unreadable;
    unreadable += page.unreadable;
    next = std::move(page.next);
  }
  out.end_array().member("unreadable", unreadable).key("next");
  if (next) out.text(*next);
  else out.null();
  out.end_object();
  return json_response(200, out.take());
}

// ---- doctor and cleanup

void write_texts(json_writer& out, std::string_view name, const std::vector<std::string>& texts) {
  out.key(name).begin_array();
  for (const auto& text : texts) out.text(text);
  out.end_array();
}

server_response examine_store(services& shared, store_watch& watch, const api_request& request) {
  const auto report = watch.examine(shared.find_store(request.path("store")));
  json_writer out;
  out.begin_object()
      .member("usable", report.usable())
      .member("dialect", to_string(report.dialect))
      .member("server", report.server);
  write_texts(out, "tables", report.tables);
  out.key("skewMicroseconds");
  if (report.skew) out.number(std::int64_t{report.skew->count()});
  else out.null();
  out.member("skewWithinMicroseconds", report.skew_within.count());
  out.key("findings").begin_array();
  for (const auto& finding : report.findings) {
    out.begin_object()
        .member("severity", to_string(finding.severity))
        .member("code", finding.code)
        .member("problem", finding.problem);
    write_texts(out, "sql", finding.sql);
    out.member("advice", finding.advice).end_object();
  }
  out.end_array().end_object();
  return json_response(200, out.take());
}

/// Removes expired entries for at most two seconds, in steps, so that others can write between
/// them.
server_response clean_store(services& shared, store_watch& watch, const api_request& request) {
  auto& service = shared.find_store(request.path("store"));
  if (!request.body.empty()) json_object::parse(request.body).finish();
  const auto question = watch.begin_question(service);
  constexpr std::size_t step = 500;
  const question_limits limits;
  const auto now = current_time(shared);
  std::uint64_t removed = 0;
  bool more = true;
  const auto record = [&](std::string result) {
    if (shared.audit != nullptr)
      shared.audit->record(request.caller, "store.clean", service.name, removed, std::move(result));
  };
  try {
    while (more && !limits.is_late()) {
      const auto count = service.store->expire(now, step);
      removed += count;
      more = count > 0;
    }
  } catch (const error& e) {
    record("failed: " + std::string(to_string(e.code())));
    throw;
  }
  record("done");
  json_writer out;
  out.begin_object().member("removed", removed).member("more", more).end_object();
  return json_response(200, out.take());
}

}  // namespace

void add_store_endpoints(endpoint_table& table, services& shared,
                         const std::shared_ptr<store_watch>& watch) {
  const auto row = [&](auto function) {
    return answer_refusals([&shared, watch, function](api_request& request) {
      return function(shared, *watch, request);
    });
  };
  table.add({.method = "GET",
             .path = "/v1/stores",
             .summary = "The stores with their health, options and findings",
             .roles = {role::viewer, role::operator_},
             .for_tenants = true,
             .answer = answer_refusals([&shared, watch](api_request& request) {
               return list_stores(shared, watch, request);
             })});
  table.add({.method = "GET",
             .path = "/v1/stores/{store}",
             .summary = "The health, options and findings of a store",
             .roles = {role::viewer, role::operator_},
             .for_tenants = true,
             .answer = row(show_store)});
  table.add({.method = "GET",
             .path = "/v1/stores/{store}/names",
             .summary = "The names of a store with the number of their entries",
             .roles = {role::viewer, role::operator_},
             .for_tenants = true,
             .query = {after_parameter, limit_parameter, tenant_parameter},
             .statuses = {200, 422},
             .answer = row(list_names)});
  table.add({.method = "GET",
             .path = "/v1/stores/{store}/{name}",
             .summary = "The keys of a name with their versions, without payloads",
             .roles = {role::viewer, role::operator_, role::application},
             .scope = "store:{store}:read",
             .for_tenants = true,
             .query = {after_parameter, limit_parameter, tenant_parameter, encoding_parameter},
             .answer = row(list_keys)});
  table.add({.method = "GET",
             .path = "/v1/stores/{store}/doctor",
             .summary = "Examines the table and the server of a store",
             .roles = {role::viewer, role::operator_},
             .answer = row(examine_store)});
  table.add({.method = "POST",
             .path = "/v1/stores/{store}/clean",
             .summary = "Removes expired entries for at most two seconds",
             .roles = {role::operator_},
             .accepts = {"application/json"},
             .answer = row(clean_store)});
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
