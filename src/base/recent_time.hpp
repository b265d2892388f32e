#pragma once

/// \file
/// Cheap clocks with a resolution of milliseconds.

#include <holdfast/clock.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <ctime>

namespace HOLDFAST_NAMESPACE::detail {

/// The wall clock at its last tick, which is at most some milliseconds ago. Takes a fifth of the
/// time of system_clock::now().
inline timestamp recent_time() noexcept {
#ifdef CLOCK_REALTIME_COARSE
  std::timespec tick{};
  if (clock_gettime(CLOCK_REALTIME_COARSE, &tick) == 0)
    return timestamp(std::chrono::seconds(tick.tv_sec) +
                     std::chrono::microseconds(tick.tv_nsec / 1000));
#endif
  return std::chrono::floor<std::chrono::microseconds>(std::chrono::system_clock::now());
}

/// The steady clock at its last tick, likewise.
inline std::chrono::steady_clock::time_point recent_steady_time() noexcept {
#ifdef CLOCK_MONOTONIC_COARSE
  std::timespec tick{};
  if (clock_gettime(CLOCK_MONOTONIC_COARSE, &tick) == 0)
    return std::chrono::steady_clock::time_point(std::chrono::seconds(tick.tv_sec) +
                                                 std::chrono::nanoseconds(tick.tv_nsec));
#endif
  return std::chrono::steady_clock::now();
}

}  // namespace HOLDFAST_NAMESPACE::detail
