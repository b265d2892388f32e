#include "serve/gateway/route.hpp"

#include "http/syntax.hpp"

#include <algorithm>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve::gateway {

namespace {

bool is_below(std::string_view path, std::string_view prefix) noexcept {
  if (!path.starts_with(prefix))
    return prefix.ends_with('/') && path == prefix.substr(0, prefix.size() - 1);
  return prefix.ends_with('/') || path.size() == prefix.size() || path[prefix.size()] == '/';
}

/// Without its port.
std::string_view name_of_host(std::string_view host) noexcept {
  const auto bracket = host.rfind(']');
  const auto colon = host.rfind(':');
  if (colon == std::string_view::npos || (bracket != std::string_view::npos && colon < bracket))
    return host;
  return host.substr(0, colon);
}

}  // namespace

std::string host_without_port(std::string_view host) {
  std::string name(name_of_host(host));
  std::ranges::transform(name, name.begin(), http::to_lower);
  return name;
}

bool route::varies_by(std::string_view field) const noexcept {
  return std::ranges::find(vary, field) != vary.end();
}

route_table::route_table(std::vector<route> routes) : routes_(std::move(routes)) {
  // The first that matches is the best one.
  std::ranges::sort(routes_, [](const route& a, const route& b) {
    if (a.path.size() != b.path.size()) return a.path.size() > b.path.size();
    if (a.host.empty() != b.host.empty()) return b.host.empty();
    return a.name < b.name;
  });
}

const route* route_table::find(std::string_view host, std::string_view path) const noexcept {
  const auto name = name_of_host(host);
  const auto it = std::ranges::find_if(routes_, [&](const route& candidate) {
    return (candidate.host.empty() || http::equals_ignoring_case(candidate.host, name)) &&
           is_below(path, candidate.path);
  });
  return it == routes_.end() ? nullptr : &*it;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve::gateway
