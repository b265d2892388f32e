#include "serve/gateway/gateway_loop.hpp"

#include <holdfast/error.hpp>

#include "serve/gateway/gateway_call.hpp"

#include <chrono>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve::gateway {

namespace {

/// A name may get another address while the gateway runs.
constexpr std::chrono::seconds resolve_interval{10};

std::vector<net::socket_address> addresses_of(const std::string& address) {
  try {
    return net::resolve(address, "the upstream");
  } catch (const error&) {
    return {};  // the old ones stay
  }
}

}  // namespace

gateway_loop::gateway_loop(std::shared_ptr<net::event_loop> loop,
                           std::shared_ptr<gateway_runtime> runtime)
    : loop_(std::move(loop)), runtime_(std::move(runtime)), resolve_timer_(*loop_) {
  for (const auto& target : runtime_->routes())
    groups_.push_back(std::make_unique<upstream_group>(*loop_, *target, runtime_->upstream_tls()));
  resolve_timer_.set_callback([this] { resolve(); });
  resolve_later();
}

gateway_loop::~gateway_loop() {
  for (const auto& call : std::exchange(calls_, {})) call->abandon();
}

upstream_group& gateway_loop::servers(const route_runtime& target) noexcept {
  return *groups_[target.index];
}

void gateway_loop::remove(const std::shared_ptr<gateway_call>& call) {
  loop_->retire(call);
  calls_.erase(call);
}

void gateway_loop::resolve_later() { resolve_timer_.set(loop_->now() + resolve_interval); }

/// Resolving may wait, so workers do it. This object lives until the loop has run all tasks.
void gateway_loop::resolve() {
  for (const auto& target : runtime_->routes()) {
    for (std::size_t i = 0; i < target->targets.size(); ++i) {
      auto* const group = groups_[target->index].get();
      (void)runtime_->post([loop = loop_, group, i, address = target->targets[i].address] {
        auto addresses = addresses_of(address);
        if (addresses.empty()) return;
        (void)loop->post([group, i, addresses = std::move(addresses)]() mutable {
          group->server(i).set_addresses(std::move(addresses));
        });
      });
    }
  }
  resolve_later();
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve::gateway
