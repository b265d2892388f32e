#pragma once

#include <holdfast/version.hpp>

#include "net/event_loop.hpp"
#include "serve/gateway/route_runtime.hpp"
#include "serve/gateway/upstream_group.hpp"
#include "serve/http_server.hpp"

#include <memory>
#include <unordered_set>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve::gateway {

class gateway_call;

/// What a loop of the gateway owns: connections to upstreams, and the requests under way.
/// Thread-safety: used on the thread of its loop only.
/// The routes of one configuration on one loop. Lives as long as the last request that uses them.
/// Thread-safety: used on the thread of its loop only.
class loop_routes {
 public:
  loop_routes(net::event_loop& loop, std::shared_ptr<gateway_runtime> runtime);
  [[nodiscard]] const std::shared_ptr<gateway_runtime>& runtime() const noexcept {
    return runtime_;
  }
  [[nodiscard]] upstream_group& servers(const route_runtime& target) noexcept {
    return *groups_[target.index];
  }

 private:
  std::shared_ptr<gateway_runtime> runtime_;
  std::vector<std::unique_ptr<upstream_group>> groups_{};
};

class gateway_loop final : public loop_context {
 public:
  gateway_loop(std::shared_ptr<net::event_loop> loop, std::shared_ptr<gateway_runtime> runtime);
  /// Gives up the requests under way.
  ~gateway_loop() override;

  [[nodiscard]] net::event_loop& loop() noexcept { return *loop_; }
  [[nodiscard]] const std::shared_ptr<net::event_loop>& shared_loop() const noexcept {
    return loop_;
  }
  /// For requests that begin now.
  [[nodiscard]] const std::shared_ptr<loop_routes>& routes() const noexcept { return routes_; }
  void set_routes(std::shared_ptr<gateway_runtime> runtime);
  void add(const std::shared_ptr<gateway_call>& call) { calls_.insert(call); }
  /// The call is destroyed at the end of the turn.
  void remove(const std::shared_ptr<gateway_call>& call);

 private:
  void resolve_later();
  void resolve();

  std::shared_ptr<net::event_loop> loop_;
  std::shared_ptr<loop_routes> routes_;
  std::unordered_set<std::shared_ptr<gateway_call>> calls_{};
  net::timer resolve_timer_;
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve::gateway
