#include "serve/api/point_entry_endpoints.hpp"

#include "serve/api/call_points.hpp"
#include "serve/api/endpoint_table.hpp"
#include "serve/api/json_reader.hpp"
#include "serve/api/json_writer.hpp"
#include "serve/auth/masking.hpp"

#include <optional>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

/// Larger payloads are shown in part.
constexpr std::size_t most_revealed_bytes = std::size_t{64} << 10U;

void write_entry_members(json_writer& out, const entry& row) {
  out.member("key", row.key)
      .member("asOf", row.as_of)
      .member("expires", row.expire_on)
      .member("tombstone", row.tombstone())
      .member("payloadClass", row.payload_class)
      .member("bytes", row.payload ? row.payload->size() : std::size_t{0});
}

server_response list_entries(services& shared, const api_request& request) {
  const auto limit = static_cast<std::size_t>(request.query_integer("limit", 100, 1, 1000));
  const auto after = request.query("after").value_or("");
  const auto status = shared.engine->status(request.path("point"));
  const auto page = shared.engine->store()->find_all(status.effective_name, limit, after);
  json_writer out;
  out.begin_object().key("items").begin_array();
  for (const auto& row : page.entries) {
    out.begin_object();
    write_entry_members(out, row);
    out.end_object();
  }
  out.end_array().member("unreadable", page.unreadable);
  if (page.next) out.member("next", *page.next);
  out.end_object();
  return json_response(200, out.take());
}

/// The payload of an entry for a person. JSON has its secret members masked; any other text could
/// be a secret as a whole, so only its size is shown.
void write_payload(json_writer& out, const entry& row) {
  out.key("payload");
  if (!row.payload) {
    out.null();
    return;
  }
  if (row.payload->size() > most_revealed_bytes) {
    out.null().member("withheld", "the payload is larger than 64 KiB");
    return;
  }
  if (const auto masked = mask_json(*row.payload)) out.raw(*masked);
  else out.null().member("withheld", "the payload is not JSON, so secrets in it cannot be masked");
}

server_response show_entry(services& shared, const api_request& request) {
  const auto& point = request.path("point");
  const auto& key = request.path("key");
  const bool reveal = request.query_flag("reveal");
  if (reveal && request.caller.role != role::admin)
    return problem_response(403, "only an admin may see payloads");
  const auto status = shared.engine->status(point);
  const auto row = shared.engine->store()->find(status.effective_name, key);
  if (reveal && shared.audit != nullptr)
    shared.audit->record(request.caller, "point.reveal", point + "/" + key, row ? 1 : 0,
                         row ? "done" : "refused: not found");
  if (!row) throw error(errc::not_found, "no entry has this key", {.path = "key"});
  json_writer out;
  out.begin_object();
  write_entry_members(out, *row);
  if (reveal) write_payload(out, *row);
  out.end_object();
  return json_response(200, out.take());
}

server_response invalidate(services& shared, call_points& points, const api_request& request) {
  auto body = json_object::parse(request.body);
  const auto key = body.text("key");
  const auto args = body.raw_elements("args");
  body.finish();
  if (key.has_value() == args.has_value())
    throw error(errc::invalid_argument,
                "send either key, the key of an entry, or args, the arguments of a call",
                {.path = "key"});
  const auto& point = request.path("point");
  bool invalidated = true;
  if (key) {
    invalidated = shared.engine->invalidate_entry(point, *key);
  } else {
    const auto arguments = read_arguments(*args);
    (void)shared.engine->status(point);  // 404, instead of a new point
    points.get(point).invalidate(arguments);
  }
  if (shared.audit != nullptr)
    shared.audit->record(request.caller, "point.invalidate",
                         key ? point + "/" + *key : point + " by arguments", invalidated ? 1 : 0,
                         "done");
  json_writer out;
  out.begin_object().member("invalidated", invalidated ? 1 : 0).end_object();
  return json_response(200, out.take());
}

}  // namespace

void add_point_entry_endpoints(endpoint_table& table, services& shared,
                               const std::shared_ptr<call_points>& points) {
  const std::vector<role> readers{role::viewer, role::operator_};
  table.add({.method = "GET",
             .path = "/v1/points/{point}/entries",
             .summary = "The entries of a point by key, without their payloads",
             .roles = readers,
             .query = {{.name = "after", .description = "Keys after this one"},
                       {.name = "limit",
                        .type = parameter_type::integer,
                        .description = "At most so many, up to 1000"}},
             .statuses = {200, 404},
             .answer = [&shared](api_request& request) { return list_entries(shared, request); }});
  table.add({.method = "GET",
             .path = "/v1/points/{point}/entries/{key}",
             .summary = "One entry; an admin can see its payload, with secrets masked",
             .roles = readers,
             .query = {{.name = "reveal",
                        .type = parameter_type::boolean,
                        .description = "Show the payload; only for admins, and audited"}},
             .statuses = {200, 404},
             .answer = [&shared](api_request& request) { return show_entry(shared, request); }});
  table.add({.method = "POST",
             .path = "/v1/points/{point}/invalidate",
             .summary = "Stores that there is no answer, for one entry or call",
             .roles = {role::operator_},
             .accepts = {"application/json"},
             .request_schema = R"({"type":"object","properties":{"key":{"type":"string"},)"
                               R"("args":{"type":"array"}}})",
             .statuses = {200, 404, 409, 422},
             .answer = [&shared, points](api_request& request) {
               return invalidate(shared, *points, request);
             }});
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
