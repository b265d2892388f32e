#include "serve/api/entry_endpoints.hpp"

#include <holdfast/error.hpp>
#include <holdfast/store/tenants.hpp>

#include "base/utf8.hpp"
#include "http/cache_control.hpp"
#include "http/conditional.hpp"
#include "http/problem.hpp"
#include "http/syntax.hpp"
#include "serve/api/endpoint_table.hpp"
#include "serve/api/entry_writer.hpp"
#include "serve/api/json_writer.hpp"
#include "serve/api/store_location.hpp"
#include "serve/api/store_watch.hpp"
#include "serve/api/value_text.hpp"

#include <chrono>
#include <string>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

using namespace std::chrono_literals;

constexpr std::string_view path_of_entry = "/v1/stores/{store}/{name}/{key}";
/// How long a tombstone rejects older versions if the request has no expiry.
constexpr auto tombstone_lifetime = 24h;
/// Every database can store these times. MySQL cannot store times before the year 1000, and no
/// database can after 9999.
constexpr timestamp earliest_time = std::chrono::sys_days(std::chrono::year(1970) / 1 / 1);
constexpr timestamp end_of_time = std::chrono::sys_days(std::chrono::year(10'000) / 1 / 1);

[[noreturn]] void refuse_field(std::string_view name, const std::string& problem,
                               errc code = errc::invalid_argument) {
  throw error(code, problem, {.path = std::string(name)});
}

// ---- reading

/// Weak: of two writes with the same as_of the later one is kept, so equal versions can differ.
std::string tag_of(const entry& stored) {
  return "\"" + std::to_string(stored.as_of.time_since_epoch().count()) + "\"";
}

void add_version_fields(server_response& response, const entry& stored) {
  response.fields.add("ETag", "W/" + tag_of(stored));
  response.fields.add("Holdfast-As-Of", time_text(stored.as_of));
  response.fields.add("Holdfast-Expires", time_text(stored.expire_on));
  // Other programs may have stored a class that a field cannot have.
  const auto& payload_class = stored.payload_class;
  if (!payload_class.empty() && http::is_field_value(payload_class) &&
      http::trim(payload_class).size() == payload_class.size())
    response.fields.add("Holdfast-Payload-Class", payload_class);
}

server_response not_found(std::string_view answer, std::string_view detail,
                          const std::optional<entry>& stored) {
  auto response = problem_response(404, detail);
  response.fields.add("Holdfast-Answer", answer);
  if (stored) add_version_fields(response, *stored);
  return response;
}

server_response describe_entry(const api_request& request, std::optional<entry> stored,
                               timestamp now) {
  if (!stored) return not_found("missing", "there is no entry of this name and key", stored);
  if (stored->expire_on < now)
    return not_found("expired", "the entry has expired, so it may not be served", stored);
  if (!stored->payload)
    return not_found("tombstone", "the entry was deleted, and its deletion is recorded", stored);
  const auto tag = tag_of(*stored);
  const http::validators current{.tag = http::entity_tag{.weak = true, .opaque = tag}};
  server_response response;
  switch (http::evaluate(request.method, request.fields, current,
                         std::chrono::floor<std::chrono::seconds>(now))) {
    case http::precondition::failed:
      return problem_response(412, "the entry has another version than If-Match requires");
    case http::precondition::not_modified:
      response.status = 304;
      add_version_fields(response, *stored);
      return response;
    case http::precondition::proceed:
      break;
  }
  response.fields.add("Content-Type", "application/octet-stream");
  response.fields.add("X-Content-Type-Options", "nosniff");
  response.fields.add("Holdfast-Answer", "found");
  add_version_fields(response, *stored);
  response.body = *std::move(stored->payload);
  return response;
}

/// The strings that a `place` refers to.
struct entry_location {
  store_service& service;
  std::string realm;
  std::string name;
  std::string key;

  entry_location(services& shared, const api_request& request)
      : service(shared.find_store(request.path("store"))),
        realm(realm_of(service, request)),
        name(entry_name(request)),
        key(entry_key(request)) {}
  [[nodiscard]] holdfast::place place() const { return {name, realm}; }
  [[nodiscard]] tenant_scope scope() const {
    return tenant_scope(realm.empty() ? std::nullopt : std::optional(realm));
  }
};

server_response read_entry(services& shared, store_watch& watch, const api_request& request) {
  const entry_location location(shared, request);
  const auto call = watch.begin_call(location.service);
  const auto scope = location.scope();
  auto response = describe_entry(
      request, location.service.store->find(location.place(), location.key), current_time(shared));
  const bool shows_payload = response.status == 200 && request.method != "HEAD";
  if (shows_payload && request.caller.role != role::application && shared.audit != nullptr)
    shared.audit->record(request.caller, "store.reveal",
                         location.service.name + "/" + location.name + "/" + location.key, 1,
                         "done");
  return response;
}

/// Answers from memory, without waiting. Returns nullopt if a worker must answer: the store must be
/// asked, or the read must be recorded in the audit log, which may wait.
std::optional<server_response> read_entry_now(services& shared, const api_request& request) {
  if (request.caller.role != role::application) return std::nullopt;
  const entry_location location(shared, request);
  const auto scope = location.scope();
  auto remembered = location.service.store->find_in_memory(location.place(), location.key);
  if (!remembered.current) return std::nullopt;
  return describe_entry(request, std::move(remembered.entry), current_time(shared));
}

// ---- writing

std::optional<timestamp> time_field(const api_request& request, std::string_view name) {
  const auto text = request.fields.find(name);
  if (!text) return std::nullopt;
  if (request.fields.count(name) > 1) refuse_field(name, "occurs twice");
  const auto time = parse_time(*text);
  if (!time || *time < earliest_time || *time >= end_of_time)
    refuse_field(name, "must be a time from 1970 to 9999, such as 2026-11-15T23:05:16.120431Z");
  return time;
}

/// The last moment at which the entry may be served, if the request has one.
std::optional<timestamp> expiry_of(const api_request& request, timestamp as_of) {
  const auto expires = time_field(request, "Holdfast-Expires");
  const auto max_age = http::cache_control::of(request.fields).max_age;
  if (expires && max_age)
    refuse_field("Holdfast-Expires", "and Cache-Control: max-age exclude each other; send one");
  return max_age ? as_of + *max_age : expires;
}

void check_no_preconditions(const api_request& request) {
  for (const auto* name : {"If-Match", "If-None-Match", "If-Unmodified-Since"}) {
    if (request.fields.find(name))
      refuse_field(name, "is not possible here: Holdfast-As-Of decides which version is kept");
  }
}

void check_times(const entry& written, timestamp now, std::chrono::microseconds max_skew) {
  if (max_skew < timestamp::max() - now && written.as_of > now + max_skew)
    refuse_field("Holdfast-As-Of",
                 "is too far in the future; compare the clocks of the client and the server",
                 errc::out_of_range);
  if (written.expire_on < written.as_of)
    refuse_field("Holdfast-Expires", "is before Holdfast-As-Of; set a later time");
  if (written.expire_on <= now)
    refuse_field("Holdfast-Expires", "has passed, so the entry would not be kept; set a later time",
                 errc::out_of_range);
}

server_response older_response(timestamp newer) {
  json_writer as_of;
  as_of.time(newer);
  server_response response{.status = 409};
  response.fields.add("Content-Type", http::problem::media_type);
  response.fields.add("Holdfast-As-Of", time_text(newer));
  response.body = http::to_json({.type = "urn:holdfast:problem:older",
                                 .title = "Older version",
                                 .status = 409,
                                 .detail = "the store has a newer version, which it keeps",
                                 .members = {{"code", "\"older\""}, {"asOf", as_of.take()}}});
  return response;
}

class entry_changes {
 public:
  entry_changes(services& shared, std::shared_ptr<store_watch> watch)
      : shared_(shared), watch_(std::move(watch)) {}

  server_response put(api_request& request) {
    const entry_location location(shared_, request);
    auto written = new_entry(request, location, std::nullopt);
    const auto payload_class = request.fields.find("Holdfast-Payload-Class").value_or("");
    if (request.fields.count("Holdfast-Payload-Class") > 1)
      refuse_field("Holdfast-Payload-Class", "occurs twice");
    if (!is_utf8(payload_class))
      refuse_field("Holdfast-Payload-Class", "is not well-formed UTF-8", errc::ill_formed_text);
    if (count_code_points(payload_class) > max_class_length)
      refuse_field("Holdfast-Payload-Class", "has more than 256 characters");
    written.payload_class = payload_class;
    written.payload = std::move(request.body);
    return write(location, written);
  }

  server_response erase(api_request& request) {
    const entry_location location(shared_, request);
    const auto subject = location.service.name + "/" + location.name + "/" + location.key;
    const auto record = [&](std::uint64_t count, std::string result) {
      if (shared_.audit != nullptr)
        shared_.audit->record(request.caller, "store.delete", subject, count, std::move(result));
    };
    try {
      auto response = write(location, new_entry(request, location, tombstone_lifetime));
      const bool is_stored = response.status == 204;
      record(is_stored ? 1 : 0, is_stored ? "done" : "refused: older");
      return response;
    } catch (const error& e) {
      record(0, "failed: " + std::string(to_string(e.code())));
      throw;
    }
  }

 private:
  /// An entry without a payload. It expires after `lifetime` if the request has no expiry.
  entry new_entry(const api_request& request, const entry_location& location,
                  std::optional<std::chrono::microseconds> lifetime) {
    check_no_preconditions(request);
    const auto now = current_time(shared_);
    entry written{.name = location.name, .key = location.key, .realm = location.realm};
    written.as_of = time_field(request, "Holdfast-As-Of").value_or(now);
    auto expires = expiry_of(request, written.as_of);
    if (!expires && lifetime) expires = now + *lifetime;
    if (!expires)
      refuse_field("Holdfast-Expires",
                   "is missing: say until when the entry may be served, by Holdfast-Expires or "
                   "Cache-Control: max-age");
    written.expire_on = *expires;
    check_times(written, now, location.service.options.max_skew);
    return written;
  }

  server_response write(const entry_location& location, const entry& written) {
    const auto newer = writer_.put(location.service.name, *location.service.store, written,
                                   watch_->calls_of(location.service));
    if (newer) return older_response(*newer);
    server_response response{.status = 204};
    add_version_fields(response, written);
    return response;
  }

  services& shared_;
  const std::shared_ptr<store_watch> watch_;
  entry_writer writer_{};
};

}  // namespace

void add_entry_endpoints(endpoint_table& table, services& shared,
                         const std::shared_ptr<store_watch>& watch) {
  const auto changes = std::make_shared<entry_changes>(shared, watch);
  table.add({.method = "GET",
             .path = path_of_entry,
             .summary = "The payload of an entry, with its version",
             .roles = {role::application},
             .scope = "store:{store}:read",
             .for_tenants = true,
             .query = {tenant_parameter, encoding_parameter},
             .statuses = {200, 304, 412},
             .answer = answer_refusals([&shared, watch](api_request& request) {
               return read_entry(shared, *watch, request);
             }),
             .answer_now = answer_refusals(
                 [&shared](api_request& request) { return read_entry_now(shared, request); })});
  table.add({.method = "PUT",
             .path = path_of_entry,
             .summary = "Stores the content as an entry, unless a newer version is there",
             .roles = {role::application},
             .scope = "store:{store}:write",
             .for_tenants = true,
             .query = {tenant_parameter, encoding_parameter},
             .accepts = {"*/*"},
             .statuses = {204, 409, 422},
             .answer = answer_refusals(
                 [changes](api_request& request) { return changes->put(request); })});
  table.add({.method = "DELETE",
             .path = path_of_entry,
             .summary = "Stores a tombstone, unless a newer version is there",
             .roles = {role::application},
             .scope = "store:{store}:write",
             .for_tenants = true,
             .query = {tenant_parameter, encoding_parameter},
             .statuses = {204, 409, 422},
             .answer = answer_refusals(
                 [changes](api_request& request) { return changes->erase(request); })});
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
