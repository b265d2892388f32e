#include "serve/gateway/forwarding.hpp"

#include "serve/gateway/route_key.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve::gateway {

namespace {

/// Fields that end at each hop, whether Connection names them or not.
constexpr std::array<std::string_view, 7> hop_fields = {
    "connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "content-length"};

/// Beside them: fields that the gateway sets or answers.
constexpr std::array<std::string_view, 5> replaced_fields = {"host", "expect", "via", "forwarded",
                                                             "accept-encoding"};

/// Fields with which a client could ask an upstream for another host, path or method than the key
/// has, and so choose the answer that others get. Names, and beginnings of names.
constexpr std::array<std::string_view, 11> target_fields = {"base-url",
                                                            "proxy",
                                                            "x-backend-host",
                                                            "x-host",
                                                            "x-host-override",
                                                            "x-method-override",
                                                            "x-override-url",
                                                            "x-proxy-host",
                                                            "x-url-scheme",
                                                            "x-server-name",
                                                            "x-http-path-override"};
constexpr std::array<std::string_view, 5> target_field_starts = {
    "x-forwarded", "x-http-host", "x-http-method", "x-original-", "x-rewrite-"};

constexpr std::array<std::string_view, 6> keeping_fields = {"age",    "cache-control", "expires",
                                                            "pragma", "set-cookie",    "vary"};

template <std::size_t Size>
bool is_one_of(std::string_view name, const std::array<std::string_view, Size>& names) noexcept {
  return std::ranges::any_of(
      names, [&](std::string_view entry) { return http::equals_ignoring_case(entry, name); });
}

bool starts_with(std::string_view name, std::string_view start) noexcept {
  return http::equals_ignoring_case(name.substr(0, start.size()), start);
}

/// A field of `vary` is safe: each of its values has answers of its own.
bool is_in_key(const route& rules, std::string_view name) {
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(), http::to_lower);
  return rules.varies_by(lower);
}

bool is_proxy_field(std::string_view name) noexcept { return starts_with(name, "proxy-"); }

/// An underscore is taken for a hyphen by CGI, WSGI and their like: `X_Forwarded_Host` would reach
/// the program as the field that was dropped.
bool is_target_field(std::string_view name) noexcept {
  return name.find('_') != std::string_view::npos || is_one_of(name, target_fields) ||
         std::ranges::any_of(target_field_starts,
                             [&](std::string_view start) { return starts_with(name, start); });
}

/// The names that Connection has.
class connection_names {
 public:
  explicit connection_names(const http::fields& message) {
    message.for_each("connection", [&](std::string_view value) {
      http::for_each_element(value, [&](std::string_view name) { names_.push_back(name); });
    });
  }
  [[nodiscard]] bool has(std::string_view name) const noexcept {
    return std::ranges::any_of(
        names_, [&](std::string_view entry) { return http::equals_ignoring_case(entry, name); });
  }

 private:
  std::vector<std::string_view> names_{};
};

bool ends_here(std::string_view name, const connection_names& named) noexcept {
  return is_one_of(name, hop_fields) || is_proxy_field(name) || named.has(name);
}

/// RFC 7239: an address of IPv6 is quoted.
std::string forwarded_for(std::string_view address) {
  if (address == "unix" || address.empty()) return "unknown";
  if (address.find(':') == std::string_view::npos) return std::string(address);
  return "\"[" + std::string(address) + "]\"";
}

std::string list_with(const std::optional<std::string>& before, std::string_view element) {
  return before && !before->empty() ? *before + ", " + std::string(element) : std::string(element);
}

}  // namespace

http::field_block forwarded_request(const route& rules, std::string_view method,
                                    const http::fields& request, const client_facts& client) {
  http::field_block block;
  const connection_names named(request);
  const bool is_read = method == "GET" || method == "HEAD";
  for (std::size_t i = 0; i < request.size(); ++i) {
    const auto field = request[i];
    if (ends_here(field.name, named) || is_one_of(field.name, replaced_fields) ||
        (is_target_field(field.name) && !is_in_key(rules, field.name)))
      continue;
    if (is_read && (http::equals_ignoring_case(field.name, "if-none-match") ||
                    http::equals_ignoring_case(field.name, "if-modified-since")))
      continue;
    block.add(field.name, field.value);
  }
  if (accepts_gzip(request)) block.add("Accept-Encoding", "gzip");
  block.add("Via", list_with(request.join("via"), "1.1 holdfast"));
  const auto previous = [&](std::string_view name) {
    return client.trusted ? request.join(name) : std::nullopt;
  };
  const auto scheme = std::string_view(client.secure ? "https" : "http");
  auto element = "for=" + forwarded_for(client.address) + ";proto=" + std::string(scheme);
  if (rules.forward_host && !client.host.empty())
    element += ";host=\"" + std::string(client.host) + '"';
  block.add("Forwarded", list_with(previous("forwarded"), element));
  block.add("X-Forwarded-For", list_with(previous("x-forwarded-for"), client.address));
  block.add("X-Forwarded-Proto", previous("x-forwarded-proto").value_or(std::string(scheme)));
  if (rules.forward_host && !client.host.empty()) block.add("X-Forwarded-Host", client.host);
  return block;
}

response_fields passed_response(const http::fields& response) {
  response_fields passed;
  const connection_names named(response);
  for (std::size_t i = 0; i < response.size(); ++i) {
    const auto field = response[i];
    // What decides about keeping is not for one hop, whatever Connection says.
    if (is_one_of(field.name, keeping_fields) || !ends_here(field.name, named))
      passed.add(field.name, field.value);
  }
  return passed;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve::gateway
