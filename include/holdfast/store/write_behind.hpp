#pragma once

/// \file
/// A store that queues writes and sends them to the store below in batches. A put costs the caller
/// a copy instead of a round trip.

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
#include <string_view>

namespace HOLDFAST_NAMESPACE {

/// What a put does when the queue is full.
enum class when_full : std::uint8_t {
  /// The caller waits for room, at most `block_for`. After that the put fails with errc::timeout,
  /// transient.
  block,
  /// The oldest operation is dropped and counted. The caller never waits.
  drop_oldest,
  /// The caller writes to the store below.
  write_through
};
/// The name of the enumerator, for example `block`. Does not change between versions.
[[nodiscard]] HOLDFAST_API std::string_view to_string(when_full policy) noexcept;

struct write_behind_options {
  /// Limit of operations that are queued, in flight or held.
  std::size_t max_entries = 10'000;
  /// Limit of their memory.
  std::size_t max_bytes = std::size_t{64} << 20U;
  /// Operations in one batch, at most half of max_entries.
  std::size_t batch_entries = 500;
  /// A batch is closed when it has this many bytes.
  std::size_t batch_bytes = std::size_t{1} << 20U;
  when_full full = when_full::block;
  /// How long a put may wait for room.
  std::chrono::milliseconds block_for{100};
  /// How long an answer that has not changed may wait before it is written again. 0: it is written
  /// with the next batch.
  std::chrono::milliseconds refresh_after = std::chrono::seconds(10);
  /// The number of keys whose last written answer is remembered, to detect unchanged and outdated
  /// answers.
  std::size_t remembered = 16'384;
  /// Limit of unchanged answers that wait. They count towards max_entries.
  std::size_t max_held = 4'096;
  /// The max_skew of the store below; see store::put.
  std::chrono::microseconds max_skew = std::chrono::minutes(5);
  /// The pause before the first retry. It doubles with each retry, with jitter.
  std::chrono::milliseconds retry_first{10};
  /// The longest pause between two tries.
  std::chrono::milliseconds retry_longest = std::chrono::seconds(2);
  /// Seed of the jitter. 0: random.
  std::uint64_t jitter_seed = 0;
  /// How often an operation must fail alone, for an unknown reason, before it is quarantined; see
  /// write_behind. Raise it for a database that reports passing failures of single rows with codes
  /// that its driver does not know.
  unsigned quarantine_after = 3;
  /// After this time without a successful write, or if an operation has failed for this long,
  /// health() and numbers() report the store as stalled.
  std::chrono::milliseconds stalled_after = std::chrono::seconds(30);
  /// How long find_all, count and expire wait for queued operations.
  std::chrono::milliseconds scan_flush = std::chrono::seconds(5);
  /// How long the destructor waits for queued operations.
  std::chrono::milliseconds linger = std::chrono::seconds(1);
  /// Runs the writer. Default: a thread of its own.
  std::shared_ptr<holdfast::executor> executor{};
  /// Default: the system clock.
  std::shared_ptr<const holdfast::clock> clock{};
  /// Receives failures, operations that were given up, and operations left unsaved.
  log_sink log{};
  /// Receives holdfast_write_behind_...; updated with each batch.
  std::shared_ptr<metrics_sink> metrics{};
  /// Called once for every accepted operation that is given up, with the reason:
  /// - the store below has refused it: the error of the store;
  /// - it was quarantined: the last error of the store;
  /// - it was dropped from the full queue (when_full::drop_oldest): errc::unavailable, transient.
  ///
  /// Not called for operations that were replaced by a newer one, expired while they waited, are
  /// still unsaved when the store is closed, or were never accepted. For an erase only name, key,
  /// realm and as_of are set. Called without a lock, on the writer's thread; for a drop on the
  /// thread of the put or erase that needed the room. Exceptions are ignored.
  std::function<void(const entry&, const error&)> on_failed{};
};

/// The result of flush or close.
struct write_behind_report {
  /// Operations written during the call.
  std::uint64_t written = 0;
  /// Operations queued before the call that still wait.
  std::uint64_t unsaved = 0;
  /// Operations queued before the call that were sent to the store below without success so far.
  std::uint64_t in_flight = 0;
  /// Operations refused permanently or quarantined since the last report.
  std::uint64_t failed = 0;
  /// Operations dropped because the queue was full since the last report.
  std::uint64_t dropped = 0;

  /// Returns whether everything that was put before the call is durable.
  [[nodiscard]] bool complete() const noexcept {
    return unsaved == 0 && in_flight == 0 && failed == 0 && dropped == 0;
  }
};

/// Counters of a write-behind store. Always exact:
/// queued = coalesced + written + skipped + dropped + failed + pending.
struct write_behind_numbers {
  /// Operations accepted. An operation is a put of one entry, or an erase.
  std::uint64_t queued = 0;
  /// Operations replaced by, or outdated by, another operation of the same key.
  std::uint64_t coalesced = 0;
  /// Operations that the store below accepted.
  std::uint64_t written = 0;
  /// Unchanged answers replaced by a newer one before they were written, and expired operations.
  std::uint64_t skipped = 0;
  /// See when_full::drop_oldest.
  std::uint64_t dropped = 0;
  /// Operations that the store below refused permanently, and quarantined ones.
  std::uint64_t failed = 0;
  /// Of `failed`: operations that kept failing for an unknown reason while others were written.
  std::uint64_t quarantined = 0;
  /// Operations that are queued, in flight or held.
  std::uint64_t pending = 0;
  /// Batches tried again after a transient failure.
  std::uint64_t retried = 0;
  /// Entries of puts that did not get room in time. They were never queued.
  std::uint64_t refused = 0;
  /// Entries written by their caller (when_full::write_through). They were never queued.
  std::uint64_t written_through = 0;
  /// Of `skipped`: operations that expired while they waited.
  std::uint64_t expired = 0;
  /// Attempts to write a batch, successful or not.
  std::uint64_t batches = 0;
  /// Of `pending`: unchanged answers that wait for `refresh_after`.
  std::uint64_t held = 0;
  /// Memory of the pending operations.
  std::uint64_t pending_bytes = 0;
  /// Age of the oldest pending operation, held answers excluded.
  std::chrono::microseconds oldest{};
  /// True if the store below has failed or has not answered for longer than `stalled_after`, for
  /// all operations or for a single one.
  bool stalled = false;
};

/// A store that queues puts and erases. One writer sends them to the store below; each batch is
/// what was queued while the previous one was written.
///
/// - `put` returns when the entry is *queued*. `flush` and `close` report what is durable. Queued
///   operations are lost when the process dies.
/// - `find` sees queued and in-flight operations, merged with the store below by the rule that the
///   newer version wins. If the store below cannot be read, `find` returns the queued entry of the
///   key, unless this process has written or read a newer version; otherwise it throws the error of
///   the store below.
/// - `erase` reads first, on the caller's thread. It returns whether the version was visible, and
///   queues the erase only then.
/// - `find_all`, `count` and `expire` flush first.
/// - `find_in_memory` returns the queued entry of a key, or that there is none if its put and its
///   erase are both queued, unless this process has written or read a newer version. It is current:
///   a newer version of another process is not seen until the operation is written. If only an
///   erase is queued, memory does not know the answer: the store below may have another version.
///
/// An operation fails alone, for an unknown reason, if the error is not transient, not in doubt,
/// and neither a known refusal of an entry (such as errc::too_large) nor a known failure of the
/// store (such as errc::missing_object). It is tried again with pauses, without blocking operations
/// of other keys. It is quarantined, which means given up, if it has failed `quarantine_after`
/// times, the store below is available, and another operation was written since its first failure;
/// if there is no other operation, after `stalled_after`. Until then it waits, as in an outage.
///
/// Thread-safety: every function except the destructor may be called from any thread.
/// Exception safety: a put that throws has queued nothing. Every queued operation is written,
/// replaced by a newer one, or counted as dropped or failed.
/// The destructor waits at most `linger` and logs what it could not write. It does not hang if the
/// store below hangs. After fork the child has no writer and must not use the store.
class HOLDFAST_API write_behind : public store {
 public:
  using store::put;

  /// Returns write_behind_options::clock or the system clock. Deadlines are times of its steady
  /// clock. If that clock stands still, a wait ends when the same time has passed on the system
  /// clock.
  [[nodiscard]] virtual const holdfast::clock& clock() const noexcept = 0;

  /// Waits until all operations queued before the call are written, including held ones, but not
  /// beyond the deadline. Retries a failing store at once.
  virtual write_behind_report flush(std::chrono::steady_clock::time_point deadline) = 0;

  /// Refuses puts and erases from now on, flushes, and stops writing. Reads still work.
  virtual write_behind_report close(std::chrono::steady_clock::time_point deadline) = 0;

  [[nodiscard]] virtual write_behind_numbers numbers() const = 0;
};

/// Throws errc::invalid_argument for a null store and for invalid limits or times.
[[nodiscard]] HOLDFAST_API std::shared_ptr<write_behind> make_write_behind(
    std::shared_ptr<store> next, write_behind_options options = {});

}  // namespace HOLDFAST_NAMESPACE
