#pragma once

#include <holdfast/version.hpp>

#include <atomic>
#include <cstddef>

namespace HOLDFAST_NAMESPACE {

/// So many at the same time, and no more. Nobody waits: who finds no room is told.
/// Thread-safety: every function may be called from any thread.
class concurrency_limit {
 public:
  /// 0: no limit.
  explicit concurrency_limit(std::size_t most) : most_(most) {}

  [[nodiscard]] bool limited() const noexcept { return most_ != 0; }
  [[nodiscard]] bool enter() noexcept {
    if (inside_.fetch_add(1, std::memory_order_relaxed) < most_) return true;
    inside_.fetch_sub(1, std::memory_order_relaxed);
    return false;
  }
  void leave() noexcept { inside_.fetch_sub(1, std::memory_order_relaxed); }
  [[nodiscard]] std::size_t inside() const noexcept { return inside_.load(std::memory_order_relaxed); }

 private:
  const std::size_t most_;
  std::atomic<std::size_t> inside_{0};
};

}  // namespace HOLDFAST_NAMESPACE
