#include "store/write_behind_held.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <iterator>
#include <string_view>

namespace HOLDFAST_NAMESPACE::behind {

std::size_t digest_of(const entry& what) noexcept {
  constexpr std::size_t odd = 0x9e3779b97f4a7c15;
  const std::hash<std::string_view> hash;
  if (!what.payload) return odd;
  return hash(*what.payload) ^ (hash(what.payload_class) * odd);
}

last_written::last_written(std::size_t keys) {
  if (keys == 0) return;
  records_.resize(std::bit_ceil(keys));
  newest_seen_.resize(records_.size(), timestamp::min());
}

const last_written::record* last_written::find(std::size_t hash) const noexcept {
  if (records_.empty()) return nullptr;
  const record& one = records_[slot_of(hash)];
  return one.there && one.hash == hash ? &one : nullptr;
}

bool last_written::none_newer(std::size_t hash, timestamp as_of) const noexcept {
  if (records_.empty()) return false;
  const record& one = records_[slot_of(hash)];
  return newest_seen_[slot_of(hash)] <= as_of && (!one.used || (one.hash == hash && one.as_of <= as_of));
}

void last_written::note(record one) noexcept {
  if (records_.empty()) return;
  record& old = records_[slot_of(one.hash)];
  if (old.used && old.hash == one.hash) one.as_of = std::max(one.as_of, old.as_of);
  else if (old.used) note_seen(old.hash, old.as_of);  // that key loses its place, but not its newest version
  old = one;
}

void last_written::doubt(std::size_t hash, timestamp as_of) noexcept { note({.hash = hash, .as_of = as_of, .used = true}); }

void last_written::note_seen(std::size_t hash, timestamp as_of) noexcept {
  if (records_.empty()) return;
  timestamp& newest = newest_seen_[slot_of(hash)];
  newest = std::max(newest, as_of);
}

const operation* held_operations::find(std::size_t hash, place where, std::string_view key) const noexcept {
  if (by_key_.empty()) return nullptr;
  const auto [first, last] = by_key_.equal_range(hash);
  for (auto each = first; each != last; ++each) {
    const operation& one = by_arrival_.find(each->second)->second.what;
    if (is_about(one.what, where, key)) return &one;
  }
  return nullptr;
}

void held_operations::add(operation&& one, time due) {
  const auto sequence = one.sequence;
  const auto key = by_key_.emplace(one.hash, sequence);
  try {
    by_due_.emplace(due, sequence);
    const auto at = by_arrival_.try_emplace(sequence).first;
    bytes_ += one.bytes;
    at->second = {.what = std::move(one), .due = due};
  } catch (...) {
    by_due_.erase({due, sequence});
    by_key_.erase(key);
    throw;
  }
}

operation held_operations::take(const operation& one) noexcept {
  const auto at = by_arrival_.find(one.sequence);
  operation result = std::move(at->second.what);
  bytes_ -= result.bytes;
  by_due_.erase({at->second.due, result.sequence});
  by_arrival_.erase(at);
  const auto [first, last] = by_key_.equal_range(result.hash);
  by_key_.erase(std::find_if(first, last, [&](const auto& each) { return each.second == result.sequence; }));
  return result;
}

const operation* held_operations::ripe(std::uint64_t sequence, time now) const noexcept {
  if (empty()) return nullptr;
  if (first() < sequence) return &by_arrival_.begin()->second.what;
  if (next_due() > now) return nullptr;
  return &by_arrival_.find(by_due_.begin()->second)->second.what;
}

std::size_t held_operations::before(std::uint64_t sequence) const noexcept {
  return static_cast<std::size_t>(std::distance(by_arrival_.begin(), by_arrival_.lower_bound(sequence)));
}

}  // namespace HOLDFAST_NAMESPACE::behind
