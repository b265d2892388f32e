#pragma once

/// \file
/// Which entries should a bounded memory keep? LRU, S3-FIFO and W-TinyLFU, each as simple as its paper, on the same requests.
/// `holdfast bench store --policies` prints it; docs/decisions/0016 says what was chosen, and why.

#include <cstddef>
#include <string>
#include <vector>

namespace holdfast::bench {

/// How many of the requests each policy could answer, from 0 to 1.
struct policy_row {
  std::string trace;
  std::size_t capacity = 0;  ///< entries that fit
  double lru = 0;
  double s3_fifo = 0;
  double w_tinylfu = 0;
};

/// The same numbers on every machine: the requests come from a fixed seed.
[[nodiscard]] std::vector<policy_row> compare_policies();

/// For people, and for programs.
[[nodiscard]] std::string to_table(const std::vector<policy_row>& rows);
[[nodiscard]] std::string to_json(const std::vector<policy_row>& rows);

}  // namespace holdfast::bench
