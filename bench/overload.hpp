#pragma once

/// \file
/// `holdfast_bench overload`: a protected call of an upstream that gets more calls than it can
/// answer.

#include "bench/ratio.hpp"

#include <chrono>
#include <vector>

namespace holdfast::bench {

/// The upstream: `servers` calls at a time, each for `service_time`. Further calls wait in front of
/// it, as in a real one. Its capacity is servers / service_time.
struct overload_options {
  std::size_t servers = 8;
  std::chrono::milliseconds service_time{50};
  std::chrono::milliseconds deadline{250};
  std::chrono::milliseconds duration{5'000};  ///< of each measurement, after a second of warm-up
  std::vector<double> factors{1, 2, 5, 10};   ///< offered calls as a multiple of the capacity
};

struct overload_result {
  double factor = 0;
  double capacity = 0;  ///< calls per second
  double offered = 0;   ///< calls per second
  double live = 0;      ///< live answers per second
  double stale = 0;     ///< stale answers per second
  double refused = 0;   ///< exceptions per second
  double p50 = 0;       ///< of all calls, in milliseconds
  double p99 = 0;
  double longest = 0;
};

[[nodiscard]] std::vector<overload_result> measure_overload(const overload_options& options);

/// Live answers per second compared with the capacity.
[[nodiscard]] std::vector<row> overload_rows(const std::vector<overload_result>& results);
/// A healthy point beside one whose upstream hangs: rate and latency, compared with those of the
/// healthy point alone in the same engine.
[[nodiscard]] std::vector<row> measure_beside_hung(std::chrono::milliseconds duration);
/// A table in Markdown, for docs/failover.md.
[[nodiscard]] std::string overload_table(const std::vector<overload_result>& results);

}  // namespace holdfast::bench
