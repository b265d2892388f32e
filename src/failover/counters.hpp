#pragma once

#include <holdfast/failover/status.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>

namespace HOLDFAST_NAMESPACE::detail::failover {

/// The counters of a point: the same names in the same order as point_numbers.
enum class counter : std::uint8_t {
  started,
  live,
  stale,
  fresh,
  substituted,
  failed,
  passed,
  invalidated,
  abandoned,
  stored,
  absent,
  ignored,
  too_large,
  store_failed,
  not_found,
  expired,
  not_allowed,
  undecodable,
  older,
  read_failed,
  read_late,
  late,
  late_stored,
  retries,
  no_budget,
  breaker_refused,
  limit_refused,
  full_refused,
  coalesced,
  refreshed,
  refresh_failed,
  unkeyed,
  hook_failed,
  partial,
  unlisted,
  asymmetric,
  drill_served,
  drill_uncovered,
  covered,
  uncovered,
  end_of_counters
};
inline constexpr std::size_t counter_count = static_cast<std::size_t>(counter::end_of_counters);
static_assert(sizeof(point_numbers) == counter_count * sizeof(std::uint64_t),
              "counter and point_numbers must have the same members");

/// Sharded counters. Each of the first 16 threads adds to a shard of its own, without a locked
/// instruction; further threads share one. Reading sums up all shards.
/// Thread-safety: every function may be called from any thread.
class counters {
 public:
  void add(counter index) noexcept {
    if (my_shard == unassigned) my_shard = assign_shard();
    auto& count = shards_[my_shard].counts[static_cast<std::size_t>(index)];
    if (my_shard == shared) count.fetch_add(1, std::memory_order_relaxed);
    else count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  [[nodiscard]] std::uint64_t sum(counter index) const noexcept {
    std::uint64_t total = 0;
    for (const shard& part : shards_)
      total += part.counts[static_cast<std::size_t>(index)].load(std::memory_order_acquire);
    return total;
  }
  [[nodiscard]] point_numbers numbers() const noexcept;
  /// Calls that have started and not ended. Reads the ended calls first, so every call that counts
  /// as ended also counts as started.
  [[nodiscard]] std::uint64_t running() const noexcept {
    std::uint64_t ended = 0;
    for (auto index = static_cast<std::size_t>(counter::live);
         index <= static_cast<std::size_t>(counter::abandoned); ++index)
      ended += sum(static_cast<counter>(index));
    std::atomic_thread_fence(std::memory_order_acquire);
    const auto started = sum(counter::started);
    return started > ended ? started - ended : 0;
  }

 private:
  static constexpr std::size_t shared = 16;
  static constexpr std::size_t unassigned = 17;
  struct alignas(64) shard {
    std::array<std::atomic<std::uint64_t>, counter_count> counts{};
  };
  /// Returns a shard that only this thread uses until it ends, or `shared`.
  static std::size_t assign_shard() noexcept;
  // Constant-initialised, so that an access is one load.
  static inline thread_local std::size_t my_shard = unassigned;
  std::array<shard, shared + 1> shards_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::failover
