#pragma once

/// \file
/// The Redis client beside hiredis, on the same server, in the same run.

#include "ratio.hpp"

#include <string>
#include <vector>

namespace holdfast::bench {

struct redis_bench {
  std::string url;  ///< redis://, redis+unix:// or redis+cluster://
  settings how{.rounds = 101, .round_seconds = 0.01};
};

/// Works with keys of its own, and removes them. Of a Cluster one node is measured: hiredis knows no more. Throws holdfast::error.
[[nodiscard]] std::vector<row> measure_redis(const redis_bench& what);

}  // namespace holdfast::bench
