#pragma once

/// \file
/// What `holdfast bench failover` measures.

#include "ratio.hpp"

#include <vector>

namespace holdfast::bench {

/// A protected call beside the least that could do the same: the key, the codec, and one hash map behind locks. The names are stable.
[[nodiscard]] std::vector<contest> failover_contests();

}  // namespace holdfast::bench
