#pragma once

#include <holdfast/version.hpp>

#include <atomic>
#include <cstddef>

namespace HOLDFAST_NAMESPACE::detail::failover {

/// Limits the number of concurrent calls. Refuses further calls instead of blocking them.
/// Thread-safety: every function may be called from any thread.
class concurrency_limit {
 public:
  /// 0: no limit.
  explicit concurrency_limit(std::size_t maximum) : maximum_(maximum) {}

  [[nodiscard]] bool limited() const noexcept { return maximum_ != 0; }
  [[nodiscard]] bool enter() noexcept {
    if (running_.fetch_add(1, std::memory_order_relaxed) < maximum_) return true;
    running_.fetch_sub(1, std::memory_order_relaxed);
    return false;
  }
  void leave() noexcept { running_.fetch_sub(1, std::memory_order_relaxed); }

 private:
  const std::size_t maximum_;
  std::atomic<std::size_t> running_{0};
};

}  // namespace HOLDFAST_NAMESPACE::detail::failover
