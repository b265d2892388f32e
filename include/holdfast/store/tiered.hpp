#pragma once

/// \file
/// Memory in front of a durable store: what was read or written lately is answered from this process, within a bound on its age.

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
  std::size_t max_entries = 10'000;                        ///< in front; see memory_store_options
  std::size_t max_bytes = std::size_t{256} * 1024 * 1024;  ///< in front; see memory_store_options
  /// How long an entry in front is served without asking the durable store: counted from the start of the read that brought it, or from its
  /// as_of if it was put here. What another process writes is seen at most so long after the durable store has it.
  std::chrono::milliseconds freshness = std::chrono::seconds(10);
  std::chrono::milliseconds read_deadline{0};  ///< how long a caller waits for the durable store's answer; 0 means as long as that takes
  std::size_t max_late_reads = 8;              ///< reads past their deadline that may be running; while there are so many no other begins
  bool serve_stale = true;                     ///< when the durable store is late or fails, serve what is in front, however old
  std::shared_ptr<holdfast::executor>
      executor{};  ///< where reads with a deadline run; needed with one. Not the one whose tasks call this store
  std::shared_ptr<const holdfast::clock> clock{};  ///< the machine's unless given; the one of the durable store
};

/// A store with memory in front of it.
///
/// `find` answers from the front while the entry there is fresh, else from the durable store. `put` and `erase` go to the durable store
/// first; the front follows when they were acknowledged, and is asked again about its entries when they were not. `find_all`, `count`,
/// `expire` and `health` are the durable store's.
///
/// A read never returns an older version than one whose `put` this store has acknowledged before, and never one whose `erase` it has: not
/// when entries leave the front, not when a slow read comes back after them.
///
/// What another process does is seen at most `freshness` after the durable store has it. That is not `freshness` after its call started: a
/// call takes time, and an entry that is read meanwhile is fresh. If the clock of the other machine is ahead, add the difference. On a
/// write-behind store there is one exception: while the database cannot be read, that answers from its queue, and the front keeps this answer
/// for `freshness`, too. A version of another process that a read has returned is not followed by an older one, not even while the durable
/// store fails, unless it was erased or has expired; docs/store-decorators.md names the one known exception.
///
/// A read that is later than `read_deadline` is answered from the front, or else with errc::timeout; it goes on in the background and may
/// still bring its entry to the front.
///
/// Thread-safety: every function may be called from any thread; a read in the background keeps alive what it needs, so this may be destroyed
/// before it ends. It has no threads. After fork the child must not use it.
class HOLDFAST_API tiered_store : public store {
 public:
  struct numbers {
    memory_store::numbers front{};     ///< the memory itself
    std::uint64_t fresh = 0;           ///< finds answered from the front
    std::uint64_t asked = 0;           ///< reads that the durable store was asked for
    std::uint64_t backfilled = 0;      ///< of those, brought their answer to the front
    std::uint64_t not_backfilled = 0;  ///< did not, because something was written meanwhile
    std::uint64_t stale = 0;           ///< finds answered from the front, beyond freshness, because the durable store was late or failed
    std::uint64_t late = 0;            ///< reads that missed their deadline
    std::uint64_t refused = 0;         ///< reads that did not begin: too many late ones, or the executor was full
    bool operator==(const numbers&) const = default;
  };
  [[nodiscard]] virtual numbers stats() const = 0;
};

/// Throws errc::invalid_argument for no store below, a negative freshness or deadline, a deadline without an executor, and bounds of zero.
[[nodiscard]] HOLDFAST_API std::shared_ptr<tiered_store> make_tiered_store(std::shared_ptr<store> durable, tiered_options options = {});

}  // namespace HOLDFAST_NAMESPACE
