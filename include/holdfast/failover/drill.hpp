#pragma once

/// \file
/// Drills: rehearsals of an outage on a part of the calls of a point.

#include <holdfast/clock.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE {

struct drill_options {
  /// Part of the calls, more than 0, at most 1.
  double part = 0.01;
  /// At most 15 minutes.
  std::chrono::microseconds length = std::chrono::minutes(5);
  /// True: no answer changes. The engine only checks, in the background, what would be served.
  bool what_if = false;
};

enum class drill_end : std::uint8_t {
  running,  ///< it has not ended
  time,     ///< its length has passed
  request,  ///< engine::end_drill
  store     ///< the store did not answer in time: a drill must not slow calls down
};
[[nodiscard]] HOLDFAST_API std::string_view to_string(drill_end reason) noexcept;

/// Of a number of durations. The median and the 95th percentile come from a sample of them.
struct duration_summary {
  std::uint64_t count = 0;
  std::chrono::microseconds median{};
  std::chrono::microseconds p95{};
  std::chrono::microseconds longest{};
};

/// A drill that runs, or the last one of a point.
struct drill_report {
  std::string point{};
  drill_options options{};
  timestamp started{};
  timestamp ends{};  ///< when it ends, or has ended
  drill_end end = drill_end::running;
  /// Calls of the point since the drill started, and those that the drill selected.
  std::uint64_t calls = 0;
  std::uint64_t selected = 0;
  /// Selected calls that a kept answer served, or could have served with `what_if`.
  std::uint64_t served = 0;
  /// Selected calls without a kept answer: the upstream was asked after all.
  std::uint64_t not_covered = 0;
  duration_summary ages{};     ///< age of the kept answers
  duration_summary latency{};  ///< time that it took to find and serve them
};

}  // namespace HOLDFAST_NAMESPACE
