#include "serve/api/openapi.hpp"

#include "http/problem.hpp"
#include "http/writer.hpp"
#include "serve/api/endpoint_table.hpp"
#include "serve/api/json_writer.hpp"

#include <memory>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

constexpr std::string_view problem_reference = R"({"$ref":"#/components/responses/problem"})";
constexpr std::string_view problem_schema = R"({"type":"object","required":["status"],"properties":{
"type":{"type":"string"},"title":{"type":"string"},"status":{"type":"integer"},
"detail":{"type":"string"},"instance":{"type":"string"},"code":{"type":"string"},
"transient":{"type":"boolean"},"inDoubt":{"type":"boolean"},"path":{"type":"string"},
"reason":{"type":"string"},"backendCode":{"type":"string"}}})";

/// `get_v1_stores_store_doctor`
std::string operation_id(const endpoint& row) {
  std::string id;
  for (const char c : row.method) id += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  for (const auto segment : split_path(row.path)) {
    const auto name = parameter_of(segment);
    id.append("_").append(name.empty() ? segment : name);
  }
  for (char& c : id) {
    if (c == '.' || c == '-') c = '_';
  }
  return id;
}

/// The resource: `stores` of `/v1/stores/{store}`.
std::string_view tag_of(const endpoint& row) {
  const auto segments = split_path(row.path);
  const bool is_resource = segments.size() > 1 && segments.front() == "v1" &&
                           segments[1].find('.') == std::string_view::npos;
  return is_resource ? segments[1] : "server";
}

std::string_view schema_of(parameter_type type) {
  switch (type) {
    case parameter_type::text:
      return R"({"type":"string"})";
    case parameter_type::integer:
      return R"({"type":"integer","format":"int64"})";
    case parameter_type::boolean:
      return R"({"type":"boolean"})";
    case parameter_type::time:
      return R"({"type":"string","format":"date-time"})";
    case parameter_type::duration:
      return R"({"type":"string","pattern":"^[0-9]+(ms|s|m|h|d)$"})";
  }
  return "{}";
}

void write_parameters(json_writer& out, const endpoint& row) {
  out.key("parameters").begin_array();
  for (const auto segment : split_path(row.path)) {
    const auto name = parameter_of(segment);
    if (name.empty()) continue;
    out.begin_object().member("name", name).member("in", "path").member("required", true);
    out.key("schema").raw(R"({"type":"string"})").end_object();
  }
  for (const auto& parameter : row.query) {
    out.begin_object().member("name", parameter.name).member("in", "query");
    if (!parameter.description.empty()) out.member("description", parameter.description);
    out.key("schema").raw(schema_of(parameter.type)).end_object();
  }
  out.end_array();
}

void write_content(json_writer& out, const endpoint& row) {
  if (row.accepts.empty()) return;
  out.key("requestBody").begin_object().key("content").begin_object();
  for (const auto type : row.accepts) {
    out.key(type).begin_object();
    if (!row.request_schema.empty()) out.key("schema").raw(row.request_schema);
    out.end_object();
  }
  out.end_object().end_object();
}

void write_responses(json_writer& out, const endpoint& row) {
  out.key("responses").begin_object();
  for (const int status : row.statuses) {
    out.key(std::to_string(status));
    if (status >= 400) {
      out.raw(problem_reference);
      continue;
    }
    out.begin_object().member("description", http::reason_of(status));
    if (status == row.statuses.front() && !row.response_schema.empty()) {
      out.key("content").begin_object().key("application/json").begin_object();
      out.key("schema").raw(row.response_schema).end_object().end_object();
    }
    out.end_object();
  }
  out.key("4XX").raw(problem_reference).key("5XX").raw(problem_reference).end_object();
}

void write_operation(json_writer& out, const endpoint& row) {
  std::string method(row.method);
  for (char& c : method) c = static_cast<char>(c + 32);
  out.key(method).begin_object().member("operationId", operation_id(row));
  out.member("summary", row.summary).key("tags").begin_array().text(tag_of(row)).end_array();
  write_parameters(out, row);
  write_content(out, row);
  write_responses(out, row);
  out.key("security").begin_array();
  if (!row.roles.empty()) out.raw(R"({"token":[]})");
  out.end_array().key("x-holdfast-roles").begin_array();
  for (const auto value : row.roles) out.text(to_string(value));
  out.end_array();
  if (!row.scope.empty()) out.member("x-holdfast-scope", row.scope);
  out.end_object();
}

/// The rows of each path, in the order of the table.
std::vector<std::pair<std::string_view, std::vector<const endpoint*>>> rows_by_path(
    const endpoint_table& table) {
  std::vector<std::pair<std::string_view, std::vector<const endpoint*>>> paths;
  for (const auto& row : table.rows()) {
    auto it = paths.begin();
    while (it != paths.end() && it->first != row.path) ++it;
    if (it == paths.end()) it = paths.insert(it, {row.path, {}});
    it->second.push_back(&row);
  }
  return paths;
}

}  // namespace

std::string openapi_document(const endpoint_table& table) {
  json_writer out;
  out.begin_object().member("openapi", "3.1.0").key("info").begin_object();
  out.member("title", "Holdfast").member("version", HOLDFAST_VERSION_STRING).end_object();
  out.key("paths").begin_object();
  for (const auto& [path, rows] : rows_by_path(table)) {
    out.key(path).begin_object();
    for (const auto* row : rows) write_operation(out, *row);
    out.end_object();
  }
  out.end_object().key("components").begin_object();
  out.key("schemas").begin_object().key("problem").raw(problem_schema).end_object();
  out.key("responses").begin_object().key("problem").begin_object();
  out.member("description", "What is wrong, and what to do").key("content").begin_object();
  out.key(http::problem::media_type).raw(R"({"schema":{"$ref":"#/components/schemas/problem"}})");
  out.end_object().end_object().end_object();
  out.key("securitySchemes").raw(R"({"token":{"type":"http","scheme":"bearer"}})");
  return out.end_object().end_object().take();
}

void add_openapi_endpoint(endpoint_table& table) {
  struct cached_document {
    std::once_flag once{};
    std::string json{};
  };
  table.add({.method = "GET",
             .path = "/v1/openapi.json",
             .summary = "This document",
             .answer = [&table, cache = std::make_shared<cached_document>()](api_request&) {
               std::call_once(cache->once, [&] { cache->json = openapi_document(table); });
               return json_response(200, cache->json);
             }});
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
