#pragma once

#include <holdfast/error.hpp>

#include "store/write_behind/queue_state.hpp"

#include <cstddef>

namespace HOLDFAST_NAMESPACE::detail::store {

/// Writes the batch of queue_state to the store below.
///
/// - Consecutive puts are written with one call. If the store refuses an entry permanently, the
///   puts are split in halves until that entry is found; it is counted as failed.
/// - After any other failure the unfinished rest of the batch is tried again later.
///
/// Thread-safety: only the current writer calls it. It takes the lock for each change of the state,
/// but not while it calls the store below.
class batch_writer {
 public:
  /// The state must outlive it.
  explicit batch_writer(queue_state& state) : state_(state), batch_(state.pending.batch()) {}

  /// Holds unchanged answers back and sorts the batch.
  void prepare();
  /// Returns whether all operations are finished. After a failure, back_off() was called.
  bool write();
  /// Records a failure and starts a pause.
  void back_off(const char* reason) noexcept;

 private:
  [[nodiscard]] bool stopped() const;
  bool write_puts(std::size_t first, std::size_t last);
  bool write_other(std::size_t i);
  bool give_up_put(std::size_t i, const error& reason);
  void erase_replaced(const entry& expired);
  void fail(std::size_t i, const error& reason) noexcept;

  queue_state& state_;
  const write_batch& batch_;
};

}  // namespace HOLDFAST_NAMESPACE::detail::store
