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

/// Counters that threads do not share: each thread adds to a part of its own, and who reads adds the parts up.
/// Thread-safety: every function may be called from any thread.
class tallies {
 public:
  void add(tally which) noexcept {
    parts_[part_of_this_thread()].counts[static_cast<std::size_t>(which)].fetch_add(1, std::memory_order_relaxed);
  }

  [[nodiscard]] std::uint64_t sum(tally which) const noexcept {
    std::uint64_t total = 0;
    for (const part& each : parts_) total += each.counts[static_cast<std::size_t>(which)].load(std::memory_order_relaxed);
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
  static constexpr std::size_t parts = 16;
  struct alignas(64) part {
    std::array<std::atomic<std::uint64_t>, tally_count> counts{};
  };
  static std::size_t part_of_this_thread() noexcept {
    static std::atomic<std::size_t> threads{0};
    thread_local const std::size_t mine = threads.fetch_add(1, std::memory_order_relaxed) % parts;
    return mine;
  }
  std::array<part, parts> parts_{};
};

}  // namespace HOLDFAST_NAMESPACE
