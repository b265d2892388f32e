#include "serve/api/audit_endpoints.hpp"

#include <holdfast/error.hpp>

#include "serve/api/endpoint_table.hpp"
#include "serve/api/json_writer.hpp"
#include "serve/api/services.hpp"
#include "serve/auth/identity.hpp"

#include <string>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

constexpr std::string_view audit_schema = R"({"type":"object","properties":{
"items":{"type":"array","items":{"type":"object","properties":{
"id":{"type":"string"},"at":{"type":"string","format":"date-time"},"caller":{"type":"string"},
"address":{"type":"string"},"tenant":{"type":"string"},"action":{"type":"string"},
"subject":{"type":"string"},"count":{"type":"integer"},"result":{"type":"string"}}}},
"next":{"type":"string"}}})";

server_response get_audit(identity& auth, api_request& request) {
  const auto limit = static_cast<std::size_t>(request.query_integer("limit", 100, 1, 1'000));
  const audit_filter filter{.caller = request.query("caller").value_or(""),
                            .tenant = request.query("tenant").value_or(""),
                            .action = request.query("action").value_or(""),
                            .subject = request.query("subject").value_or(""),
                            .begin = request.query_time("from"),
                            .end = request.query_time("to"),
                            .after = request.query("after").value_or("")};
  // So that the answer has what the caller did before.
  auth.audit().write_queue(auth.database());
  auto session = auth.database().read("audit.list");
  auto entries = list_audit(session, filter, limit + 1);
  const bool has_next = entries.size() > limit;
  if (has_next) entries.pop_back();
  json_writer out;
  out.begin_object().key("items").begin_array();
  for (const auto& entry : entries) out.raw(to_json(entry));
  out.end_array();
  if (has_next) out.member("next", entries.back().id);
  out.end_object();
  return json_response(200, out.take());
}

}  // namespace

void add_audit_endpoints(endpoint_table& table, services& shared) {
  auto& auth = shared.find_identity();
  table.add({.method = "GET",
             .path = "/v1/audit",
             .summary = "Lists who changed what, the newest first",
             .roles = {role::admin},
             .query = {{.name = "caller", .description = "Name of a token or user"},
                       {.name = "tenant"},
                       {.name = "action", .description = "outbox.replay, token.add, ..."},
                       {.name = "subject", .description = "What it was done to"},
                       {.name = "from", .type = parameter_type::time, .description = "Inclusive"},
                       {.name = "to", .type = parameter_type::time, .description = "Exclusive"},
                       {.name = "after", .description = "The value next of the page before"},
                       {.name = "limit",
                        .type = parameter_type::integer,
                        .description = "Entries on a page: 1 to 1000, 100 if it is missing"}},
             .response_schema = audit_schema,
             .answer = [&auth](api_request& request) { return get_audit(auth, request); }});
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
