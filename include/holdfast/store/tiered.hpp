#pragma once

/// \file
/// A memory cache in front of a durable store. Recently read or written entries are served from
/// this process, within a limit on their age.

#include <holdfast/clock.hpp>
#include <holdfast/executor.hpp>
#include <holdfast/store.hpp>
#include <holdfast/store/memory.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace HOLDFAST_NAMESPACE {

struct tiered_options {
  /// Limits of the memory in front; see memory_store_options.
  std::size_t max_entries = 10'000;
  std::size_t max_bytes = std::size_t{256} * 1024 * 1024;
  /// How long an entry in front is served without asking the durable store. The time counts from
  /// the start of the read that fetched the entry, or from its as_of if it was put here. Writes of
  /// other processes become visible at most this long after the durable store has them.
  std::chrono::milliseconds freshness = std::chrono::seconds(10);
  /// How long a caller waits for the durable store. 0: without limit.
  std::chrono::milliseconds read_deadline{0};
  /// The number of reads past their deadline that may still be running. New reads are refused
  /// beyond it.
  std::size_t max_late_reads = 8;
  /// Serve entries in front regardless of their age when the durable store is late or fails.
  bool serve_stale = true;
  /// Runs reads that have a deadline; required if read_deadline is set. Must not be the executor
  /// whose tasks call this store.
  std::shared_ptr<holdfast::executor> executor{};
  /// Default: the system clock. Use the clock of the durable store.
  std::shared_ptr<const holdfast::clock> clock{};
};

/// A store with memory in front of it.
///
/// - `find` answers from the front while the entry there is fresh, otherwise from the durable
///   store.
/// - `put` and `erase` go to the durable store first. The front is updated when they succeed. If
///   they fail, the next read of these keys asks the durable store.
/// - `find_in_memory` returns the entry in front, which is current while it is fresh; otherwise
/// what
///   the durable store has in memory, if that is current or newer.
/// - `find_all`, `count`, `expire` and `health` go to the durable store.
///
/// A read never returns a version older than one that this store has acknowledged, and never one
/// that was erased through this store. This also holds when entries are evicted from the front, and
/// when a slow read returns late.
///
/// Changes by other processes become visible at most `freshness` after the durable store has them.
/// - This is later than `freshness` after the other call started, because that call takes time.
/// - If the clock of the other machine is ahead, add the difference.
/// - Above a write-behind store: while the database cannot be read, write-behind answers from its
///   queue, and the front keeps that answer for `freshness`.
///
/// After a read has returned a version of another process, later reads do not return an older one,
/// even while the durable store fails, unless the version was erased or has expired.
/// docs/store-decorators.md describes the one known exception.
///
/// A read that misses `read_deadline` is answered from memory: from the front, or from what the
/// durable store has in memory (`find_in_memory`, such as the queue of a write-behind store). If
/// neither has the key, it fails with errc::timeout. It continues in the background and may still
/// update the front.
///
/// Thread-safety: every function may be called from any thread. The store may be destroyed while
/// reads run in the background. It has no threads. After fork the child must not use it.
class HOLDFAST_API tiered_store : public store {
 public:
  struct numbers {
    memory_store::numbers front{};  ///< statistics of the memory in front
    std::uint64_t fresh = 0;        ///< finds answered from the front, also by find_in_memory
    std::uint64_t asked = 0;        ///< reads sent to the durable store
    std::uint64_t backfilled = 0;   ///< of these, reads that updated the front
    std::uint64_t not_backfilled =
        0;                      ///< of these, reads that did not because of a write meanwhile
    std::uint64_t stale = 0;    ///< finds answered from memory because the durable store did not
    std::uint64_t late = 0;     ///< reads that missed their deadline
    std::uint64_t refused = 0;  ///< reads refused: too many late reads, or executor full
    bool operator==(const numbers&) const = default;
  };
  [[nodiscard]] virtual numbers stats() const = 0;
};

/// Throws errc::invalid_argument if `durable` is null, freshness or read_deadline is negative, a
/// read_deadline is set without an executor, or a limit is 0.
[[nodiscard]] HOLDFAST_API std::shared_ptr<tiered_store> make_tiered_store(
    std::shared_ptr<store> durable, tiered_options options = {});

}  // namespace HOLDFAST_NAMESPACE
