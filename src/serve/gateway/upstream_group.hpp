#pragma once

/// \file
/// The servers of a route, with the connections of one loop to them. Connections are not shared
/// between routes.

#include <holdfast/version.hpp>

#include "net/event_loop.hpp"
#include "serve/gateway/route_runtime.hpp"
#include "serve/upstream.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve::gateway {

/// Thread-safety: used on the thread of its loop only.
class upstream_group {
 public:
  upstream_group(net::event_loop& loop, const route_runtime& target, const net::tls_context& tls);

  /// The next server that was not tried, in turn; those that failed lately come last. Bit `i` of
  /// `tried` stands for server `i`. Nothing if all were tried.
  [[nodiscard]] std::optional<std::size_t> choose(std::uint64_t tried);
  [[nodiscard]] upstream& server(std::size_t index) noexcept { return *servers_[index].client; }
  /// A server that fails is avoided for a second, and for longer the more often it fails.
  void report(std::size_t index, bool success) noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return servers_.size(); }

 private:
  struct member {
    std::unique_ptr<upstream> client{};
    net::steady::time_point avoided_until{};
    std::chrono::milliseconds pause{};
  };
  net::event_loop& loop_;
  std::vector<member> servers_{};
  std::size_t next_ = 0;
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve::gateway
