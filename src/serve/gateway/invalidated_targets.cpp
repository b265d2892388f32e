#include "serve/gateway/invalidated_targets.hpp"

#include <algorithm>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::serve::gateway {

namespace {

/// The path and query that a reference names, if it is of an origin for which `is_own` returns
/// true; else empty text.
template <class IsOwn>
std::string target_in_origin(std::string_view reference, IsOwn is_own, std::string_view base) {
  reference = reference.substr(0, reference.find('#'));
  const auto special = reference.find_first_of(":/?");
  if (special != std::string_view::npos && reference[special] == ':')
    reference.remove_prefix(special + 1);  // the scheme
  if (reference.starts_with("//")) {
    reference.remove_prefix(2);
    const auto end = std::min(reference.find_first_of("/?"), reference.size());
    if (!is_own(reference.substr(0, end))) return {};
    reference.remove_prefix(end);
    return (reference.starts_with('/') ? "" : "/") + std::string(reference);
  }
  if (reference.starts_with('/')) return std::string(reference);
  // Relative to the request, or to its folder.
  const auto path = base.substr(0, base.find('?'));
  const auto folder = reference.starts_with('?') ? path : path.substr(0, path.rfind('/') + 1);
  return std::string(folder).append(reference);
}

}  // namespace

std::vector<invalidation> invalidated_targets(gateway_runtime& runtime,
                                              const gateway_request& request,
                                              const received_response& response) {
  std::vector<invalidation> targets;
  if (request.unsafe_target.empty() || response.status >= 400) return targets;
  const auto add = [&](std::string_view target) {
    if (auto entry = runtime.invalidation_of(request.unsafe_host, target))
      targets.push_back(*std::move(entry));
  };
  add(request.unsafe_target);
  // Most upstreams know only the name by which the gateway calls them.
  const auto* const route = runtime.find(request.unsafe_host, request.unsafe_target);
  const auto is_own = [&](std::string_view host) {
    return http::equals_ignoring_case(host, request.unsafe_host) ||
           (route != nullptr && std::ranges::any_of(route->targets, [&](const auto& target) {
              return http::equals_ignoring_case(host, target.host);
            }));
  };
  for (const auto name : {"location", "content-location"}) {
    if (const auto value = response.fields.find(name))
      add(target_in_origin(*value, is_own, request.unsafe_target));
  }
  return targets;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve::gateway
