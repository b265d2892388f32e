#pragma once

/// \file
/// A store in this process: sharded and bounded. Gone with the process, so put it in front of a durable one, or use it in tests.

#include <holdfast/clock.hpp>
#include <holdfast/store.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace HOLDFAST_NAMESPACE {

struct memory_store_options {
  std::size_t max_entries = 10'000;                        ///< one more, and the least wanted leaves
  std::size_t max_bytes = std::size_t{256} * 1024 * 1024;  ///< of entries, with what it takes to keep them; the same then
  std::size_t shards = 0;                                  ///< a power of two, each with a lock; 0: as many as suit the number of entries
  std::chrono::microseconds max_skew = std::chrono::minutes(5);  ///< see store::put
  std::shared_ptr<const holdfast::clock> clock{};                ///< the machine's unless given
};

/// A bounded store in memory. What is asked for again stays; what was read or written once in passing leaves first (S3-FIFO,
/// docs/decisions/0016). Entries that have expired leave before all others.
///
/// Newer wins, as in every store, while the entry is there. Memory is bounded, so it cannot be longer: when the newest version (a tombstone
/// is one) was evicted, nothing is left to refuse an older one that is put after that.
///
/// An entry is copied in and copied out; nobody ever holds what the store holds.
///
/// `put` of several entries is not seen at once: each becomes visible by itself. An entry larger than `max_bytes` is refused
/// (errc::too_large), and all that was put with it. When the process runs out of memory (std::bad_alloc), those written before stay.
///
/// Thread-safety: every function may be called from any thread; no function waits for more than one shard at a time.
/// It has no threads. After fork the child has a copy of its own, and must not use it if another thread was using it at that moment.
class HOLDFAST_API memory_store : public store {
 public:
  struct numbers {
    std::uint64_t entries = 0;  ///< that are there
    std::uint64_t bytes = 0;    ///< that they take
    std::uint64_t hits = 0;     ///< finds that found
    std::uint64_t misses = 0;   ///< finds that did not
    std::uint64_t evicted = 0;  ///< entries that left because of a bound, though they had not expired
    std::uint64_t expired = 0;  ///< entries that left because they had expired
    bool operator==(const numbers&) const = default;
  };
  /// Since the beginning; each number is right, all of them together only while nobody else uses the store.
  [[nodiscard]] virtual numbers stats() const = 0;

  /// Never for anything outside this process.
  [[nodiscard]] bool waits() const noexcept override { return false; }
};

/// Throws errc::invalid_argument for bounds of zero, a number of shards that is no power of two or too large, and a negative skew.
[[nodiscard]] HOLDFAST_API std::shared_ptr<memory_store> make_memory_store(memory_store_options options = {});

}  // namespace HOLDFAST_NAMESPACE
