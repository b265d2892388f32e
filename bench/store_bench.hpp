#pragma once

/// \file
/// What `holdfast bench store` measures.

#include "ratio.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace holdfast::bench {

struct store_bench {
  std::string url;
  bool large = false;  ///< also with a million rows: takes minutes and gigabytes
  settings how{.rounds = 101, .round_seconds = 0.01};
  /// Told now and then how far the filling of the large table is.
  std::function<void(std::uint64_t rows, std::uint64_t of)> progress{};
};

/// The store beside the raw client library of its database, in tables of its own that are gone afterwards. The names are stable.
/// Throws what opening the store throws; errc::invalid_argument for a store that has no client library.
[[nodiscard]] std::vector<row> measure_store(const store_bench& what);

}  // namespace holdfast::bench
