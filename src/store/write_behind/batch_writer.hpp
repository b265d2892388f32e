#pragma once

#include <holdfast/error.hpp>

#include "store/write_behind/queue_state.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace HOLDFAST_NAMESPACE::detail::store {

/// Writes the batch of queue_state to the store below. What follows depends on the failure:
///
/// - The store refuses an entry (too large, invalid): consecutive puts are written with one call,
///   so they are split in halves until that entry is found. It is given up: counted as failed.
/// - The store cannot be used (down, late, no table): the unfinished rest of the batch is tried
///   again later.
/// - Any other failure may be that of one row or that of the store. The puts are split as above. A
///   row that fails alone becomes a suspect, which is tried again alone, with pauses, while other
///   operations are written. If it keeps failing although the store can be written, it is given up:
///   quarantined. Rows that fail one after the other mean that the store is at fault: the rest of
///   the batch is tried again later.
///
/// Thread-safety: only the current writer calls it. It takes the lock for each change of the state,
/// but not while it calls the store below.
class batch_writer {
 public:
  /// The state must outlive it.
  explicit batch_writer(queue_state& state) : state_(state), batch_(state.pending.batch()) {}

  /// Holds unchanged answers back and sorts the batch.
  void prepare();
  /// Returns whether all operations but suspects, and what they block, are finished. After a
  /// failure of the store, back_off() was called.
  bool write();
  /// Records a failure and starts a pause.
  void back_off(const char* reason) noexcept;

 private:
  using time = queue_state::time;

  /// One call of write().
  struct pass {
    time started_at{};
    std::uint64_t written_before = 0;     ///< operations written before it
    unsigned failures_in_row = 0;         ///< of operations that failed alone
    bool failed = false;                  ///< an operation has failed alone
    bool retries_suspects = false;        ///< the new operations have been tried
    std::optional<bool> store_answers{};  ///< its health, once it was asked for
  };

  void begin_pass();
  void end_pass();
  bool write_new_operations();
  bool retry_suspects();
  [[nodiscard]] bool stopped() const;

  bool write_puts(std::size_t first, std::size_t last);
  bool write_other(std::size_t i);
  void erase_replaced(const entry& expired);
  bool handle_failure(std::size_t i, const error& reason);
  [[nodiscard]] bool is_row_at_fault(std::size_t i);
  bool set_aside(std::size_t i, const error& reason);
  bool give_up(std::size_t i, const error& reason, given_up cause);

  queue_state& state_;
  const write_batch& batch_;
  pass pass_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::store
