#include "store/write_behind/held_operations.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::store {

const operation* held_operations::find(std::size_t hash, place location,
                                       std::string_view key) const noexcept {
  if (by_key_.empty()) return nullptr;
  const auto [first, last] = by_key_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    const operation& op = by_arrival_.find(it->second)->second.op;
    if (has_key(op.value, location, key)) return &op;
  }
  return nullptr;
}

void held_operations::add(operation&& op, time due) {
  const auto sequence = op.sequence;
  const auto key = by_key_.emplace(op.hash, sequence);
  try {
    by_due_.emplace(due, sequence);
    held_operation& held = by_arrival_.try_emplace(sequence).first->second;
    bytes_ += op.bytes;
    held = {.op = std::move(op), .due = due};
  } catch (...) {
    by_due_.erase({due, sequence});
    by_key_.erase(key);
    throw;
  }
}

void held_operations::replace_value(const operation& held, operation& newer) noexcept {
  // A swap: the caller destroys the older value outside the lock.
  std::swap(by_arrival_.find(held.sequence)->second.op.value, newer.value);
}

operation held_operations::remove(const operation& op) noexcept {
  const auto it = by_arrival_.find(op.sequence);
  operation removed = std::move(it->second.op);
  bytes_ -= removed.bytes;
  by_due_.erase({it->second.due, removed.sequence});
  by_arrival_.erase(it);
  const auto [first, last] = by_key_.equal_range(removed.hash);
  by_key_.erase(
      std::find_if(first, last, [&](const auto& item) { return item.second == removed.sequence; }));
  return removed;
}

const operation* held_operations::find_ready(std::uint64_t sequence, time now) const noexcept {
  if (empty()) return nullptr;
  if (first_sequence() < sequence) return &by_arrival_.begin()->second.op;
  if (next_due() > now) return nullptr;
  return &by_arrival_.find(by_due_.begin()->second)->second.op;
}

std::size_t held_operations::count_before(std::uint64_t sequence) const noexcept {
  return static_cast<std::size_t>(
      std::distance(by_arrival_.begin(), by_arrival_.lower_bound(sequence)));
}

}  // namespace HOLDFAST_NAMESPACE::detail::store
