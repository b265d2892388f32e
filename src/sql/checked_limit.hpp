#pragma once

#include <holdfast/error.hpp>
#include <holdfast/version.hpp>

#include <algorithm>
#include <chrono>

namespace HOLDFAST_NAMESPACE::sql {

/// A time limit, cut to the longest one that the driver can express. Throws errc::invalid_argument unless it is positive.
[[nodiscard]] inline std::chrono::milliseconds checked_limit(std::chrono::milliseconds limit,
                                                             std::chrono::milliseconds longest = std::chrono::milliseconds::max()) {
  if (limit <= std::chrono::milliseconds::zero()) throw error(errc::invalid_argument, "a time limit must be longer than zero");
  return std::min(limit, longest);
}

}  // namespace HOLDFAST_NAMESPACE::sql
