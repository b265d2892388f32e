#pragma once

#include <holdfast/version.hpp>

#include <algorithm>
#include <chrono>

namespace HOLDFAST_NAMESPACE::sql {

/// A time that can be added to a moment, and compared with what is counted in nanoseconds: milliseconds::max() would become the past. A year
/// is longer than anybody means.
[[nodiscard]] constexpr std::chrono::milliseconds within_reach(std::chrono::milliseconds limit) noexcept {
  return std::min(limit, std::chrono::milliseconds(std::chrono::hours(24 * 366)));
}

}  // namespace HOLDFAST_NAMESPACE::sql
