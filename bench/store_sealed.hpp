#pragma once

/// \file
/// What sealing adds to a store, beside the encryption itself.

#include "ratio.hpp"

#include <vector>

namespace holdfast::bench {

/// Payloads of 1, 10 and 100 KB, put into a sealed store and found in it. Ours is what sealing adds to the store below, which does nothing but
/// keep one entry; the floor is raw AES-256-GCM of the same bytes, with its key scheduled once. The names are stable.
[[nodiscard]] std::vector<row> measure_sealed(const settings& how = {.rounds = 301, .round_seconds = 0.0005});

}  // namespace holdfast::bench
