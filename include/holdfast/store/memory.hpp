#pragma once

/// \file
/// A bounded, sharded store in the memory of this process. Its entries are lost when the process
/// ends, so put it in front of a durable store or use it in tests.

#include <holdfast/clock.hpp>
#include <holdfast/store.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace HOLDFAST_NAMESPACE {

struct memory_store_options {
  /// When there are more entries, the least useful one is evicted.
  std::size_t max_entries = 10'000;
  /// The limit on memory, including the overhead of each entry. Entries are evicted beyond it.
  std::size_t max_bytes = std::size_t{256} * 1024 * 1024;
  /// The number of shards, a power of two. Each has its own lock. 0: chosen by max_entries.
  std::size_t shards = 0;
  /// See store::put.
  std::chrono::microseconds max_skew = std::chrono::minutes(5);
  /// Default: the system clock.
  std::shared_ptr<const holdfast::clock> clock{};
};

/// A bounded store in memory. The eviction policy is S3-FIFO (docs/decisions/0016): entries that
/// are requested again stay, entries that were used only once are evicted first. Expired entries
/// are evicted before all others.
///
/// The newer version wins only while it is in memory. After the newest version (which may be a
/// tombstone) was evicted, the store accepts an older one.
///
/// Entries are copied in and copied out.
///
/// A `put` of several entries is not atomic: each becomes visible on its own. If one of them is
/// larger than `max_bytes`, all are refused with errc::too_large. If the process runs out of memory
/// (std::bad_alloc), the entries written before stay.
///
/// Thread-safety: every function may be called from any thread and locks one shard at a time. The
/// store has no threads. After fork the child has its own copy; it must not use the copy if another
/// thread was using the store during the fork.
class HOLDFAST_API memory_store : public store {
 public:
  struct numbers {
    std::uint64_t entries = 0;  ///< entries in the store
    std::uint64_t bytes = 0;    ///< memory that they use
    std::uint64_t hits = 0;     ///< calls of find or find_in_memory that returned an entry
    std::uint64_t misses = 0;   ///< such calls that did not
    std::uint64_t evicted = 0;  ///< entries removed because of a limit before they expired
    std::uint64_t expired = 0;  ///< entries removed after they expired
    bool operator==(const numbers&) const = default;
  };
  /// Returns counters since construction. Each is exact; together they are consistent only while no
  /// other thread uses the store.
  [[nodiscard]] virtual numbers stats() const = 0;

  [[nodiscard]] bool waits() const noexcept override { return false; }
};

/// Throws errc::invalid_argument if a limit is 0, `shards` is not a power of two or too large, or
/// `max_skew` is negative.
[[nodiscard]] HOLDFAST_API std::shared_ptr<memory_store> make_memory_store(
    memory_store_options options = {});

}  // namespace HOLDFAST_NAMESPACE
