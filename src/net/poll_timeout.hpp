#pragma once

#include <holdfast/version.hpp>

#include <algorithm>
#include <chrono>

namespace HOLDFAST_NAMESPACE::detail::net {

using steady = std::chrono::steady_clock;

/// Returns the timeout for `poll` that ends at the deadline, in milliseconds. It is rounded up, so
/// that a caller that polls again until the deadline does not spin, and at most an hour.
[[nodiscard]] inline int poll_timeout(steady::time_point deadline) noexcept {
  const auto remaining =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - steady::now()).count();
  return static_cast<int>(std::clamp<decltype(remaining)>(remaining, 0, 3'600'000));
}

}  // namespace HOLDFAST_NAMESPACE::detail::net
