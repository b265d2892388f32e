#include "serve/auth/request_origin.hpp"

#include "http/syntax.hpp"

#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

constexpr std::string_view foreign_page =
    "the request comes from a page of another site; use the console, or a token in the header "
    "Authorization";

bool is_own_origin(std::string_view origin, std::string_view host, bool https) noexcept {
  constexpr std::string_view encrypted = "https://";
  constexpr std::string_view plain = "http://";
  const auto matches = [&](std::string_view scheme) {
    return !host.empty() && origin.size() == scheme.size() + host.size() &&
           http::equals_ignoring_case(origin.substr(0, scheme.size()), scheme) &&
           http::equals_ignoring_case(origin.substr(scheme.size()), host);
  };
  return matches(encrypted) || (!https && matches(plain));
}

bool is_json_type(std::string_view type) noexcept {
  auto media = type.substr(0, type.find(';'));
  while (media.ends_with(' ') || media.ends_with('\t')) media.remove_suffix(1);
  return http::equals_ignoring_case(media, "application/json");
}

}  // namespace

request_origin origin_of(const server_request& request, bool https) {
  if (request.fields.count("Sec-Fetch-Site") > 1 || request.fields.count("Origin") > 1)
    return request_origin::foreign;
  if (const auto site = request.fields.find("Sec-Fetch-Site")) {
    if (*site == "same-origin") return request_origin::own;
    const auto mode = request.fields.find("Sec-Fetch-Mode");
    const bool navigates = mode && *mode == "navigate";
    return *site == "none" || navigates ? request_origin::navigation : request_origin::foreign;
  }
  if (const auto origin = request.fields.find("Origin"))
    return is_own_origin(*origin, request.host, https) ? request_origin::own
                                                       : request_origin::foreign;
  return request_origin::unknown;
}

bool is_safe_method(std::string_view method) noexcept {
  return method == "GET" || method == "HEAD" || method == "OPTIONS";
}

std::string_view cross_site_problem(const server_request& request, bool https) {
  const auto origin = origin_of(request, https);
  if (origin == request_origin::foreign) return foreign_page;
  if (is_safe_method(request.method) || origin == request_origin::own) {
    if (is_safe_method(request.method)) return {};
    // A DELETE without content has no type. Another site cannot send it without asking first.
    if (request.method == "DELETE" && request.body.empty()) return {};
    const auto type = request.fields.find("Content-Type");
    if (type && is_json_type(*type)) return {};
    return "a request with a cookie needs Content-Type: application/json";
  }
  if (origin == request_origin::navigation) return foreign_page;
  return "a request with a cookie needs Sec-Fetch-Site: same-origin, or the Origin of this server; "
         "programs use a token in the header Authorization";
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
