#include "serve/console/console_part.hpp"

#include <holdfast/error.hpp>

#include "http/conditional.hpp"
#include "serve/api/endpoint_table.hpp"
#include "serve/console/assets.hpp"

#include <algorithm>
#include <chrono>
#include <string>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

constexpr std::string_view start_page = "index.html";
/// Only files of this server; the browser refuses to make markup of a text.
constexpr std::string_view content_policy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for "
    "'script'; trusted-types 'none'";

const console_asset& find_asset(std::string_view name) {
  const auto assets = console_assets();
  const auto it = std::ranges::find(assets, name, &console_asset::name);
  if (it == assets.end())
    throw error(errc::not_found, "the console has no such file; it begins at /", {.path = "file"});
  return *it;
}

/// Returns true if the client names gzip, with a weight other than 0.
bool accepts_gzip(const http::fields& fields) {
  const auto accepted = fields.find("Accept-Encoding");
  if (!accepted) return false;
  const auto begin = accepted->find("gzip");
  if (begin == std::string_view::npos) return false;
  const auto parameters = accepted->substr(begin, accepted->find(',', begin) - begin);
  const auto weight = parameters.find("q=");
  return weight == std::string_view::npos ||
         parameters.find_first_of("123456789", weight) != std::string_view::npos;
}

server_response answer_asset(const console_asset& asset, const api_request& request) {
  const bool compressed = accepts_gzip(request.fields);
  const auto& content = compressed ? asset.gzip : asset.plain;
  server_response response;
  response.fields.add("ETag", content.tag);
  // The browser keeps the file, and asks each time whether it is the newest.
  response.fields.add("Cache-Control", "no-cache");
  response.fields.add("Vary", "Accept-Encoding");
  response.fields.add("Content-Security-Policy", content_policy);
  response.fields.add("Referrer-Policy", "no-referrer");
  const http::validators current{.tag = http::parse_entity_tag(content.tag)};
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  switch (http::evaluate(request.method, request.fields, current, now)) {
    case http::precondition::not_modified:
      response.status = 304;
      return response;
    case http::precondition::failed:
      return problem_response(412, "the file has another ETag; repeat the request without it");
    case http::precondition::proceed:
      break;
  }
  response.fields.add("Content-Type", asset.media_type);
  if (compressed) response.fields.add("Content-Encoding", "gzip");
  response.body = content.bytes;
  return response;
}

class console_part final : public server_part {
 public:
  void add_endpoints(endpoint_table& table, services& /*shared*/) override {
    table.add({.method = "GET",
               .path = "/",
               .summary = "The console",
               .statuses = {200, 304},
               .immediate = true,
               .answer = [](const api_request& request) {
                 return answer_asset(find_asset(start_page), request);
               }});
    table.add({.method = "GET",
               .path = "/console/{file}",
               .summary = "A file of the console: a module, a style sheet, the icon",
               .statuses = {200, 304, 404},
               .immediate = true,
               .answer = [](const api_request& request) {
                 return answer_asset(find_asset(request.path("file")), request);
               }});
  }
};

}  // namespace

std::unique_ptr<server_part> make_console_part() { return std::make_unique<console_part>(); }

}  // namespace HOLDFAST_NAMESPACE::detail::serve
