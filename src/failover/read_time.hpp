#pragma once

/// \file
/// How long reads of the store take, to reserve that time for the recovery of a call.

#include <holdfast/version.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace HOLDFAST_NAMESPACE::detail::failover {

/// A decaying maximum of the durations of recent reads.
/// Thread-safety: every function may be called from any thread.
class read_time {
 public:
  void record(std::chrono::steady_clock::duration duration) noexcept {
    const auto measured = std::chrono::ceil<std::chrono::microseconds>(duration).count();
    const auto recent = microseconds_.load(std::memory_order_relaxed);
    // Lost updates do not matter: the next read records again.
    microseconds_.store(measured > recent ? measured : recent - (recent - measured) / 16,
                        std::memory_order_relaxed);
    reads_.store(reads_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

  /// The part of a call's time that its recovery needs: twice what reads needed lately, at least
  /// 20 ms, because many calls may need their recovery at the same moment, and at most a quarter of
  /// the whole.
  [[nodiscard]] std::chrono::microseconds reserve(std::chrono::microseconds whole) const noexcept {
    const bool measured = reads_.load(std::memory_order_relaxed) >= 8;
    const std::chrono::microseconds recent(microseconds_.load(std::memory_order_relaxed));
    const auto needed = measured ? std::max(2 * recent, shortest_time) : default_time;
    return std::min(needed, whole / 4);
  }

 private:
  static constexpr std::chrono::microseconds shortest_time = std::chrono::milliseconds(20);
  static constexpr std::chrono::microseconds default_time = std::chrono::milliseconds(50);
  std::atomic<std::int64_t> microseconds_{0};
  std::atomic<std::uint64_t> reads_{0};
};

}  // namespace HOLDFAST_NAMESPACE::detail::failover
