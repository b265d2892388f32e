#pragma once

/// \file
/// Adds problems to the health that the store below reports.

#include <holdfast/store.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

namespace HOLDFAST_NAMESPACE::detail::store {

/// Adds a problem to those that are already reported.
inline void add_problem(store_health& health, const std::string& problem) {
  if (!health.problem.empty()) health.problem += "; ";
  health.problem += problem;
}

/// The counter of a problem that is over when it is counted, such as an unreadable row. Health must
/// report it for a while, but not until the process ends: each growth of the counter is reported
/// for store_health::problem_lifetime after it was first observed.
/// Thread-safety: every function may be called from any thread.
class observed_counter {
 public:
  using time = std::chrono::steady_clock::time_point;

  /// Returns whether the counter is to be reported.
  [[nodiscard]] bool has_grown_lately(std::uint64_t count, time now) {
    const std::scoped_lock lock(mutex_);
    if (count > last_count_) grown_at_ = now;
    last_count_ = count;
    return count > 0 && now - grown_at_ <= store_health::problem_lifetime;
  }

 private:
  std::mutex mutex_{};
  std::uint64_t last_count_ = 0;
  time grown_at_{};
};

/// Adds the problem of rows that could not be read, unless a layer below has reported it.
inline void report_unreadable(store_health& health, observed_counter& counter,
                              observed_counter::time now) {
  const bool grown = counter.has_grown_lately(health.unreadable, now);
  if (!grown || health.unreadable_lately) return;
  health.unreadable_lately = true;
  add_problem(health, "rows could not be read (" + std::to_string(health.unreadable) +
                          " times); erase or repair them");
}

}  // namespace HOLDFAST_NAMESPACE::detail::store
