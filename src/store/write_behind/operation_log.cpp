#include "store/write_behind/operation_log.hpp"

#include <utility>

namespace HOLDFAST_NAMESPACE::detail::store {

operation* operation_log::latest(std::size_t hash, place location, std::string_view key) noexcept {
  if (size_ == 0) return nullptr;
  for (std::uint64_t sequence = buckets_[hash & (buckets_.size() - 1)]; sequence != 0;) {
    operation& op = slot(sequence);
    if (op.hash == hash && has_key(op.value, location, key)) return &op;
    sequence = op.next_in_bucket;
  }
  return nullptr;
}

operation* operation_log::at(std::uint64_t sequence) noexcept {
  if (sequence < head_ || sequence >= tail_) return nullptr;
  operation& op = slot(sequence);
  return op.action == operation::kind::none ? nullptr : &op;
}

void operation_log::reserve(std::size_t count) {
  while (slots() + count > ring_.size()) grow();
}

operation& operation_log::push(operation&& op, operation* previous) noexcept {
  operation& added = slot(tail_);
  added = std::move(op);
  added.sequence = tail_++;
  added.previous = previous == nullptr ? 0 : previous->sequence;
  if (previous != nullptr) remove_from_index(*previous);
  add_to_index(added);
  ++size_;
  bytes_ += added.bytes;
  return added;
}

bool operation_log::pop(operation& oldest) noexcept {
  free_cancelled();
  if (head_ == tail_) return false;
  operation& first = slot(head_);
  remove_from_index(first);
  --size_;
  bytes_ -= first.bytes;
  oldest.value = std::move(first.value);
  oldest.action = std::exchange(first.action, operation::kind::none);
  oldest.sequence = first.sequence;
  oldest.previous = first.previous;
  oldest.hash = first.hash;
  oldest.bytes = first.bytes;
  oldest.replaces_erase = first.replaces_erase;
  oldest.unsaved_since = first.unsaved_since;
  ++head_;
  return true;
}

const operation* operation_log::front() noexcept {
  free_cancelled();
  return head_ == tail_ ? nullptr : &slot(head_);
}

void operation_log::free_cancelled() noexcept {
  while (head_ != tail_ && slot(head_).action == operation::kind::none) ++head_;
}

void operation_log::cancel(operation& op) noexcept {
  remove_from_index(op);
  --size_;
  bytes_ -= op.bytes;
  op.action = operation::kind::none;
  op.value = {};
  free_cancelled();
}

void operation_log::update_size(operation& op) noexcept {
  bytes_ -= op.bytes;
  op.bytes = bytes_of(op.value);
  bytes_ += op.bytes;
}

std::size_t operation_log::count_before(std::uint64_t sequence) noexcept {
  std::size_t count = 0;
  for (auto i = head_; i != tail_ && i < sequence; ++i)
    count += slot(i).action == operation::kind::none ? 0U : 1U;
  return count;
}

void operation_log::add_to_index(operation& op) noexcept {
  std::uint64_t& bucket = buckets_[op.hash & (buckets_.size() - 1)];
  op.next_in_bucket = std::exchange(bucket, op.sequence);
}

/// Does nothing for an operation that is not the latest of its key.
void operation_log::remove_from_index(const operation& op) noexcept {
  for (std::uint64_t* link = &buckets_[op.hash & (buckets_.size() - 1)]; *link != 0;
       link = &slot(*link).next_in_bucket) {
    if (*link != op.sequence) continue;
    *link = op.next_in_bucket;
    return;
  }
}

void operation_log::grow() {
  constexpr std::size_t first_size = 64;
  const std::size_t size = ring_.empty() ? first_size : 2 * ring_.size();
  std::vector<operation> ring(size);
  std::vector<std::uint64_t> buckets(size, 0);
  std::vector<std::uint64_t> indexed;
  indexed.reserve(size_);
  for (const std::uint64_t first : buckets_) {
    for (std::uint64_t sequence = first; sequence != 0; sequence = slot(sequence).next_in_bucket)
      indexed.push_back(sequence);
  }
  for (auto i = head_; i != tail_; ++i) ring[i & (size - 1)] = std::move(slot(i));
  ring_.swap(ring);
  buckets_.swap(buckets);
  for (const std::uint64_t sequence : indexed) add_to_index(slot(sequence));
}

}  // namespace HOLDFAST_NAMESPACE::detail::store
