#pragma once

/// \file
/// The memory store compared with hash maps, one for each of 64 locks.

#include "bench/ratio.hpp"

#include <vector>

namespace holdfast::bench {

/// Finds, puts that replace an entry, puts that evict one, and the speed-up by a second thread.
[[nodiscard]] std::vector<comparison> memory_store_comparisons();

}  // namespace holdfast::bench
