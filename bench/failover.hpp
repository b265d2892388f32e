#pragma once

/// \file
/// `holdfast_bench failover`: protected calls compared with the least that could do the same: a
/// key, a codec, and a hash map with a lock.

#include "bench/ratio.hpp"

#include <vector>

namespace holdfast::bench {

[[nodiscard]] std::vector<comparison> failover_comparisons();

}  // namespace holdfast::bench
