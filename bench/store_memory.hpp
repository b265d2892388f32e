#pragma once

/// \file
/// The memory store beside the least that could do the same: a hash map for each of as many locks.

#include "ratio.hpp"

#include <vector>

namespace holdfast::bench {

/// Finds, puts that replace, puts that make others leave, and what a second thread adds. The names are stable.
[[nodiscard]] std::vector<contest> memory_store_contests();

}  // namespace holdfast::bench
