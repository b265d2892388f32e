#pragma once

/// \file
/// Write-behind: its sustained rate, and the cost of a put for its caller.

#include "bench/ratio.hpp"
#include "bench/store/store.hpp"

#include <vector>

namespace holdfast::bench {

/// - `store.behind_sustained`: batches of 100 put into a write-behind store and flushed, compared
///   with the client library writing the same batches.
/// - `store.behind_put`: one put, compared with a copy of its entry into a hash map.
///
/// Uses its own tables and drops them. Throws holdfast::error.
[[nodiscard]] std::vector<row> measure_write_behind(const store_bench_options& options);

}  // namespace holdfast::bench
