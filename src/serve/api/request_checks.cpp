#include "serve/api/request_checks.hpp"

#include "base/edit_distance.hpp"
#include "base/utf8.hpp"
#include "http/problem.hpp"
#include "http/syntax.hpp"
#include "key/json_string.hpp"
#include "serve/api/value_text.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

server_response refuse_parameter(std::string_view name, const std::string& reason) {
  http::problem details{.type = "urn:holdfast:problem:invalid_argument", .status = 400};
  details.detail = key::quote(name) + ": " + reason;
  details.members.emplace_back("code", "\"invalid_argument\"");
  details.members.emplace_back("path", key::quote(name));
  server_response response{.status = 400};
  response.fields.add("Content-Type", http::problem::media_type);
  response.body = http::to_json(details);
  return response;
}

server_response refuse_unknown_parameter(const endpoint& row, std::string_view name) {
  if (row.query.empty()) return refuse_parameter(name, "this endpoint has no query parameters");
  // The edit distance of long texts takes long.
  const auto short_name = name.substr(0, 40);
  const auto nearest = std::ranges::min_element(
      row.query, {},
      [&](const query_parameter& candidate) { return edit_distance(short_name, candidate.name); });
  return refuse_parameter(name, "this endpoint has no such parameter; the nearest is '" +
                                    std::string(nearest->name) + "'");
}

bool is_integer(std::string_view text) noexcept {
  std::int64_t value = 0;
  const auto* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  return parsed.ec == std::errc{} && parsed.ptr == end;
}

/// What a value must be, or null if it is.
const char* type_problem(parameter_type type, std::string_view value) {
  switch (type) {
    case parameter_type::text:
      return nullptr;
    case parameter_type::integer:
      return is_integer(value) ? nullptr : "must be an integer";
    case parameter_type::boolean:
      return value == "1" || value == "0" || value == "true" || value == "false"
                 ? nullptr
                 : "must be true or false";
    case parameter_type::time:
      return parse_time(value) ? nullptr : "must be a time such as 2026-11-15T23:05:16.120431Z";
    case parameter_type::duration:
      return parse_duration(value) ? nullptr
                                   : "must be a duration such as 500ms, 30s, 15m, 24h, 7d";
  }
  return nullptr;
}

std::optional<std::string> decode_form_text(std::string_view encoded) {
  std::string text(encoded);
  std::ranges::replace(text, '+', ' ');
  auto decoded = http::percent_decode(text);
  if (!decoded || !is_utf8(*decoded)) return std::nullopt;
  return decoded;
}

/// Returns false for a text that declares another encoding than UTF-8.
bool is_in_utf8(std::string_view media_type) noexcept {
  for (auto semicolon = media_type.find(';'); semicolon != std::string_view::npos;
       semicolon = media_type.find(';')) {
    media_type.remove_prefix(semicolon + 1);
    const auto parameter = http::trim(media_type.substr(0, media_type.find(';')));
    const auto equals = std::min(parameter.find('='), parameter.size());
    if (!http::equals_ignoring_case(parameter.substr(0, equals), "charset")) continue;
    auto value = parameter.substr(std::min(equals + 1, parameter.size()));
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"')
      value = value.substr(1, value.size() - 2);
    if (!http::equals_ignoring_case(value, "utf-8") && !http::equals_ignoring_case(value, "utf8"))
      return false;
  }
  return true;
}

std::string join_accepted(const endpoint& row) {
  std::string text;
  for (const auto type : row.accepts) text.append(text.empty() ? "" : ", ").append(type);
  return text;
}

server_response refuse_role(const endpoint& row) {
  std::string roles;
  for (std::size_t i = 0; i < row.roles.size(); ++i) {
    if (i > 0) roles += i + 1 == row.roles.size() ? " or " : ", ";
    roles += to_string(row.roles[i]);
  }
  return problem_response(403, "this needs the role " + roles);
}

}  // namespace

std::string expand_scope(std::string_view scope,
                         const std::vector<std::pair<std::string, std::string>>& parameters) {
  std::string expanded;
  while (!scope.empty()) {
    const auto open = std::min(scope.find('{'), scope.size());
    expanded.append(scope.substr(0, open));
    scope.remove_prefix(open);
    if (scope.empty()) break;
    const auto close = std::min(scope.find('}'), scope.size() - 1);
    const auto name = scope.substr(1, close - 1);
    const auto it =
        std::ranges::find(parameters, name, &std::pair<std::string, std::string>::first);
    if (it != parameters.end()) {
      for (const char c : it->second) expanded += c == ':' ? std::string("%3A") : std::string(1, c);
    }
    scope.remove_prefix(close + 1);
  }
  return expanded;
}

std::optional<server_response> check_permission(const endpoint& row, const api_request& request) {
  if (row.roles.empty()) return std::nullopt;
  const auto& client = request.caller;
  if (!client.identified) {
    auto refusal = problem_response(
        401, "send a token: Authorization: Bearer hf_...; holdfast serve token add makes one");
    refusal.fields.add("WWW-Authenticate", "Bearer realm=\"holdfast\"");
    return refusal;
  }
  if (client.role != role::admin && std::ranges::find(row.roles, client.role) == row.roles.end())
    return refuse_role(row);
  if (!client.tenant.empty() && !row.for_tenants)
    return problem_response(403, "this needs a token without a tenant");
  if (client.role == role::application && !row.scope.empty()) {
    const auto scope = expand_scope(row.scope, request.path_parameters);
    if (!client.has_scope(scope)) return problem_response(403, "this needs the scope " + scope);
  }
  return std::nullopt;
}

std::optional<server_response> read_query(const endpoint& row, api_request& request) {
  std::optional<server_response> refusal;
  if (!request.target) return refusal;
  http::for_each_parameter(
      request.target->query(), [&](std::string_view raw_name, std::string_view raw_value) {
        if (refusal) return;
        const auto name = decode_form_text(raw_name);
        auto value = decode_form_text(raw_value);
        if (!name || !value) {
          refusal = refuse_parameter(raw_name, "must be UTF-8, percent-encoded");
          return;
        }
        const auto declared = std::ranges::find(row.query, *name, &query_parameter::name);
        if (declared == row.query.end()) {
          refusal = refuse_unknown_parameter(row, *name);
        } else if (request.query(*name)) {
          refusal = refuse_parameter(*name, "occurs twice; send it once");
        } else if (const auto* const reason = type_problem(declared->type, *value)) {
          refusal = refuse_parameter(*name, reason);
        } else {
          request.query_parameters.emplace_back(*name, *std::move(value));
        }
      });
  return refusal;
}

std::optional<server_response> check_content(const endpoint& row, const api_request& request) {
  if (request.body.empty()) return std::nullopt;
  if (row.accepts.empty()) return problem_response(415, "this endpoint takes no content");
  if (request.body.size() > row.max_body)
    return problem_response(
        413, "the content may have at most " + std::to_string(row.max_body) + " bytes");
  if (request.fields.count("Content-Type") > 1)
    return problem_response(415, "Content-Type must be given once");
  const auto field = request.fields.find("Content-Type").value_or("");
  const auto type = http::trim(field.substr(0, field.find(';')));
  const bool accepted = std::ranges::any_of(row.accepts, [&](std::string_view candidate) {
    return candidate == "*/*" || http::equals_ignoring_case(candidate, type);
  });
  if (!accepted) return problem_response(415, "Content-Type must be one of: " + join_accepted(row));
  const bool any_type = std::ranges::find(row.accepts, "*/*") != row.accepts.end();
  if (!any_type && !is_in_utf8(field)) return problem_response(415, "the content must be in UTF-8");
  return std::nullopt;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
