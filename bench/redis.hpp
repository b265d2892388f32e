#pragma once

/// \file
/// `holdfast_bench redis`: the Redis client compared with hiredis, on the same server.

#include "bench/ratio.hpp"

#include <string>
#include <vector>

namespace holdfast::bench {

struct redis_bench_options {
  /// redis://, redis+unix:// or redis+cluster://
  std::string url;
  measure_options measuring{.rounds = 101, .round_seconds = 0.01};
};

/// Uses its own keys and removes them. In a Cluster, all keys are on one node, because hiredis
/// connects to one server. Throws holdfast::error.
[[nodiscard]] std::vector<row> measure_redis(const redis_bench_options& options);

}  // namespace holdfast::bench
