#pragma once

#include <holdfast/store/write_behind.hpp>

#include "store/write_behind/held_operations.hpp"
#include "store/write_behind/last_written.hpp"
#include "store/write_behind/operation_log.hpp"
#include "store/write_behind/queue_rules.hpp"
#include "store/write_behind/retry_pause.hpp"
#include "store/write_behind/write_batch.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::store {

/// All operations that are not finished, and the counters. See operation.hpp for the states.
/// Thread-safety: none; queue_state::mutex protects it.
class pending_operations {
 public:
  using time = std::chrono::steady_clock::time_point;
  using kind = operation::kind;

  /// Both must outlive it.
  pending_operations(const write_behind_options& options, const queue_rules& rules);

  // Adding operations

  /// Whether there is room for this many operations, if none of them is coalesced.
  [[nodiscard]] bool has_room(std::size_t count, std::size_t bytes) const noexcept;
  /// Whether there is room for these operations, taking into account that some will be coalesced.
  [[nodiscard]] bool has_room_for(std::span<const operation> ops) noexcept;
  /// Makes add() unable to fail for this many operations.
  void reserve(std::size_t count) { log_.reserve(count); }
  /// The time from which operations added later count as unsaved.
  void set_arrival_time(time now) noexcept { arrival_time_ = now; }
  /// Returns whether the writer has to look at the operation: not if it was combined with a held
  /// one.
  bool add(operation&& op, timestamp horizon);
  /// Drops the oldest operations until these have room. If the operations in flight use all room,
  /// these are dropped instead, and the result is false. `dropped` receives the dropped operations;
  /// if there is no on_failed, name and key of one of them, for the log.
  bool drop_oldest_for(std::span<const operation> ops, std::vector<entry>& dropped) noexcept;
  /// Counts a put that did not get room in time.
  void count_refused(std::size_t count) noexcept { numbers_.refused += count; }

  /// Whether a queued or unfinished operation of the same key must be written first.
  [[nodiscard]] bool must_wait(const operation& op) noexcept;
  /// Called before and after the caller wrote these puts to the store below itself.
  void begin_write_through(std::span<const operation> ops) noexcept;
  void end_write_through(std::span<const operation> ops, timestamp horizon) noexcept;

  // Reading

  /// A pending operation as a read applies it.
  struct change {
    kind action;
    entry value;
  };
  struct key_changes {
    std::vector<change> changes{};  ///< in order
    bool has_erase = false;
    std::uint64_t erases_done = 0;  ///< at the time of the snapshot
  };
  /// Returns a copy of all pending operations of a key.
  [[nodiscard]] key_changes changes_of(place location, std::string_view key);
  /// The number of erases carried out so far.
  [[nodiscard]] std::uint64_t erases_done() const noexcept { return erases_done_; }
  [[nodiscard]] last_written& written_versions() noexcept { return last_written_; }

  // Writing

  [[nodiscard]] write_batch& batch() noexcept { return batch_; }
  [[nodiscard]] const write_batch& batch() const noexcept { return batch_; }
  /// Adds operations to the batch, which contains only what the last one has left. Returns false if
  /// there is nothing to write now.
  bool fill_batch(time now);
  /// Holds unchanged answers back, marks expired puts, and sorts the batch. `closed`: hold nothing.
  void prepare_batch(timestamp now, time steady_now, bool closed);
  void count_attempt(bool retry) noexcept;
  /// The number of attempts so far.
  [[nodiscard]] std::uint64_t attempts() const noexcept { return numbers_.batches; }

  // Results of the operations in the batch
  void mark_written(std::size_t first, std::size_t last, timestamp now, time steady_now);
  void mark_erased(std::size_t i) noexcept;
  void mark_expired(std::size_t i) noexcept;
  void mark_failed(std::size_t i) noexcept;
  void mark_quarantined(std::size_t i) noexcept;
  /// The operation failed alone, for an unknown reason. `written_before`: see write_batch::item.
  void mark_suspect(std::size_t i, time now, std::uint64_t written_before) noexcept;
  /// Starts the next pause of the suspects. `failed`: an operation has failed alone since the last
  /// call. `wrote`: an operation was written.
  void pause_suspects(time now, bool failed, bool wrote);
  /// Ends the pause of the suspects.
  void retry_suspects_now() noexcept { suspect_pause_.skip(); }
  [[nodiscard]] bool suspects_are_due(time now) const noexcept {
    return suspect_pause_.not_before() <= now;
  }
  /// Since when an operation has failed alone. Empty if there is no suspect.
  [[nodiscard]] std::optional<time> failing_since() const noexcept {
    return batch_.failing_since();
  }
  /// Whether item i is the only pending operation.
  [[nodiscard]] bool is_only_operation(std::size_t i) const noexcept;

  // Flushing

  [[nodiscard]] std::uint64_t next_sequence() const noexcept { return log_.next_sequence(); }
  [[nodiscard]] std::uint64_t flush_target() const noexcept { return flush_target_; }
  /// Operations that arrived before `sequence` are no longer held.
  void flush_up_to(std::uint64_t sequence) noexcept;
  /// Whether all operations that arrived before are finished.
  [[nodiscard]] bool is_saved(std::uint64_t sequence) const noexcept;
  /// Whether operations can be written now.
  [[nodiscard]] bool is_ready(time now) const noexcept;
  /// When the next held operation or suspect is due. Empty if there is none.
  [[nodiscard]] std::optional<time> next_due() const noexcept;

  /// A report about the operations that arrived before `sequence`. Resets the counts of failed and
  /// dropped operations that have not been reported.
  [[nodiscard]] write_behind_report make_report(std::uint64_t sequence,
                                                std::uint64_t written_before) noexcept;
  [[nodiscard]] std::uint64_t written() const noexcept { return numbers_.written; }
  /// All numbers but `stalled`.
  [[nodiscard]] write_behind_numbers numbers(time now) const;

 private:
  void drop(const operation& op, std::vector<entry>& dropped) noexcept;
  [[nodiscard]] bool has_work_in_batch(time now) const noexcept;
  bool supersede_unfinished(operation& op, timestamp horizon) noexcept;
  bool merge_into_held(operation& op, timestamp horizon) noexcept;
  bool coalesce(operation& queued, operation& added, timestamp horizon) noexcept;
  [[nodiscard]] bool would_coalesce(const operation& queued, const operation& added) const noexcept;
  [[nodiscard]] bool may_hold(std::size_t i, timestamp now, time steady_now,
                              bool closed) const noexcept;
  void cancel_older(const write_batch::item& expired, const entry& value) noexcept;

  const write_behind_options& options_;
  const queue_rules& rules_;
  mutable operation_log log_{};
  held_operations held_{};
  write_batch batch_{};
  last_written last_written_;
  retry_pause suspect_pause_;
  time arrival_time_{};
  std::uint64_t flush_target_ = 0;
  std::uint64_t erases_done_ = 0;
  write_behind_numbers numbers_{};
  std::uint64_t unreported_failed_ = 0;
  std::uint64_t unreported_dropped_ = 0;
};

}  // namespace HOLDFAST_NAMESPACE::detail::store
