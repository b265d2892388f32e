#pragma once

/// \file
/// Sequences: ids that are unique wherever the database can be reached, at the speed of memory. A sequence leases blocks of ids
/// from a counter in the database, in one round trip, and hands them out without asking anybody.
///
/// What is promised: no id comes twice, whoever draws it, wherever, and whatever dies meanwhile. Ids of one sequence object only grow (with the
/// increment). Between processes their order is that of blocks. There are gaps: a process that dies loses what it had leased.

#include <holdfast/clock.hpp>
#include <holdfast/log.hpp>
#include <holdfast/metrics.hpp>
#include <holdfast/sequence/block.hpp>
#include <holdfast/sequence/block_store.hpp>
#include <holdfast/sequence/options.hpp>
#include <holdfast/sequence/window.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace HOLDFAST_NAMESPACE {

/// How a sequence is doing, in this process.
struct sequence_stats {
  std::uint64_t ids = 0;                       ///< handed out, to handles too
  std::uint64_t refills = 0;                   ///< blocks that were granted
  std::uint64_t failures = 0;                  ///< refills that failed and were, or will be, tried again
  std::uint64_t in_doubt = 0;                  ///< of these, those whose block may have been granted; it is abandoned
  std::uint64_t stalls = 0;                    ///< calls that had to wait for a block
  std::uint64_t redraws = 0;                   ///< draws that fell between two blocks and were repeated
  std::uint64_t at_risk = 0;                   ///< ids that are leased and not used: lost if the process died now
  std::uint64_t left = 0;                      ///< ids that nobody was granted, until the sequence ends, as of the last block
  std::int64_t block = 0;                      ///< the size of the block that would be asked for now
  double rate = 0.0;                           ///< ids a second, as the adaptive policy sees it
  std::chrono::microseconds refill_latency{};  ///< what the adaptive policy expects a refill to take
};

/// What came of closing a sequence.
struct sequence_close_report {
  std::uint64_t unused = 0;  ///< ids that were leased and never used
  bool given_back = false;   ///< of these, those of the last block went back to the store
};

namespace detail {
class sequence_root;
class source_root;
}  // namespace detail

class sequence;

/// A thread's own part of a sequence: it takes a few ids at once, and gives them out without an atomic operation. Ids of one handle only grow; between
/// handles there is no order. What a handle has left when it dies is a gap.
/// Thread-safety: none; a handle belongs to one thread at a time. It may outlive its sequence, until what it has left is used up.
/// After fork the child's copy has nothing left, and goes on with ids of its own.
class HOLDFAST_API sequence_handle {
 public:
  using id_type = std::int64_t;

  sequence_handle(sequence_handle&& other) noexcept;
  sequence_handle& operator=(sequence_handle&& other) noexcept;
  ~sequence_handle();

  /// As sequence::next.
  std::int64_t next() {
    detail::handle_window& mine = *window_;
    if (mine.next != mine.end) [[likely]] {
      const std::uint64_t id = mine.next;
      mine.next = id + mine.step;
      return static_cast<std::int64_t>(id);
    }
    return take();
  }

 private:
  friend class sequence;
  sequence_handle(std::shared_ptr<detail::sequence_root> root, std::int64_t most);
  std::int64_t take();

  detail::handle_window* window_ = nullptr;
  std::shared_ptr<detail::sequence_root> root_;
  std::int64_t most_ = 1;   // ids to take at once
  std::uint64_t part_ = 1;  // what is fair now
};

/// A named counter whose ids are handed out here. From `database::sequence`, or from a `sequence_source` on a store of your own.
///
/// Several objects of one name, in one process or many, share the counter; each leases blocks of its own.
/// Thread-safety: every function may be called from any thread, but for the destructor and moving.
/// Exception safety: a call that throws gave out no id; what it drew is at most a gap.
/// After fork both processes can go on: the child leases blocks of its own, over connections of its own. On SQLite and in memory the child is
/// refused: neither can be shared with a process that was forked off while it was open.
class HOLDFAST_API sequence {
 public:
  using id_type = std::int64_t;

  sequence(sequence&& other) noexcept;
  sequence& operator=(sequence&& other) noexcept;
  /// Closes, and waits a second at most, plus one statement of the store with `give_back`.
  ~sequence();

  /// An id that nobody else has or gets. Lock-free while the lease lasts; else it waits for a block, as long as `sequence_options::wait` says.
  /// Throws errc::out_of_range when the sequence has come to its end, errc::timeout (transient) when no block came in time,
  /// errc::tampered when the store granted numbers that it had granted before, and what the store throws when trying again cannot help.
  std::int64_t next() {
    detail::sequence_window& shared = *window_;
    for (;;) {
      const auto mine = shared.draw();
      if (mine.sure) [[likely]]
        return shared.id(mine.ticket);
      if (const auto id = slow_next(mine.ticket)) return *id;
    }
  }

  /// The same, and waits no longer than until the deadline.
  std::int64_t next(std::chrono::steady_clock::time_point deadline);

  /// The same, and never waits: nothing when the lease is used up (a block is asked for, so ask again later). Throws as `next` does, but for errc::timeout.
  std::optional<std::int64_t> try_next();

  /// So many ids at once, `increment` apart, without a gap between them; at most 2^31. It can cost the rest of the lease, as a gap, when that is too short. Throws as `next`.
  sequence_block next_n(std::int64_t count);
  sequence_block next_n(std::int64_t count, std::chrono::steady_clock::time_point deadline);

  /// An id inside a transaction of the caller's (see join/transaction.hpp): it is used up when they commit, and not used when they roll back, so there are no gaps
  /// as long as the sequence is used in no other way. Whoever else wants one waits until the transaction ends: some thousand ids a second. No lease, and no cache.
  /// Throws errc::invalid_argument where that cannot be (memory, Redis, another kind of database, no transaction), errc::out_of_range at the end, and what the database throws.
  std::int64_t next_in_transaction(join::transaction& joined);

  /// A part of the lease for one thread, with at most so many ids at once, and no more than an eighth of a block for all handles together. 1 keeps the order of the whole process.
  [[nodiscard]] sequence_handle handle(std::int64_t most = 1024);

  /// The last id that was allocated to anybody, used or not; asks the store. Nothing: none was. No id in use lies beyond it.
  [[nodiscard]] std::optional<std::int64_t> peek() const;

  /// The last id that this object gave out; asks nobody. Nothing: none. Other threads may be drawing meanwhile.
  [[nodiscard]] std::optional<std::int64_t> position() const;

  /// From now on nobody is granted a block with ids up to and including `id`: call it after an import of rows that have ids. Leases that are out
  /// stay good. Never goes back. Returns the last id allocated, as `peek`. Throws errc::out_of_range for an id beyond the limits.
  std::optional<std::int64_t> ensure_at_least(std::int64_t id);

  /// Where the counter is, for `reset_unsafe`.
  [[nodiscard]] counter_state counter() const;

  /// Sets the counter so that `next_id` is the next to be allocated, if it still is as `expected` says. Ids that were allocated before CAN COME
  /// AGAIN: it is for tests, and for data that was deleted. This object drops its lease; other processes keep theirs until they are used up. Handles, and blocks from next_n, keep theirs: destroy them and take new ones.
  /// Throws errc::invalid_argument for an id that is none of this sequence, errc::duplicate when the counter is not as expected.
  void reset_unsafe(std::int64_t next_id, counter_state expected);

  /// Forgets what is leased: the next call asks the store. For a process restored from a snapshot of its memory. Handles, and blocks from next_n, keep theirs: destroy them and take new ones.
  void invalidate();

  [[nodiscard]] sequence_stats stats() const;
  [[nodiscard]] const std::string& name() const noexcept;

  /// Stops handing out ids (every later call throws errc::unavailable) and, with `give_back`, returns the unused rest, if nothing is on its way by the deadline: that takes one statement of the store more.
  sequence_close_report close(std::chrono::steady_clock::time_point deadline);

 private:
  friend class sequence_source;
  explicit sequence(std::shared_ptr<detail::sequence_root> root);
  [[nodiscard]] std::optional<std::int64_t> slow_next(std::uint64_t drawn);

  detail::sequence_window* window_ = nullptr;
  std::shared_ptr<detail::sequence_root> root_;
};

/// What a source needs from around it.
struct sequence_environment {
  std::shared_ptr<const holdfast::clock> clock{};  ///< the machine's unless given
  log_sink log{};                                  ///< for an operator; nobody listens unless given
  std::shared_ptr<metrics_sink> metrics{};         ///< for the numbers; nothing is counted unless given
  bool allow_unsafe = false;                       ///< go on, with a warning, where the store's settings could make it forget a block
};

/// A block store and the one thread that refills all sequences on it; refills that come together travel together. The thread starts with the first refill, and ends
/// with the last sequence and the last copy of the source.
/// Thread-safety: every function may be called from any thread. Copies share the same thread.
class HOLDFAST_API sequence_source {
 public:
  /// Throws errc::invalid_argument without a store.
  explicit sequence_source(std::shared_ptr<block_store> store, sequence_environment around = {});
  explicit sequence_source(std::shared_ptr<detail::source_root> shared) noexcept : root_(std::move(shared)) {}  ///< private to the library

  /// Throws errc::invalid_argument (name, options that cannot hold), errc::unsupported_type when the store's settings could make it forget blocks.
  /// `options.store` is not looked at. The store's settings are looked at once.
  [[nodiscard]] holdfast::sequence sequence(std::string_view name, sequence_options options = {}) const;

  [[nodiscard]] block_store& store() const;

 private:
  std::shared_ptr<detail::source_root> root_;
};

}  // namespace HOLDFAST_NAMESPACE
