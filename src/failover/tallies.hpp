#pragma once

#include <holdfast/failover/status.hpp>
#include <holdfast/version.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace HOLDFAST_NAMESPACE {

/// What a point counts; the names and their order are those of point_numbers.
enum class tally : std::uint8_t {
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
  count_of_tallies
};
inline constexpr std::size_t tally_count = static_cast<std::size_t>(tally::count_of_tallies);
static_assert(sizeof(point_numbers) == tally_count * sizeof(std::uint64_t), "a number and its tally belong together");

/// Counters that threads do not share: each of the first sixteen threads adds to a part of its own, without a locked instruction; the others
/// share one. Who reads adds the parts up.
/// Thread-safety: every function may be called from any thread.
class tallies {
 public:
  void add(tally which) noexcept {
    if (my_part == unknown) my_part = take_part();
    auto& count = parts_[my_part].counts[static_cast<std::size_t>(which)];
    if (my_part == shared) count.fetch_add(1, std::memory_order_relaxed);
    else count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  [[nodiscard]] std::uint64_t sum(tally which) const noexcept {
    std::uint64_t total = 0;
    for (const part& each : parts_) total += each.counts[static_cast<std::size_t>(which)].load(std::memory_order_acquire);
    return total;
  }
  [[nodiscard]] point_numbers numbers() const noexcept;
  /// Calls that have started and not ended. What ended is read first: a call counted as ended is also counted as started.
  [[nodiscard]] std::uint64_t running() const noexcept {
    std::uint64_t ended = 0;
    for (auto which = static_cast<std::size_t>(tally::live); which <= static_cast<std::size_t>(tally::abandoned); ++which)
      ended += sum(static_cast<tally>(which));
    std::atomic_thread_fence(std::memory_order_acquire);
    const auto started = sum(tally::started);
    return started > ended ? started - ended : 0;
  }

 private:
  static constexpr std::size_t shared = 16;
  static constexpr std::size_t unknown = 17;
  struct alignas(64) part {
    std::array<std::atomic<std::uint64_t>, tally_count> counts{};
  };
  /// A part that no other thread has until this one ends, or the shared one.
  static std::size_t take_part() noexcept;
  // Without an initialiser that has to be run, so that asking for it is one load.
  static inline thread_local std::size_t my_part = unknown;
  std::array<part, shared + 1> parts_{};
};

}  // namespace HOLDFAST_NAMESPACE
