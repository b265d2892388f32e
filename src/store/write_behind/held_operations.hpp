#pragma once

#include "store/write_behind/operation.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::store {

/// Unchanged answers that wait to be written again or to be replaced by a newer one; at most one
/// for each key. Thread-safety: none.
class held_operations {
 public:
  using time = std::chrono::steady_clock::time_point;

  /// Returns the operation of a key, or null.
  [[nodiscard]] const operation* find(std::size_t hash, place location,
                                      std::string_view key) const noexcept;
  [[nodiscard]] const operation* find_same_key(const operation& op) const noexcept {
    return find(op.hash, place(op.value), op.value.key);
  }
  /// Changes nothing if it throws.
  void add(operation&& op, time due);
  /// Gives an operation that find() has returned the value of a newer one of the same size. It
  /// keeps its place and its due time.
  void replace_value(const operation& held, operation& newer) noexcept;
  /// Removes an operation that find() or find_ready() has returned.
  [[nodiscard]] operation remove(const operation& op) noexcept;
  /// Returns an operation that arrived before `sequence` or is due, or null.
  [[nodiscard]] const operation* find_ready(std::uint64_t sequence, time now) const noexcept;

  [[nodiscard]] bool empty() const noexcept { return by_arrival_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return by_arrival_.size(); }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::size_t count_before(std::uint64_t sequence) const noexcept;
  /// These two require that it is not empty.
  [[nodiscard]] std::uint64_t first_sequence() const noexcept { return by_arrival_.begin()->first; }
  [[nodiscard]] time next_due() const noexcept { return by_due_.begin()->first; }

 private:
  struct held_operation {
    operation op{};
    time due{};
  };
  std::map<std::uint64_t, held_operation> by_arrival_{};
  std::unordered_multimap<std::size_t, std::uint64_t> by_key_{};  // hash -> sequence
  std::set<std::pair<time, std::uint64_t>> by_due_{};
  std::size_t bytes_ = 0;
};

}  // namespace HOLDFAST_NAMESPACE::detail::store
