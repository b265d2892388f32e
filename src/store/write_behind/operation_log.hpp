#pragma once

#include "store/write_behind/operation.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::store {

/// The queued operations: a ring in order of arrival, and a hash index by key. Sequence numbers are
/// positions in the ring:
///
///     head_                        tail_
///     | put a | (none) | put b | erase a |
///                                  |
///                  `previous` of the erase refers to `put a`
///
/// Only the latest operation of a key is in the index. Does not allocate in steady state.
/// Thread-safety: none.
class operation_log {
 public:
  /// Returns the latest operation of a key, or null.
  [[nodiscard]] operation* latest(std::size_t hash, place location, std::string_view key) noexcept;
  [[nodiscard]] operation* latest_of(const operation& op) noexcept {
    return latest(op.hash, place(op.value), op.value.key);
  }
  /// Returns the operation, or null if it is no longer queued.
  [[nodiscard]] operation* at(std::uint64_t sequence) noexcept;

  /// Reserves slots for this many operations. push() then cannot fail.
  void reserve(std::size_t count);
  /// Appends an operation. `previous` is the latest one of its key, or null. Requires a free slot.
  operation& push(operation&& op, operation* previous) noexcept;
  /// Moves the oldest operation to `oldest`. Returns false if the log is empty. Frees the slots of
  /// cancelled operations.
  bool pop(operation& oldest) noexcept;
  /// Returns the oldest operation, or null.
  [[nodiscard]] const operation* front() noexcept;
  /// Cancels an operation. It must be the first of its key, or not the latest one.
  void cancel(operation& op) noexcept;
  /// Must be called after `value` has changed.
  void update_size(operation& op) noexcept;

  /// The number of slots in use, including those of cancelled operations.
  [[nodiscard]] std::size_t slots() const noexcept {
    return static_cast<std::size_t>(tail_ - head_);
  }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::uint64_t next_sequence() const noexcept { return tail_; }
  /// The number of operations that arrived before.
  [[nodiscard]] std::size_t count_before(std::uint64_t sequence) noexcept;

 private:
  [[nodiscard]] operation& slot(std::uint64_t sequence) noexcept {
    return ring_[sequence & (ring_.size() - 1)];
  }
  void grow();
  void add_to_index(operation& op) noexcept;
  void remove_from_index(const operation& op) noexcept;
  void free_cancelled() noexcept;

  std::vector<operation> ring_{};  // its size is a power of two
  // As many as the ring has slots: the sequence of the first operation, or 0
  std::vector<std::uint64_t> buckets_{};
  std::uint64_t head_ = 1;
  std::uint64_t tail_ = 1;
  std::size_t size_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace HOLDFAST_NAMESPACE::detail::store
