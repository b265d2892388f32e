#pragma once

/// \file
/// What `holdfast bench keys` measures.

#include "ratio.hpp"

#include <vector>

namespace holdfast::bench {

/// Each key beside the raw hash of the very same bytes. The names are stable.
[[nodiscard]] std::vector<contest> key_contests();

}  // namespace holdfast::bench
