#pragma once

/// \file
/// `holdfast_bench store`: the store on a database compared with the client library of that
/// database.

#include "bench/ratio.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace holdfast::bench {

struct store_bench_options {
  std::string url;
  /// Measure also with a million rows. Takes minutes and gigabytes.
  bool large = false;
  measure_options measuring{.rounds = 101, .round_seconds = 0.01};
  /// Called while the large table is filled.
  std::function<void(std::uint64_t done, std::uint64_t total)> progress{};
};

/// Uses its own tables and drops them. Throws holdfast::error; errc::invalid_argument if there is
/// no client library for the URL.
[[nodiscard]] std::vector<row> measure_store(const store_bench_options& options);

}  // namespace holdfast::bench
