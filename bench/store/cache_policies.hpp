#pragma once

/// \file
/// `holdfast_bench store --policies`: hit ratios of LRU, S3-FIFO and W-TinyLFU, each as simple as
/// its paper, on the same requests. docs/decisions/0016-s3-fifo.md explains the choice.

#include <cstddef>
#include <string>
#include <vector>

namespace holdfast::bench {

/// The fraction of requests that each policy could answer, from 0 to 1.
struct policy_row {
  std::string trace;
  /// Number of entries that fit.
  std::size_t capacity = 0;
  double lru = 0;
  double s3_fifo = 0;
  double w_tinylfu = 0;
};

/// Returns the same numbers on every machine: the random requests have a fixed seed.
[[nodiscard]] std::vector<policy_row> compare_policies();

[[nodiscard]] std::string to_table(const std::vector<policy_row>& rows);
[[nodiscard]] std::string to_json(const std::vector<policy_row>& rows);

}  // namespace holdfast::bench
