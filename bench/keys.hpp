#pragma once

/// \file
/// `holdfast_bench keys`: keys compared with the raw hash of the same bytes.

#include "bench/ratio.hpp"

#include <vector>

namespace holdfast::bench {

[[nodiscard]] std::vector<comparison> key_comparisons();

}  // namespace holdfast::bench
