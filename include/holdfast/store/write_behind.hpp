#pragma once

/// \file
/// Writes later, many at once: a put costs the caller a copy, not a round trip.

#include <holdfast/clock.hpp>
#include <holdfast/error.hpp>
#include <holdfast/executor.hpp>
#include <holdfast/log.hpp>
#include <holdfast/metrics.hpp>
#include <holdfast/store.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace HOLDFAST_NAMESPACE {

/// What happens to a put when the queue is full.
enum class when_full : std::uint8_t {
  block,         ///< the caller waits for room, `block_for` at most; then the put is refused: errc::timeout, transient
  drop_oldest,   ///< the operation that waited longest is dropped and counted; the caller never waits
  write_through  ///< the caller writes to the store below itself
};

struct write_behind_options {
  std::size_t max_entries = 10'000;                 ///< operations that may wait or be on their way
  std::size_t max_bytes = std::size_t{64} << 20U;   ///< the memory that they may take
  std::size_t batch_entries = 500;                  ///< written at once at most; never more than half of max_entries
  std::size_t batch_bytes = std::size_t{1} << 20U;  ///< a batch is closed when it has as much
  when_full full = when_full::block;                ///< see there
  std::chrono::milliseconds block_for{100};         ///< how long a put may wait for room
  std::chrono::milliseconds refresh_after =
      std::chrono::seconds(10);     ///< how long an unchanged answer may wait to be written again; 0: not at all
  std::size_t remembered = 16'384;  ///< keys of which the last written answer is known, to see what is unchanged or outdated
  std::size_t max_held = 4'096;     ///< unchanged answers that wait; counted in max_entries, too
  std::chrono::microseconds max_skew = std::chrono::minutes(5);  ///< as the store below has it; see store::put
  std::chrono::milliseconds retry_first{10};                     ///< the pause before the second try; doubled with each try, with jitter
  std::chrono::milliseconds retry_longest = std::chrono::seconds(2);   ///< the longest pause between two tries
  std::uint64_t jitter_seed = 0;                                       ///< of the pauses; 0: another one each time
  std::chrono::milliseconds stalled_after = std::chrono::seconds(30);  ///< failing for as long is told: health(), numbers(), the log
  std::chrono::milliseconds scan_flush = std::chrono::seconds(5);      ///< how long find_all, count and expire wait for what is queued
  std::chrono::milliseconds linger = std::chrono::seconds(1);          ///< how long the destructor waits for what is queued
  std::shared_ptr<holdfast::executor> executor{};                      ///< where the writer runs; a thread of its own unless given
  std::shared_ptr<const holdfast::clock> clock{};                      ///< the machine's unless given
  log_sink log{};                                                      ///< told of what failed, was dropped or left unsaved
  std::shared_ptr<metrics_sink> metrics{};                             ///< holdfast_write_behind_...; updated with each batch
  /// Told of every operation that the store below refuses for good, on the writer's thread. Of an erase only name, key, realm and as_of are set.
  std::function<void(const entry&, const error&)> on_failed{};
};

/// What a flush or a close came to.
struct write_behind_report {
  std::uint64_t written = 0;    ///< operations written meanwhile
  std::uint64_t unsaved = 0;    ///< operations of before the call that still wait
  std::uint64_t in_flight = 0;  ///< operations of before the call handed to the store below, which has not answered, or not well
  std::uint64_t failed = 0;     ///< refused for good by the store below, and in no report before
  std::uint64_t dropped = 0;    ///< dropped because the queue was full, and in no report before

  /// Whether all that was put before the call is durable.
  [[nodiscard]] bool complete() const noexcept { return unsaved == 0 && in_flight == 0 && failed == 0 && dropped == 0; }
};

/// Always exact: queued = coalesced + written + skipped + dropped + failed + pending.
struct write_behind_numbers {
  std::uint64_t queued = 0;            ///< operations accepted: a put of one entry, or an erase
  std::uint64_t coalesced = 0;         ///< not needed any more: a newer one of the same key was queued, or was there
  std::uint64_t written = 0;           ///< taken by the store below
  std::uint64_t skipped = 0;           ///< unchanged answers replaced by a newer one before they had to be written, and those that expired
  std::uint64_t dropped = 0;           ///< see when_full::drop_oldest
  std::uint64_t failed = 0;            ///< refused for good by the store below
  std::uint64_t pending = 0;           ///< waiting or on their way
  std::uint64_t retried = 0;           ///< batches tried again after a failure that passes
  std::uint64_t refused = 0;           ///< entries of puts that found no room in time; never queued
  std::uint64_t written_through = 0;   ///< entries that their caller wrote; never queued
  std::uint64_t expired = 0;           ///< of the skipped: those that expired while they waited
  std::uint64_t batches = 0;           ///< tries to write, successful or not
  std::uint64_t held = 0;              ///< of the pending: unchanged answers that wait for `refresh_after`
  std::uint64_t pending_bytes = 0;     ///< memory of the pending
  std::chrono::microseconds oldest{};  ///< the age of what is pending longest, unchanged answers left out
  bool stalled = false;                ///< the store below has failed for longer than `stalled_after`
};

/// A store that queues puts and erases and lets one writer carry them to the store below: whatever was queued while it wrote the last
/// batch is the next one. Reads see what is queued and on its way, merged with the store below by the newer-wins rule; find_all, count and expire flush first.
///
/// `put` returning means *queued*. `flush` and `close` say what is durable. What waits is lost when the process dies.
/// `erase` reads first, on the caller's thread: it returns whether the version was the one visible, and queues the erase only then.
/// While the store below cannot be read, `find` gives what is queued for the key, if that is an entry and this process has written and found
/// no newer version of the key; otherwise it throws the error of the store below.
///
/// Thread-safety: every function may be called from any thread, but destruction.
/// Exception safety: a put that throws has queued nothing. Nothing that was queued is ever lost in silence: it is written, replaced by a
/// newer one, or counted as dropped or failed.
/// Destruction waits `linger` at most and tells the log what it left. A store below that hangs does not hang it.
/// After fork the child has no writer: it must not use it.
class HOLDFAST_API write_behind : public store {
 public:
  using store::put;

  /// The clock of this store: write_behind_options::clock, or the machine's. Deadlines are moments of its steady time; one that stands
  /// still is believed only until the same time has passed on the machine's.
  [[nodiscard]] virtual const holdfast::clock& clock() const noexcept = 0;

  /// Waits until all that was queued before is written, the unchanged included, but not beyond the deadline. Tries a failing store again at once.
  virtual write_behind_report flush(std::chrono::steady_clock::time_point deadline) = 0;

  /// The same, and stops: puts and erases are refused from the call on, and nothing is written after it returned. Reads go on.
  virtual write_behind_report close(std::chrono::steady_clock::time_point deadline) = 0;

  [[nodiscard]] virtual write_behind_numbers numbers() const = 0;
};

/// Throws errc::invalid_argument for limits that leave no room.
[[nodiscard]] HOLDFAST_API std::shared_ptr<write_behind> make_write_behind(std::shared_ptr<store> next, write_behind_options options = {});

}  // namespace HOLDFAST_NAMESPACE
