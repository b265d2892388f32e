#include "store/write_behind/last_written.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::store {

std::size_t digest_of(const entry& e) noexcept {
  constexpr std::size_t odd = 0x9e3779b97f4a7c15;
  const std::hash<std::string_view> hash;
  if (!e.payload) return odd;
  return hash(*e.payload) ^ (hash(e.payload_class) * odd);
}

last_written::last_written(std::size_t keys) {
  if (keys == 0) return;
  records_.resize(std::bit_ceil(keys));
  newest_seen_.resize(records_.size(), timestamp::min());
}

const last_written::record* last_written::find(std::size_t hash) const noexcept {
  if (records_.empty()) return nullptr;
  const record& r = records_[slot_of(hash)];
  return r.content_known && r.hash == hash ? &r : nullptr;
}

bool last_written::is_newest(std::size_t hash, timestamp as_of) const noexcept {
  if (records_.empty()) return false;
  const record& r = records_[slot_of(hash)];
  // If another key has the slot, what was written of this key is in newest_seen_.
  const bool has_record = r.used && r.hash == hash;
  return newest_seen_[slot_of(hash)] <= as_of && (!has_record || r.as_of <= as_of);
}

void last_written::add(record r) noexcept {
  if (records_.empty()) return;
  record& slot = records_[slot_of(r.hash)];
  if (slot.used && slot.hash == r.hash) r.as_of = std::max(r.as_of, slot.as_of);
  else if (slot.used) add_seen(slot.hash, slot.as_of);
  slot = r;
}

void last_written::add_version(std::size_t hash, timestamp as_of) noexcept {
  add({.hash = hash, .as_of = as_of, .used = true});
}

void last_written::add_seen(std::size_t hash, timestamp as_of) noexcept {
  if (records_.empty()) return;
  timestamp& newest = newest_seen_[slot_of(hash)];
  newest = std::max(newest, as_of);
}

}  // namespace HOLDFAST_NAMESPACE::detail::store
