#pragma once

/// \file
/// Sequences beside the least that could number things: one atomic counter, and the seed's lock around a block.

#include "ratio.hpp"

#include <vector>

namespace holdfast::bench {

/// next() and handles, on one thread and on two. Figures are ids a second; the names are stable.
[[nodiscard]] std::vector<row> measure_sequences(const settings& how);

}  // namespace holdfast::bench
