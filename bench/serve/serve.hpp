#pragma once

/// \file
/// `holdfast_bench serve`: the server compared with Debian's nginx, or with the library that it
/// calls, in the same run. Its measure is the processor time of the server for each request: on a
/// machine that others use it is the only one that repeats.

#include "bench/ratio.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace holdfast::bench {

struct serve_bench_options {
  /// The program `holdfast`.
  std::string program;
  std::size_t rounds = 15;
  /// Length of the load in each round.
  unsigned seconds = 1;
  /// Measure the rows of wall-clock time, too: they need a machine that does nothing else.
  bool alone = false;
  /// Only these rows; empty: all.
  std::vector<std::string> rows{};
};

/// The names of the rows, with those of `alone`.
[[nodiscard]] std::vector<std::string> serve_row_names();

/// Throws errc::unavailable if a program is missing or fails, errc::invalid_argument for a row that
/// does not exist.
[[nodiscard]] std::vector<row> measure_serve(const serve_bench_options& options);

}  // namespace holdfast::bench
