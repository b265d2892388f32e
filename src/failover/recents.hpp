#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/version.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace HOLDFAST_NAMESPACE {

/// Remembers, for the keys that were served last, how new the newest answer was, so that no caller of this process sees time go backwards.
/// Of a fixed size: sets of three, one cache line each. The least new of a set makes room for another, which is counted.
/// Thread-safety: every function may be called from any thread; two keys share a lock only when they share a set.
class recents {
 public:
  /// Rounded up to a power of two of sets. 0: nothing is remembered.
  explicit recents(std::size_t keys);

  /// An answer of that moment was served. False: a newer one had been.
  bool note(std::uint64_t id, timestamp as_of) noexcept;
  /// Forgets the key if what was served last is newer than that.
  void forget_above(std::uint64_t id, timestamp most) noexcept;
  /// The newest that was served.
  [[nodiscard]] std::optional<timestamp> newest(std::uint64_t id) const noexcept;
  void clear() noexcept;
  /// Keys that had to make room: from then on an older answer may be served for them.
  [[nodiscard]] std::uint64_t evicted() const noexcept { return evicted_.load(std::memory_order_relaxed); }

 private:
  struct slot {
    std::uint64_t id = 0;  // 0: free
    timestamp as_of{};
  };
  static constexpr std::size_t ways = 3;
  struct alignas(64) set {
    mutable std::atomic_flag locked{};
    slot slots[ways]{};
  };
  class guard;
  [[nodiscard]] set& set_of(std::uint64_t id) const noexcept { return sets_[id & mask_]; }
  static std::uint64_t tag(std::uint64_t id) noexcept { return id == 0 ? 1 : id; }

  std::size_t mask_ = 0;
  std::unique_ptr<set[]> sets_{};
  std::atomic<std::uint64_t> evicted_{0};
};

}  // namespace HOLDFAST_NAMESPACE
