#include "store/write_behind_log.hpp"

#include <functional>
#include <utility>

namespace HOLDFAST_NAMESPACE::behind {

namespace {

constexpr std::size_t first_size = 64;

}  // namespace

std::size_t hash_of(place where, std::string_view key) noexcept {
  constexpr std::size_t odd = 0x9e3779b97f4a7c15;
  const std::hash<std::string_view> hash;
  std::size_t result = hash(key) ^ (hash(where.name) * odd);
  if (!where.realm.empty()) result ^= (hash(where.realm) + odd) * odd;
  return result;
}

std::size_t bytes_of(const entry& what) noexcept {
  return sizeof(operation) + what.name.size() + what.key.size() + what.realm.size() + what.payload_class.size() +
         (what.payload ? what.payload->size() : 0);
}

operation* operation_log::latest(std::size_t hash, place where, std::string_view key) noexcept {
  if (live_ == 0) return nullptr;
  for (std::uint64_t next = buckets_[hash & (buckets_.size() - 1)]; next != 0;) {
    operation& one = place_of(next);
    if (one.hash == hash && is_about(one.what, where, key)) return &one;
    next = one.in_bucket;
  }
  return nullptr;
}

operation* operation_log::at(std::uint64_t sequence) noexcept {
  if (sequence < head_ || sequence >= tail_) return nullptr;
  operation& one = place_of(sequence);
  return one.does == operation::kind::none ? nullptr : &one;
}

void operation_log::reserve(std::size_t more) {
  while (places() + more > ring_.size()) grow();
}

operation& operation_log::push(operation&& one, operation* before) noexcept {
  operation& added = place_of(tail_);
  added = std::move(one);
  added.sequence = tail_++;
  added.earlier = before == nullptr ? 0 : before->sequence;
  if (before != nullptr) unlink(*before);
  link(added);
  ++live_;
  bytes_ += added.bytes;
  return added;
}

bool operation_log::pop(operation& into) noexcept {
  drop_freed();
  if (head_ == tail_) return false;
  operation& first = place_of(head_);
  unlink(first);
  --live_;
  bytes_ -= first.bytes;
  into.what = std::move(first.what);
  into.does = std::exchange(first.does, operation::kind::none);
  into.sequence = first.sequence;
  into.earlier = first.earlier;
  into.hash = first.hash;
  into.bytes = first.bytes;
  into.clears = first.clears;
  into.since = first.since;
  ++head_;
  return true;
}

const operation* operation_log::front() noexcept {
  drop_freed();
  return head_ == tail_ ? nullptr : &place_of(head_);
}

void operation_log::drop_freed() noexcept {
  while (head_ != tail_ && place_of(head_).does == operation::kind::none) ++head_;
}

void operation_log::kill(operation& one) noexcept {
  unlink(one);
  --live_;
  bytes_ -= one.bytes;
  one.does = operation::kind::none;
  one.what = {};
  drop_freed();
}

void operation_log::resized(operation& one) noexcept {
  bytes_ -= one.bytes;
  one.bytes = bytes_of(one.what);
  bytes_ += one.bytes;
}

std::size_t operation_log::before(std::uint64_t sequence) noexcept {
  std::size_t count = 0;
  for (auto each = head_; each != tail_ && each < sequence; ++each) count += place_of(each).does == operation::kind::none ? 0U : 1U;
  return count;
}

void operation_log::link(operation& one) noexcept {
  std::uint64_t& bucket = buckets_[one.hash & (buckets_.size() - 1)];
  one.in_bucket = std::exchange(bucket, one.sequence);
}

/// Those that are not the latest of their key are in no bucket.
void operation_log::unlink(const operation& one) noexcept {
  for (std::uint64_t* from = &buckets_[one.hash & (buckets_.size() - 1)]; *from != 0; from = &place_of(*from).in_bucket) {
    if (*from != one.sequence) continue;
    *from = one.in_bucket;
    return;
  }
}

void operation_log::grow() {
  const std::size_t size = ring_.empty() ? first_size : 2 * ring_.size();
  std::vector<operation> ring(size);
  std::vector<std::uint64_t> buckets(size, 0);
  std::vector<std::uint64_t> latest_ones;
  latest_ones.reserve(live_);
  for (const std::uint64_t first : buckets_) {
    for (std::uint64_t next = first; next != 0; next = place_of(next).in_bucket) latest_ones.push_back(next);
  }
  for (auto each = head_; each != tail_; ++each) ring[each & (size - 1)] = std::move(place_of(each));
  ring_.swap(ring);
  buckets_.swap(buckets);
  for (const std::uint64_t each : latest_ones) link(place_of(each));
}

}  // namespace HOLDFAST_NAMESPACE::behind
