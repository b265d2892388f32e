#pragma once

/// \file
/// Sequences: ids that are unique across all processes that use the same database, at the speed of
/// memory. A sequence leases blocks of ids from a counter in the database, one round trip for each
/// block, and hands the ids out without further round trips.
///
/// Guarantees:
/// - No id is given out twice: not to two threads, processes or machines, not after a crash.
/// - Ids of one sequence object only grow (in the direction of the increment). Between processes,
/// ids
///   are ordered by block only.
/// - There are gaps: a process that dies loses the ids that it leased and did not use.

#include <holdfast/clock.hpp>
#include <holdfast/log.hpp>
#include <holdfast/metrics.hpp>
#include <holdfast/sequence/block.hpp>
#include <holdfast/sequence/block_store.hpp>
#include <holdfast/sequence/options.hpp>
#include <holdfast/sequence/window.hpp>
#include <holdfast/sql.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE {

/// State of one sequence object.
struct sequence_stats {
  /// Ids handed out, including those taken by handles.
  std::uint64_t ids = 0;
  /// Blocks that were granted.
  std::uint64_t refills = 0;
  /// Refills that failed. Transient failures are retried.
  std::uint64_t failures = 0;
  /// Failed refills whose block may have been granted; it is abandoned.
  std::uint64_t in_doubt = 0;
  /// Calls that had to wait for a block.
  std::uint64_t stalls = 0;
  /// Draws that fell between two blocks and were repeated.
  std::uint64_t redraws = 0;
  /// Ids that are leased and not used: lost if the process died now.
  std::uint64_t at_risk = 0;
  /// Ids that were not granted to any process when the last block came.
  std::uint64_t remaining = 0;
  /// Current block size.
  std::int64_t block = 0;
  /// Ids per second, as measured by the adaptive policy.
  double rate = 0.0;
  /// Expected duration of a refill, as measured by the adaptive policy.
  std::chrono::microseconds refill_latency{};
};

/// Result of closing a sequence.
struct sequence_close_report {
  /// Ids that were leased and never used.
  std::uint64_t unused = 0;
  /// The unused ids of the last block went back to the store.
  bool given_back = false;
};

namespace detail::sequence {
class handle;
class sequence_state;
class source;
}  // namespace detail::sequence

class sequence;

/// A part of a sequence for one thread. It takes several ids at once and hands them out without an
/// atomic operation. Ids of one handle only grow; between handles there is no order. Ids that are
/// unused when the handle is destroyed are a gap.
///
/// Thread-safety: none; a handle belongs to one thread at a time. It may outlive its sequence, and
/// then hands out the ids that it has taken. After fork the child must not use it: `next` throws
/// errc::invalid_argument.
class HOLDFAST_API sequence_handle {
 public:
  using id_type = std::int64_t;

  sequence_handle(sequence_handle&& other) noexcept;
  sequence_handle& operator=(sequence_handle&& other) noexcept;
  ~sequence_handle();

  /// As sequence::next.
  std::int64_t next() {
    detail::sequence::handle_window& window = *window_;
    if (window.next != window.end) [[likely]] {
      const std::uint64_t id = window.next;
      window.next = id + window.step;
      return static_cast<std::int64_t>(id);
    }
    return refill();
  }

 private:
  friend class sequence;
  explicit sequence_handle(std::unique_ptr<detail::sequence::handle> handle);
  std::int64_t refill();

  detail::sequence::handle_window* window_ = nullptr;
  std::unique_ptr<detail::sequence::handle> handle_;
};

/// A named counter that hands out ids. Made by `database::sequence`, or by a `sequence_source` on a
/// store of your own. Several objects of one name, in one process or many, share the counter; each
/// leases its own blocks.
///
/// Thread-safety: every function may be called from any thread, except the destructor and moves.
/// After fork the child must not use it: every function except `name` and the destructor throws
/// errc::invalid_argument. Open the database again in the child.
/// Exception safety: a call that throws gave out no id; ids that it had drawn are at most a gap.
class HOLDFAST_API sequence {
 public:
  using id_type = std::int64_t;

  sequence(sequence&& other) noexcept;
  sequence& operator=(sequence&& other) noexcept;
  /// Closes the sequence. Waits at most a second, plus one statement of the store with `give_back`.
  ~sequence();

  /// A new id. Lock-free while the lease lasts; otherwise it waits for a block, at most
  /// `sequence_options::wait`. Throws
  /// - errc::out_of_range at the end of the sequence;
  /// - errc::timeout (transient) if no block came in time;
  /// - errc::tampered if the store granted numbers that it had granted before;
  /// - errc::invalid_argument if the counter was first used with another start, increment or limit,
  ///   or with another fence;
  /// - errors of the store that a retry cannot solve.
  std::int64_t next() {
    detail::sequence::ticket_window& window = *window_;
    const auto drawn = window.draw();
    if (drawn.is_id) [[likely]]
      return window.id(drawn.ticket);
    return slow_next(drawn.ticket);
  }

  /// The same, but waits until `deadline`.
  std::int64_t next(std::chrono::steady_clock::time_point deadline);

  /// The same, but never waits. Returns nothing when the lease is used up; a block is then
  /// requested, so try again later. Throws as `next`, except errc::timeout.
  std::optional<std::int64_t> try_next();

  /// `count` ids, `increment` apart and without a gap between them; at most 2^31. If the lease is
  /// too short for them, its rest is lost as a gap. Throws as `next`.
  sequence_block next_n(std::int64_t count);
  sequence_block next_n(std::int64_t count, std::chrono::steady_clock::time_point deadline);

  /// An id inside a transaction of the caller (see join/transaction.hpp). It is used when that
  /// transaction commits, and not used when it rolls back. There are no gaps as long as the
  /// sequence is only used in this way. Other callers wait until the transaction ends, so expect
  /// some thousand ids per second. It uses no lease. Throws errc::invalid_argument if the store
  /// cannot take part in the transaction (memory, Redis, another kind of database) or if none is
  /// open, errc::out_of_range at the end of the sequence, and errors of the database.
  std::int64_t next_in_transaction(join::transaction& transaction);

  /// A handle for one thread. It takes at most `max_ids` at once, and all handles together at most
  /// an eighth of a block. With 1, ids keep the order of the whole process.
  [[nodiscard]] sequence_handle handle(std::int64_t max_ids = 1024);

  /// The last id that was allocated to any process, used or not. Asks the store. Nothing before the
  /// first allocation. No id in use is beyond it.
  [[nodiscard]] std::optional<std::int64_t> peek() const;

  /// The last id that this object gave out, without asking the store. Nothing before the first id.
  /// Other threads may be drawing meanwhile.
  [[nodiscard]] std::optional<std::int64_t> position() const;

  /// Makes sure that no block granted from now on has ids up to and including `id`: call it after
  /// an import of rows that have ids. Existing leases stay valid. The counter never goes back.
  /// Returns the last allocated id, as `peek`. Throws errc::out_of_range if the id is beyond the
  /// limits.
  std::optional<std::int64_t> ensure_at_least(std::int64_t id);

  /// What the counter was first used with: start, increment, limits and fence, as one line of text
  /// that is kept with it. Nothing before the first use, if the store keeps no definitions, and in
  /// tables of earlier versions. All users of a sequence need the same.
  [[nodiscard]] std::optional<std::string> definition() const;

  /// Changes the definition to the options of this object, if it is still `expected`. Every id from
  /// now on lies beyond all ids of the old definition, including those that other processes have
  /// leased; this leaves a gap. Other processes use up their blocks, and then get an error until
  /// they are restarted with the new options. Processes that started before the table had
  /// definitions (`holdfast schema upgrade`), and programs of earlier versions, are not refused:
  /// end them first, or ids come twice. This object drops its lease. Throws
  /// - errc::invalid_argument if the direction changes, or if `cycle` changes from true to false;
  /// - errc::out_of_range if the new limits leave no id;
  /// - errc::duplicate if the definition is not `expected`, or if the counter was last used on
  ///   another server than now: then draw one id with the old options, and try again.
  void redefine(std::string_view expected);

  /// The state of the counter in the store, for `reset_unsafe`.
  [[nodiscard]] counter_state counter() const;

  /// Sets the counter so that `next_id` is allocated next, if its state is still `expected`. Ids
  /// that were allocated before CAN REPEAT: this is for tests, and for data that was deleted. This
  /// object drops its lease. Other processes keep theirs until they are used up. Handles, and
  /// blocks from next_n, also keep their ids: destroy them and take new ones. Throws
  /// errc::invalid_argument if `next_id` is not an id of this sequence, errc::duplicate if the
  /// counter is not as expected.
  void reset_unsafe(std::int64_t next_id, counter_state expected);

  /// Drops the lease: the next call asks the store. For a process that was restored from a snapshot
  /// of its memory. Handles, and blocks from next_n, keep their ids: destroy them and take new
  /// ones.
  void invalidate();

  [[nodiscard]] sequence_stats stats() const;
  [[nodiscard]] const std::string& name() const noexcept;

  /// Stops handing out ids: every later call throws errc::unavailable. With `give_back` it returns
  /// the unused ids, unless a refill is still running at the deadline; this takes one more
  /// statement of the store.
  sequence_close_report close(std::chrono::steady_clock::time_point deadline);

 private:
  friend class sequence_source;
  explicit sequence(std::shared_ptr<detail::sequence::sequence_state> state);
  std::int64_t slow_next(std::uint64_t ticket);

  detail::sequence::ticket_window* window_ = nullptr;
  std::shared_ptr<detail::sequence::sequence_state> state_;
};

/// What a sequence_source uses of the application. Every field is optional.
struct sequence_environment {
  /// The system clock unless set.
  std::shared_ptr<const holdfast::clock> clock{};
  log_sink log{};
  std::shared_ptr<metrics_sink> metrics{};
  /// Accept a store whose settings could make it forget a block, with a warning.
  bool allow_unsafe = false;
};

/// A block store and the thread that refills all sequences on it. Refills that are due at the same
/// time share one call to the store. The thread starts with the first refill, and ends with the
/// last sequence and the last copy of the source.
///
/// Thread-safety: every function may be called from any thread. Copies share the thread. After fork
/// the child must not use it: its functions throw errc::invalid_argument.
class HOLDFAST_API sequence_source {
 public:
  /// Throws errc::invalid_argument if `store` is null.
  explicit sequence_source(std::shared_ptr<block_store> store,
                           const sequence_environment& environment = {});
  /// Private to the library
  explicit sequence_source(std::shared_ptr<detail::sequence::source> source) noexcept
      : source_(std::move(source)) {}

  /// Opens a sequence. Does not ask the store: its settings are checked before its first use, which
  /// throws errc::unsupported_type if the store could forget blocks. `options.store` is ignored.
  /// Throws errc::invalid_argument (name, options).
  [[nodiscard]] holdfast::sequence sequence(std::string_view name,
                                            sequence_options options = {}) const;

  [[nodiscard]] block_store& store() const;

 private:
  std::shared_ptr<detail::sequence::source> source_;
};

/// The statements that create the table of sequences on a database of this dialect. They do nothing
/// where the table exists. Throws errc::invalid_argument (prefix, unknown dialect).
[[nodiscard]] HOLDFAST_API std::vector<std::string> sequence_schema(
    sql::dialect_id dialect, const sequence_store_options& options = {});

}  // namespace HOLDFAST_NAMESPACE
