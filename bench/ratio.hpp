#pragma once

/// \file
/// Compares our code with a floor: the raw library, doing the least that could do the same work.
///
/// An absolute figure says more about the machine than about the code. A ratio of two figures from
/// the same run says what our code adds. Both sides run alternately, in short rounds, and their
/// medians are compared, so that a disturbance affects both sides and few rounds.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::bench {

/// Prevents the compiler from removing the computation of a result that is not used.
template <class T>
inline void do_not_optimize(const T& result) noexcept {
  asm volatile("" : : "r"(&result) : "memory");
}

/// Does the measured work `iterations` times.
using workload = std::function<void(std::uint64_t iterations)>;

/// Which ratios are good.
enum class bound : std::uint8_t {
  at_most,  ///< ratio <= bar: for times
  at_least  ///< ratio >= bar: for rates
};

struct comparison {
  /// Stable: other programs read it.
  std::string name;
  double bar = 1;
  bound bar_bound = bound::at_most;
  workload ours;
  /// Empty if the floor is `fixed_rate`.
  workload floor{};
  /// Iterations per second. `ours` is then reported as a rate too.
  double fixed_rate = 0;
  std::string unit = "ns";
};

/// The result of a comparison.
struct row {
  std::string name;
  double ours = 0;
  double floor = 0;
  std::string unit;
  double ratio = 0;
  double bar = 0;
  bound bar_bound = bound::at_most;
  bool holds = false;
};

struct measure_options {
  std::size_t rounds = 101;
  /// How long each side runs in one round.
  double round_seconds = 0.001;
};

[[nodiscard]] row make_row(std::string name, double ours, double floor, std::string unit,
                           double bar, bound bar_bound = bound::at_most);

/// Calls `measurement`, and at most twice again while the row misses its bar. Returns the best row.
/// Code that is slow stays slow; a disturbance does not.
[[nodiscard]] row best_of_three(const std::function<row()>& measurement);

[[nodiscard]] row measure(const comparison& compared, const measure_options& options = {});

/// The duration of `iterations` iterations.
[[nodiscard]] double seconds_of(const workload& work, std::uint64_t iterations);

/// `part` is from 0 to 1; 0.99 returns the 99th percentile. `figures` must not be empty.
[[nodiscard]] double quantile(std::vector<double> figures, double part);
[[nodiscard]] double median(std::vector<double> figures);

/// Returns `{"bench":"keys","rows":[...]}` and a line end.
[[nodiscard]] std::string to_json(std::string_view bench, const std::vector<row>& rows);
/// Returns aligned columns with a heading.
[[nodiscard]] std::string to_table(const std::vector<row>& rows);

}  // namespace holdfast::bench
