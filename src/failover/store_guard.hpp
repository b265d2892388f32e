#pragma once

/// \file
/// Whether the store answers. Calls do not wait for a store that does not.

#include <holdfast/version.hpp>

#include <atomic>

namespace HOLDFAST_NAMESPACE::detail::failover {

/// Closes the way to the store after several reads in a row failed or were late. A probe in the
/// background opens it again.
/// Thread-safety: every function may be called from any thread.
class store_guard {
 public:
  [[nodiscard]] bool answers() const noexcept { return answers_.load(std::memory_order_relaxed); }

  /// Records the result of a read. Returns true if the store is given up now: the caller must start
  /// the probes.
  [[nodiscard]] bool record(bool answered) noexcept {
    if (answered) {
      if (failures_.load(std::memory_order_relaxed) != 0)
        failures_.store(0, std::memory_order_relaxed);
      return false;
    }
    if (failures_.fetch_add(1, std::memory_order_relaxed) + 1 < tolerated_failures) return false;
    return answers_.exchange(false, std::memory_order_relaxed);
  }
  /// A probe was answered.
  void reopen() noexcept {
    failures_.store(0, std::memory_order_relaxed);
    answers_.store(true, std::memory_order_relaxed);
  }

 private:
  static constexpr unsigned tolerated_failures = 5;
  std::atomic<bool> answers_{true};
  std::atomic<unsigned> failures_{0};  // since the last answer
};

}  // namespace HOLDFAST_NAMESPACE::detail::failover
