#include "serve/gateway/upstream_group.hpp"

#include <algorithm>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve::gateway {

namespace {

constexpr std::chrono::milliseconds first_pause{1'000};
constexpr std::chrono::milliseconds longest_pause{10'000};
/// Servers send larger heads than clients: cookies, policies, links.
constexpr std::size_t response_head = std::size_t{64} << 10U;

}  // namespace

upstream_group::upstream_group(net::event_loop& loop, const route_runtime& target,
                               const net::tls_context& tls)
    : loop_(loop) {
  for (const auto& place : target.targets) {
    upstream_options options{
        .server = {.address = place.address,
                   .addresses = place.addresses,
                   .tls = place.secure ? &tls : nullptr},
        .host = place.host,
        .limits = {.line = response_head, .field_count = 200, .head = response_head}};
    servers_.push_back({.client = std::make_unique<upstream>(loop, std::move(options))});
  }
}

std::optional<std::size_t> upstream_group::choose(std::uint64_t tried) {
  std::optional<std::size_t> avoided;
  const auto start = next_++;
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    const auto index = (start + i) % servers_.size();
    if (((tried >> index) & 1U) != 0) continue;
    if (servers_[index].avoided_until <= loop_.now()) return index;
    // Of those that are avoided, the one whose time ends first.
    if (!avoided || servers_[index].avoided_until < servers_[*avoided].avoided_until)
      avoided = index;
  }
  return avoided;
}

void upstream_group::report(std::size_t index, bool success) noexcept {
  auto& server = servers_[index];
  if (success) {
    server.pause = {};
    server.avoided_until = {};
    return;
  }
  server.pause = std::clamp(server.pause * 2, first_pause, longest_pause);
  server.avoided_until = loop_.now() + server.pause;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve::gateway
