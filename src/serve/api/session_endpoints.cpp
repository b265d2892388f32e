#include "serve/api/session_endpoints.hpp"

#include <holdfast/error.hpp>

#include "http/cookie.hpp"
#include "serve/api/endpoint_table.hpp"
#include "serve/api/json_reader.hpp"
#include "serve/api/json_writer.hpp"
#include "serve/api/services.hpp"
#include "serve/auth/identity.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

constexpr std::string_view sign_in_schema = R"({"type":"object","properties":{
"token":{"type":"string"},"link":{"type":"string"}},"additionalProperties":false})";
constexpr std::string_view session_schema = R"({"type":"object","properties":{
"name":{"type":"string"},"role":{"type":"string","enum":["viewer","operator","app","admin"]},
"tenant":{"type":"string"},"scopes":{"type":"array","items":{"type":"string"}},
"endsAt":{"type":["string","null"],"format":"date-time"}}})";
/// In the audit log, until the client is known.
constexpr const char* unknown_caller = "unknown";
constexpr const char* link_caller = "first-start";

std::string describe_session(const caller& actor, const std::optional<timestamp>& end) {
  json_writer out;
  out.begin_object()
      .member("name", actor.name)
      .member("role", to_string(actor.role))
      .member("tenant", actor.tenant)
      .key("scopes")
      .begin_array();
  for (const auto& scope : actor.scopes) out.text(scope);
  out.end_array().key("endsAt");
  if (end) out.time(*end);
  else out.null();
  out.end_object();
  return out.take();
}

void set_cookie(identity& auth, server_response& response, std::string value,
                std::chrono::seconds life) {
  const bool https = auth.uses_https();
  response.fields.add("Set-Cookie", http::to_field({.name = std::string(session_cookie_name(https)),
                                                    .value = std::move(value),
                                                    .max_age = life,
                                                    .secure = https}));
}

std::optional<std::string_view> cookie_of(identity& auth, const api_request& request) {
  return http::find_cookie(request.fields, session_cookie_name(auth.uses_https()));
}

/// Who signs in, or the answer that refuses.
struct sign_in {
  std::string token_id{};
  caller actor{};
  std::optional<server_response> refusal{};
};

sign_in sign_in_with_token(identity& auth, std::string_view text) {
  const auto check = auth.tokens().check(text, auth.clock().now());
  if (check.verdict != token_verdict::usable) return {.refusal = refuse_token(check.verdict)};
  const auto& record = check.token->record;
  return {.token_id = record.id,
          .actor = {.name = record.name,
                    .role = record.role,
                    .identified = true,
                    .scopes = record.scopes,
                    .tenant = record.tenant}};
}

sign_in sign_in_with_link(identity& auth, std::string_view secret) {
  if (!auth.use_sign_in_link(secret))
    return {.refusal = problem_response(401,
                                        "the link was used, or is older than 10 minutes; sign "
                                        "in with a token")};
  return {.actor = {.name = link_caller, .role = role::admin, .identified = true}};
}

server_response post_session(identity& auth, api_request& request) {
  const auto& address = request.caller.address;
  if (const auto pause = auth.sign_ins().admit(address, auth.clock().steady()))
    return too_many_requests(*pause,
                             "too many attempts to sign in from this address; wait a "
                             "minute");
  auto body = json_object::parse(request.body);
  const auto token = body.text("token");
  const auto link = body.text("link");
  body.finish();
  if (token.has_value() == link.has_value())
    throw error(errc::invalid_argument, "send either a token or the secret of a link",
                {.path = "token"});
  auto attempt = token ? sign_in_with_token(auth, *token) : sign_in_with_link(auth, *link);
  attempt.actor.address = address;
  if (attempt.refusal) {
    attempt.actor.name = unknown_caller;
    auth.audit().record(attempt.actor, "session.start", token ? "token" : "link", 0,
                        "refused: " + std::to_string(attempt.refusal->status));
    return *std::move(attempt.refusal);
  }
  // A session of this browser from before ends: its cookie is replaced.
  if (const auto cookie = cookie_of(auth, request)) auth.sessions().end(auth.database(), *cookie);
  auto cookie =
      auth.sessions().start(auth.database(), std::move(attempt.token_id), attempt.actor.name);
  auth.audit().record(attempt.actor, "session.start", attempt.actor.name, 1, "done");
  auto response =
      json_response(200, describe_session(attempt.actor, auth.clock().now() + session_life));
  set_cookie(auth, response, std::move(cookie), session_life);
  return response;
}

server_response get_session(identity& auth, api_request& request) {
  std::optional<timestamp> end;
  const bool by_cookie = !request.fields.find("Authorization");
  if (const auto cookie = cookie_of(auth, request); cookie && by_cookie) {
    if (const auto session = auth.sessions().find(*cookie, auth.clock().now()))
      end = session->end();
  }
  return json_response(200, describe_session(request.caller, end));
}

server_response delete_session(identity& auth, api_request& request) {
  if (const auto cookie = cookie_of(auth, request);
      cookie && auth.sessions().find(*cookie, auth.clock().now())) {
    auth.sessions().end(auth.database(), *cookie);
    auth.audit().record(request.caller, "session.end", request.caller.name, 1, "done");
  }
  server_response response{.status = 204};
  set_cookie(auth, response, "", std::chrono::seconds(0));
  return response;
}

}  // namespace

void add_session_endpoints(endpoint_table& table, services& shared) {
  auto& auth = shared.find_identity();
  table.add({.method = "POST",
             .path = "/v1/session",
             .summary = "Signs in to the console with a token, or with the link of the first start",
             .accepts = {"application/json"},
             .request_schema = sign_in_schema,
             .response_schema = session_schema,
             .max_body = std::size_t{4} << 10U,
             .answer = [&auth](api_request& request) { return post_session(auth, request); }});
  table.add({.method = "GET",
             .path = "/v1/session",
             .summary = "Says who the caller is",
             .roles = {role::viewer, role::operator_, role::application},
             .for_tenants = true,
             .response_schema = session_schema,
             .answer = [&auth](api_request& request) { return get_session(auth, request); }});
  table.add({.method = "DELETE",
             .path = "/v1/session",
             .summary = "Signs out of the console",
             .statuses = {204},
             .answer = [&auth](api_request& request) { return delete_session(auth, request); }});
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
