#pragma once

/// \file
/// What sealing adds to a store, compared with raw AES-256-GCM of the same bytes.

#include "bench/ratio.hpp"

#include <vector>

namespace holdfast::bench {

/// Puts and finds payloads of 1, 10 and 100 KB. `ours` is the time of the sealed store minus the
/// time of the store below, which only copies one entry. The floor reuses one cipher context.
[[nodiscard]] std::vector<row> measure_sealed(const measure_options& options);

}  // namespace holdfast::bench
