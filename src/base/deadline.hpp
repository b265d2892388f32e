#pragma once

/// \file
/// Arithmetic of steady time points that does not overflow.

#include <holdfast/version.hpp>

#include <chrono>

namespace HOLDFAST_NAMESPACE::detail {

/// `start` + `delay`, at most time_point::max(). A negative delay counts as zero.
[[nodiscard]] constexpr std::chrono::steady_clock::time_point moment_after(
    std::chrono::steady_clock::time_point start,
    std::chrono::steady_clock::duration delay) noexcept {
  using moment = std::chrono::steady_clock::time_point;
  if (delay <= moment::duration::zero()) return start;
  return start > moment::max() - delay ? moment::max() : start + delay;
}

/// `deadline` - `now`: zero if the deadline has passed, at most duration::max().
[[nodiscard]] constexpr std::chrono::steady_clock::duration time_until(
    std::chrono::steady_clock::time_point deadline,
    std::chrono::steady_clock::time_point now) noexcept {
  using duration = std::chrono::steady_clock::duration;
  if (deadline <= now) return duration::zero();
  const auto until = deadline.time_since_epoch();
  const auto since = now.time_since_epoch();
  return since < duration::zero() && until > duration::max() + since ? duration::max()
                                                                     : until - since;
}

}  // namespace HOLDFAST_NAMESPACE::detail
