#pragma once

// Arithmetic of steady moments that does not overflow: deadlines from delays, and delays from deadlines.

#include <holdfast/version.hpp>

#include <chrono>

namespace HOLDFAST_NAMESPACE {

/// Longer times are waits without an end. Bounded by this, a time can be counted in nanoseconds and added to a moment without overflow.
constexpr std::chrono::hours longest_wait{24 * 366};

/// The moment `delay` after `start`, or the last moment there is if that is later. A negative delay counts as zero.
[[nodiscard]] constexpr std::chrono::steady_clock::time_point moment_after(std::chrono::steady_clock::time_point start,
                                                                           std::chrono::steady_clock::duration delay) noexcept {
  using moment = std::chrono::steady_clock::time_point;
  if (delay <= moment::duration::zero()) return start;
  return start > moment::max() - delay ? moment::max() : start + delay;
}

/// How long it is from `now` until `deadline`: zero if that has passed, the longest duration if the difference is longer than that.
[[nodiscard]] constexpr std::chrono::steady_clock::duration time_until(std::chrono::steady_clock::time_point deadline,
                                                                       std::chrono::steady_clock::time_point now) noexcept {
  using duration = std::chrono::steady_clock::duration;
  if (deadline <= now) return duration::zero();
  const auto until = deadline.time_since_epoch();
  const auto since = now.time_since_epoch();
  return since < duration::zero() && until > duration::max() + since ? duration::max() : until - since;
}

}  // namespace HOLDFAST_NAMESPACE
