#pragma once

/// \file
/// `holdfast_bench sequence`: ids compared with one atomic counter, and with the generator of the
/// published design, which takes a lock for every id.

#include "bench/ratio.hpp"

#include <vector>

namespace holdfast::bench {

/// Measures next() and handles, on one thread and on two, in ids per second; and the slowest calls
/// at a million ids per second.
[[nodiscard]] std::vector<row> measure_sequences(const measure_options& options);

}  // namespace holdfast::bench
