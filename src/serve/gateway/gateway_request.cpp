#include "serve/gateway/gateway_request.hpp"

#include "serve/gateway/forwarding.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve::gateway {

namespace {

bool is_safe(std::string_view method) noexcept {
  return method == "GET" || method == "HEAD" || method == "OPTIONS";
}

/// A part of the deadline is for the recovery.
std::chrono::microseconds upstream_time(std::chrono::microseconds deadline) {
  constexpr std::chrono::microseconds longest_reserve = std::chrono::milliseconds(50);
  return deadline - std::min(longest_reserve, deadline / 4);
}

}  // namespace

gateway_request::gateway_request(const route_runtime& target, const gateway_runtime& runtime,
                                 const server_request& source)
    : method(source.method),
      target_text(gateway::target_text(target.rules, source_of(source.target, source.host))),
      host(target.rules.forward_host ? source.host : std::string_view{}),
      address(source.peer),
      body(std::move(source.body)),
      is_read(method == "GET" || method == "HEAD"),
      // The content of a request is not part of the key.
      is_protected(is_read && target.options.enabled && body.empty()),
      forwarded(forwarded_request(target.rules, source.method, source.fields,
                                  {.address = source.peer,
                                   .host = source.host,
                                   .secure = source.secure,
                                   .trusted = runtime.is_trusted(source.peer)})),
      conditions(source.fields),
      facts(request_facts::of(source.method, source.fields)) {
  const auto key = source_of(source.target, source.host);
  if (is_protected) {
    key_text = runtime.keys().of_request(target.rules, key, source.fields);
    if (!target.rules.vary.empty())
      invalidation_key = route_keys::invalidation_key(target.rules, key);
  } else if (!is_safe(method)) {
    unsafe_host = source.host;
    unsafe_target = source.target.text();
  }
}

bool gateway_request::is_idempotent() const noexcept {
  return is_read || method == "PUT" || method == "DELETE";
}

std::chrono::microseconds gateway_request::time_limit(const route_runtime& target) const noexcept {
  return is_read ? upstream_time(target.deadline)
                 : std::chrono::microseconds(target.rules.other_deadline);
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve::gateway
