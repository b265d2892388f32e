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

loop_routes::loop_routes(net::event_loop& loop, std::shared_ptr<gateway_runtime> runtime)
    : runtime_(std::move(runtime)) {
  for (const auto& target : runtime_->routes())
    groups_.push_back(std::make_unique<upstream_group>(loop, *target, runtime_->upstream_tls()));
}

gateway_loop::gateway_loop(std::shared_ptr<net::event_loop> loop,
                           std::shared_ptr<gateway_runtime> runtime)
    : loop_(std::move(loop)),
      routes_(std::make_shared<loop_routes>(*loop_, std::move(runtime))),
      resolve_timer_(*loop_) {
  resolve_timer_.set_callback([this] { resolve(); });
  resolve_later();
}

void gateway_loop::set_routes(std::shared_ptr<gateway_runtime> runtime) {
  routes_ = std::make_shared<loop_routes>(*loop_, std::move(runtime));
}

gateway_loop::~gateway_loop() {
  for (const auto& call : std::exchange(calls_, {})) call->abandon();
}

void gateway_loop::remove(const std::shared_ptr<gateway_call>& call) {
  loop_->retire(call);
  calls_.erase(call);
}

void gateway_loop::resolve_later() { resolve_timer_.set(loop_->now() + resolve_interval); }

/// Resolving may wait, so workers do it.
void gateway_loop::resolve() {
  auto& runtime = *routes_->runtime();
  for (const auto& target : runtime.routes()) {
    for (std::size_t i = 0; i < target->targets.size(); ++i) {
      (void)runtime.post([loop = loop_, weak = std::weak_ptr(routes_), target = target.get(), i,
                          address = target->targets[i].address] {
        auto addresses = addresses_of(address);
        if (addresses.empty()) return;
        (void)loop->post([weak, target, i, addresses = std::move(addresses)]() mutable {
          // The last owner may be this thread only: routes belong to their loop.
          if (const auto routes = weak.lock())
            routes->servers(*target).server(i).set_addresses(std::move(addresses));
        });
      });
    }
  }
  resolve_later();
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve::gateway
