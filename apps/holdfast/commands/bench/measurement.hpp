#pragma once

/// \file
/// Runs an operation on several threads for some time, and computes its rate and its latencies.

#include "terminal/stop_signals.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace holdfast::cli {

/// Counts durations in buckets. A quantile is exact to 2 %.
/// Thread-safety: none.
class latency_histogram {
 public:
  void add(std::chrono::nanoseconds duration);
  void add(const latency_histogram& other);
  /// `part` is from 0 to 1; 0.99 returns the 99th percentile. Returns 0 if nothing was added.
  [[nodiscard]] std::chrono::nanoseconds quantile(double part) const;

 private:
  // 64 buckets for each power of two.
  std::array<std::uint64_t, std::size_t{64} * 64> buckets_{};
  std::uint64_t count_ = 0;
};

/// One line of the result.
struct bench_row {
  std::string name;
  /// What `rate` counts: `puts/s`.
  std::string unit;
  std::uint64_t count = 0;
  double rate = 0;
  latency_histogram latencies{};
};

struct bench_settings {
  std::chrono::seconds duration{3};
  std::size_t threads = 1;
  std::size_t payload_bytes = 1024;
};

/// Ends a measurement when SIGINT or SIGTERM comes. Must be created before any thread.
class interruption {
 public:
  /// Waits until `deadline` or until `finished` is true. Throws errc::unavailable if a signal came.
  void wait(std::chrono::steady_clock::time_point deadline,
            const std::atomic<bool>& finished) const;

 private:
  stop_signals signals_{};
};

/// How to measure one row.
struct bench_workload {
  std::string name;
  std::string unit;
  /// Called with the number of the thread, from 0. Returns what was done, as `unit` counts it; 0
  /// ends the thread early.
  std::function<std::uint64_t(std::size_t thread)> operation{};
  /// Many operations at once, between two whose latency is measured. For operations that take less
  /// time than reading the clock. Returns their number.
  std::function<std::uint64_t(std::size_t thread)> unmeasured{};
};

/// Calls the operation on all threads until the time is over. Rethrows its first exception. Throws
/// errc::unavailable if a signal came.
[[nodiscard]] bench_row measure(const bench_workload& workload, const bench_settings& settings,
                                const interruption& signals);

}  // namespace holdfast::cli
