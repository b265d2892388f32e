#pragma once

/// \file
/// Write-behind, measured: what it sustains beside the raw client library, and what a put costs its caller.

#include "ratio.hpp"
#include "store_bench.hpp"

#include <vector>

namespace holdfast::bench {

/// `store.behind_sustained`: batches of 100 put into a write-behind store over the database, and flushed, beside the raw client library
/// writing the same batches. `store.behind_put`: one put, beside the copy of its entry into a hash map. The names are stable.
/// Works in tables of its own that are gone afterwards. Throws what opening the store throws.
[[nodiscard]] std::vector<row> measure_write_behind(const store_bench& what);

}  // namespace holdfast::bench
