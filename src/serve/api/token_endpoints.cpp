#include "serve/api/token_endpoints.hpp"

#include <holdfast/error.hpp>

#include "serve/api/endpoint_table.hpp"
#include "serve/api/json_reader.hpp"
#include "serve/api/json_writer.hpp"
#include "serve/api/services.hpp"
#include "serve/auth/identity.hpp"

#include <string>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

constexpr std::string_view token_schema = R"({"type":"object","properties":{
"id":{"type":"string"},"name":{"type":"string"},"role":{"type":"string"},
"scopes":{"type":"array","items":{"type":"string"}},"tenant":{"type":"string"},
"rate":{"type":"string"},"state":{"type":"string","enum":["active","expired","revoked"]},
"createdAt":{"type":"string","format":"date-time"},
"expiresAt":{"type":"string","format":"date-time"},
"revokedAt":{"type":["string","null"],"format":"date-time"},
"lastUsedAt":{"type":["string","null"],"format":"date-time"},
"token":{"type":"string"}}})";
constexpr std::string_view token_list_schema = R"({"type":"object","properties":{
"items":{"type":"array","items":{"type":"object"}},"next":{"type":"string"}}})";
constexpr std::string_view new_token_schema = R"({"type":"object","properties":{
"name":{"type":"string"},"role":{"type":"string","enum":["viewer","operator","app","admin"]},
"scopes":{"type":"array","items":{"type":"string"}},"tenant":{"type":"string"},
"expiresIn":{"type":"string"},"rate":{"type":"string"}},"additionalProperties":false})";

void write_optional_time(json_writer& out, std::string_view name,
                         const std::optional<timestamp>& time) {
  out.key(name);
  if (time) out.time(*time);
  else out.null();
}

void write_token(json_writer& out, const token_record& token, timestamp now,
                 std::string_view secret = {}) {
  out.begin_object()
      .member("id", token.id)
      .member("name", token.name)
      .member("role", to_string(token.role))
      .key("scopes")
      .begin_array();
  for (const auto& scope : token.scopes) out.text(scope);
  out.end_array()
      .member("tenant", token.tenant)
      .member("rate", token.rate == 0 ? std::string() : std::to_string(token.rate) + "/s")
      .member("state", token_state(token, now))
      .member("createdAt", token.created)
      .member("expiresAt", token.expires);
  write_optional_time(out, "revokedAt", token.revoked);
  write_optional_time(out, "lastUsedAt", token.last_used);
  if (!secret.empty()) out.member("token", secret);
  out.end_object();
}

server_response get_tokens(identity& auth, api_request& request) {
  const auto limit = static_cast<std::size_t>(request.query_integer("limit", 100, 1, 1'000));
  const auto now = auth.clock().now();
  auth.tokens().store_uses(auth.database());
  auto session = auth.database().read("token.list");
  auto tokens = list_tokens(session, request.query("after").value_or(""), limit + 1);
  const bool has_next = tokens.size() > limit;
  if (has_next) tokens.pop_back();
  json_writer out;
  out.begin_object().key("items").begin_array();
  for (const auto& token : tokens) write_token(out, token.record, now);
  out.end_array();
  if (has_next) out.member("next", tokens.back().record.id);
  out.end_object();
  return json_response(200, out.take());
}

token_settings read_settings(const std::string& content) {
  auto body = json_object::parse(content);
  token_settings settings{.name = body.text("name").value_or("")};
  if (const auto name = body.text("role")) settings.role = parse_role(*name);
  settings.scopes = body.texts("scopes").value_or(std::vector<std::string>{});
  settings.tenant = body.text("tenant").value_or("");
  if (const auto lifetime = body.duration("expiresIn")) {
    // Compared before the conversion to microseconds, which could overflow.
    if (*lifetime > std::chrono::days(100'000))
      throw error(errc::invalid_argument, "must be at most 10 years", {.path = "expiresIn"});
    settings.lifetime = *lifetime;
  }
  if (const auto rate = body.text("rate")) settings.rate = parse_rate(*rate);
  body.finish();
  return settings;
}

server_response post_token(identity& auth, api_request& request) {
  const auto token = add_token(auth.database(), read_settings(request.body));
  auth.audit().record(request.caller, "token.add", token.record.name, 1, "done");
  auth.reload();
  json_writer out;
  write_token(out, token.record, auth.clock().now(), token.secret);
  auto response = json_response(201, out.take());
  response.fields.add("Location", "/v1/tokens/" + token.record.id);
  return response;
}

server_response delete_token(identity& auth, api_request& request) {
  const auto& id = request.path("id");
  const auto revoked = is_token_id(id) ? revoke_token(auth.database(), id) : std::nullopt;
  if (!revoked) throw error(errc::not_found, "there is no token of this id");
  auth.audit().record(request.caller, "token.revoke", revoked->name, 1, "done");
  auth.reload();
  return {.status = 204};
}

}  // namespace

void add_token_endpoints(endpoint_table& table, services& shared) {
  auto& auth = shared.find_identity();
  table.add({.method = "GET",
             .path = "/v1/tokens",
             .summary = "Lists tokens, without their secrets",
             .roles = {role::admin},
             .query = {{.name = "after", .description = "The value next of the page before"},
                       {.name = "limit",
                        .type = parameter_type::integer,
                        .description = "Tokens on a page: 1 to 1000, 100 if it is missing"}},
             .response_schema = token_list_schema,
             .answer = [&auth](api_request& request) { return get_tokens(auth, request); }});
  table.add({.method = "POST",
             .path = "/v1/tokens",
             .summary = "Adds a token; its secret is in this answer only",
             .roles = {role::admin},
             .accepts = {"application/json"},
             .request_schema = new_token_schema,
             .response_schema = token_schema,
             .statuses = {201, 409},
             .max_body = std::size_t{64} << 10U,
             .answer = [&auth](api_request& request) { return post_token(auth, request); }});
  table.add({.method = "DELETE",
             .path = "/v1/tokens/{id}",
             .summary = "Revokes a token, and ends its sessions",
             .roles = {role::admin},
             .statuses = {204},
             .answer = [&auth](api_request& request) { return delete_token(auth, request); }});
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
