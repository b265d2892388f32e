#pragma once

/// \file
/// `holdfast_bench sequence --store`: blocks of a counter while a transaction has locked another
/// one of the same table.

#include "bench/ratio.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace holdfast::bench {

struct locked_sequence_options {
  /// postgresql://... or mysql://...; HOLDFAST_PASSWORD has the password if the URL has none.
  std::string url;
  std::size_t rounds = 5;
  /// How long each side draws in a round. PostgreSQL keeps old versions of rows while the
  /// transaction is open, so a longer round finds more of them.
  double round_seconds = 2;
};

/// Uses a table of its own and removes it. Throws holdfast::error.
[[nodiscard]] std::vector<row> measure_locked_sequence(const locked_sequence_options& options);

}  // namespace holdfast::bench
