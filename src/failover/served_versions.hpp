#pragma once

#include <holdfast/clock.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace HOLDFAST_NAMESPACE::detail::failover {

/// Remembers the newest answer that was served for recent keys, so that callers of this process
/// never see an older answer after a newer one. A hash table of fixed size: sets of three slots,
/// one cache line each. A new key evicts the oldest slot of its set, which is counted.
/// Thread-safety: every function may be called from any thread. Two keys share a lock only if they
/// share a set.
class served_versions {
 public:
  /// The number of sets is rounded up to a power of two. 0 keys: nothing is remembered.
  explicit served_versions(std::size_t keys);

  /// Records that an answer was served. Returns false if a newer one is recorded.
  bool note(std::uint64_t id, timestamp as_of) noexcept;
  /// Forgets the key if its recorded version is `as_of`.
  void forget(std::uint64_t id, timestamp as_of) noexcept;
  /// Forgets the key if its recorded version is newer than `limit`.
  void forget_newer(std::uint64_t id, timestamp limit) noexcept;
  [[nodiscard]] std::optional<timestamp> newest(std::uint64_t id) const noexcept;
  void clear() noexcept;
  /// Number of evicted keys. An older answer may be served for them.
  [[nodiscard]] std::uint64_t evicted() const noexcept {
    return evicted_.load(std::memory_order_relaxed);
  }

 private:
  struct slot {
    std::uint64_t id = 0;  // 0: free
    timestamp as_of{};
  };
  static constexpr std::size_t slots_per_set = 3;
  struct alignas(64) set {
    mutable std::atomic_flag locked{};
    slot slots[slots_per_set]{};
  };
  class guard;
  [[nodiscard]] set& set_of(std::uint64_t id) const noexcept { return sets_[id & mask_]; }
  static std::uint64_t nonzero(std::uint64_t id) noexcept { return id == 0 ? 1 : id; }

  std::size_t mask_ = 0;
  std::unique_ptr<set[]> sets_{};
  std::atomic<std::uint64_t> evicted_{0};
};

}  // namespace HOLDFAST_NAMESPACE::detail::failover
