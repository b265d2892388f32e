#pragma once

/// \file
/// `holdfast_bench outbox`: the outbox on Redis compared with its scripts, sent by hiredis.

#include "bench/ratio.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace holdfast::bench {

struct outbox_bench_options {
  /// redis:// or redis+unix://; measure_sql_outbox: an SQL database
  std::string url;
  /// Of each row.
  std::size_t rounds = 9;
  /// In each round; a multiple of 100.
  std::size_t events = 10'000;
  /// Measure also with a million waiting events.
  bool large = false;
  /// Called while the million events are published.
  std::function<void(std::uint64_t done, std::uint64_t total)> progress{};
};

/// Uses its own prefix and removes its keys. Throws holdfast::error.
[[nodiscard]] std::vector<row> measure_outbox(const outbox_bench_options& options);

}  // namespace holdfast::bench
