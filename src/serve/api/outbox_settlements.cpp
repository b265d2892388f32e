#include "serve/api/outbox_settlements.hpp"

#include <holdfast/error.hpp>

#include "serve/api/endpoint_table.hpp"
#include "serve/api/json_reader.hpp"
#include "serve/api/outbox_access.hpp"
#include "serve/api/outbox_json.hpp"

#include <array>
#include <string>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

constexpr std::size_t max_settlements = 1000;
constexpr std::chrono::milliseconds default_retry_delay = std::chrono::seconds(5);

[[noreturn]] void refuse_member(const std::string& path, const std::string& reason) {
  throw error(errc::invalid_argument, reason, {.path = path});
}

/// The token that a claim returned.
fence read_fence(json_object& body) {
  const auto value = body.integer("fence");
  if (!value) refuse_member("fence", "is required; a claim returns it");
  return *value;
}

/// How an outcome of a client becomes a settlement. The names are those of `outcome::kind`, and
/// `release`: not tried.
void apply_outcome(const std::string& outcome, const std::string& path, settlement& target) {
  using enum settlement::kind;
  if (outcome == "done") target.action = ack;
  else if (outcome == "retry" || outcome == "throttled" || outcome == "ambiguous")
    target.action = retry;
  else if (outcome == "permanent") target.action = park;
  else if (outcome == "release") target.action = release;
  else
    refuse_member(path + ".outcome",
                  "must be done, retry, throttled, ambiguous, permanent or release");
  target.counts = outcome != "throttled";
  if (outcome == "ambiguous")
    target.error = target.error.empty() ? "ambiguous" : "ambiguous: " + target.error;
}

park_policy read_policy(json_object& item, const std::string& path) {
  const auto text = item.text("policy");
  if (!text || *text == "skip") return park_policy::skip;
  if (*text == "block") return park_policy::block;
  if (*text == "park") return park_policy::park;
  refuse_member(path + ".policy", "must be skip, block or park");
}

settlement read_settlement(json_object& item, std::size_t index) {
  const auto path = "events[" + std::to_string(index) + "]";
  settlement result;
  result.id = item.required_text("id");
  result.key = item.text("key").value_or("");
  result.error = item.text("why").value_or("");
  result.delay = item.duration("after").value_or(default_retry_delay);
  result.policy = read_policy(item, path);
  apply_outcome(item.required_text("outcome"), path, result);
  item.finish();
  return result;
}

/// The objects of `events`, at least one and at most 1000.
std::vector<json_object> read_items(json_object& body) {
  auto items = body.objects("events");
  if (!items || items->empty()) refuse_member("events", "needs at least one event");
  if (items->size() > max_settlements)
    refuse_member("events", "has more than 1000 events; send several requests");
  return *std::move(items);
}

std::optional<run_request> read_next(json_object& body) {
  auto object = body.object("next");
  if (!object) return std::nullopt;
  run_request next;
  next.run = checked_count(*object, "run", next.run);
  next.lease = object->duration("lease").value_or(next.lease);
  next.owner = object->text("owner").value_or("");
  object->finish();
  return next;
}

server_response settle(const outbox_service& service, const api_request& request) {
  auto body = json_object::parse(request.body);
  const auto lane = checked_lane(service, body.integer("lane").value_or(0));
  const auto token = read_fence(body);
  auto items = read_items(body);
  std::vector<settlement> settlements;
  settlements.reserve(items.size());
  for (std::size_t i = 0; i < items.size(); ++i)
    settlements.push_back(read_settlement(items[i], i));
  const auto next = read_next(body);
  body.finish();
  const auto result = service.outbox.settle(lane, token, settlements, next);
  json_writer out;
  out.begin_object().key("events").begin_array();
  for (std::size_t i = 0; i < settlements.size(); ++i) {
    out.begin_object()
        .member("id", settlements[i].id)
        .member("result", result.done.at(i) ? "done" : "stale")
        .end_object();
  }
  out.end_array();
  if (next) write_claim(out.key("next"), result.next);
  out.end_object();
  return json_response(200, out.take());
}

server_response extend(const outbox_service& service, const api_request& request) {
  auto body = json_object::parse(request.body);
  const auto lane = checked_lane(service, body.integer("lane").value_or(0));
  const auto token = read_fence(body);
  const auto lease = body.duration("lease").value_or(claim_request().lease);
  std::vector<claimed_event> events;
  for (auto& item : read_items(body)) {
    claimed_event event{.lane = lane};
    event.event.id = item.required_text("id");
    event.event.key = item.text("key").value_or("");
    item.finish();
    events.push_back(std::move(event));
  }
  body.finish();
  const auto held = service.outbox.extend(token, events, lease);
  json_writer out;
  out.begin_object().key("events").begin_array();
  for (std::size_t i = 0; i < events.size(); ++i) {
    out.begin_object()
        .member("id", events[i].event.id)
        .member("result", held.at(i) ? "held" : "stale")
        .end_object();
  }
  out.end_array().end_object();
  return json_response(200, out.take());
}

server_response lock_lane(const outbox_service& service, const api_request& request) {
  auto body = json_object::parse(request.body);
  const auto lane = checked_lane(service, body.integer("lane").value_or(0));
  const auto owner = body.required_text("owner");
  const auto ttl = body.duration("ttl").value_or(std::chrono::seconds(10));
  body.finish();
  // Of this owner, it renews the lock, with the same fence.
  const auto grant = service.outbox.lock(lane, owner, ttl);
  json_writer out;
  out.begin_object().member("held", grant.held).member("lane", lane);
  if (grant.held) out.key("fence").wide(grant.fence);
  out.member("holder", grant.holder)
      .member("remaining", duration_text(grant.remaining))
      .end_object();
  return json_response(grant.held ? 200 : 409, out.take());
}

server_response unlock_lane(const outbox_service& service, const api_request& request) {
  const auto lane = checked_lane(service, request.query_integer("lane", 0, 0, 255));
  const auto owner = request.query("owner");
  if (!owner) refuse_member("owner", "is required: the name that the lock was acquired with");
  if (service.outbox.unlock(lane, *owner)) return {.status = 204};
  return problem_response(409, "this owner does not hold the lock of the lane");
}

}  // namespace

void add_outbox_settlement_endpoints(endpoint_table& table, services& shared) {
  constexpr std::string_view scope = "outbox:{outbox}:work";
  table.add({.method = "POST",
             .path = "/v1/outboxes/{outbox}/settlements",
             .summary = "Settles claimed events, and claims the next run of their keys",
             .roles = {role::application},
             .scope = scope,
             .for_tenants = true,
             .accepts = {"application/json"},
             .statuses = {200, 504},
             .answer = on_outbox(shared, settle)});
  table.add({.method = "POST",
             .path = "/v1/outboxes/{outbox}/extensions",
             .summary = "Extends the leases of claimed events",
             .roles = {role::application},
             .scope = scope,
             .for_tenants = true,
             .accepts = {"application/json"},
             .statuses = {200, 504},
             .answer = on_outbox(shared, extend)});
  table.add({.method = "POST",
             .path = "/v1/outboxes/{outbox}/locks",
             .summary = "Acquires or renews the lock of a lane",
             .roles = {role::application},
             .scope = scope,
             .for_tenants = true,
             .accepts = {"application/json"},
             .statuses = {200, 409, 504},
             .answer = on_outbox(shared, lock_lane)});
  table.add({.method = "DELETE",
             .path = "/v1/outboxes/{outbox}/locks",
             .summary = "Releases the lock of a lane",
             .roles = {role::application},
             .scope = scope,
             .for_tenants = true,
             .query = {{"lane", parameter_type::integer, "Number of the lane; 0 if missing"},
                       {"owner", parameter_type::text, "Name that the lock was acquired with"}},
             .statuses = {204, 409, 504},
             .answer = on_outbox(shared, unlock_lane)});
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
