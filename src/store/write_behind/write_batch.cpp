#include "store/write_behind/write_batch.hpp"

#include "store/write_behind/last_written.hpp"

#include <algorithm>
#include <cassert>
#include <new>
#include <numeric>
#include <tuple>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::store {

std::size_t write_batch::unfinished_before(std::uint64_t sequence) const noexcept {
  return static_cast<std::size_t>(std::ranges::count_if(
      items_, [sequence](const item& i) { return !i.done && i.sequence < sequence; }));
}

void write_batch::reserve(std::size_t count) {
  items_.reserve(count);
  entries_.reserve(count);
}

void write_batch::append(operation&& op, bool was_held, bool may_have_predecessor) {
  item added{.action = op.action,
             .was_held = was_held,
             .replaces_erase = op.replaces_erase,
             .sequence = op.sequence,
             .hash = op.hash,
             .bytes = op.bytes,
             .unsaved_since = op.unsaved_since};
  for (std::size_t i = items_.size(); may_have_predecessor && i-- > 0;) {
    if (items_[i].hash != op.hash || !has_key(entries_[i], place(op.value), op.value.key)) continue;
    items_[i].has_successor = true;
    added.level = items_[i].level + 1;
    break;
  }
  bytes_ += op.bytes;
  ++unfinished_;
  items_.push_back(added);
  entries_.push_back(std::move(op.value));
}

void write_batch::compute_digests() {
  for (std::size_t i = 0; i < items_.size(); ++i) {
    if (items_[i].action == operation::kind::put) items_[i].digest = digest_of(entries_[i]);
  }
}

void write_batch::sort_for_writing() {
  std::vector<std::size_t> order(items_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::erase_if(order, [this](std::size_t i) { return items_[i].action == operation::kind::none; });
  const auto rank = [this](std::size_t i) {
    return std::tuple(items_[i].level, items_[i].action != operation::kind::put, i);
  };
  std::sort(order.begin(), order.end(),
            [&rank](std::size_t a, std::size_t b) { return rank(a) < rank(b); });
  std::vector<item> items;
  std::vector<entry> entries;
  items.reserve(items_.capacity());
  entries.reserve(entries_.capacity());
  for (const std::size_t i : order) {
    items.push_back(items_[i]);
    entries.push_back(std::move(entries_[i]));
  }
  items_.swap(items);
  entries_.swap(entries);
}

void write_batch::finish(std::size_t i) noexcept {
  items_[i].done = true;
  --unfinished_;
  if (items_[i].failures > 0) --suspects_;
}

void write_batch::add_failure(std::size_t i, time now, std::uint64_t written_before,
                              std::uint64_t attempt) noexcept {
  item& failed_item = items_[i];
  if (failed_item.failures == 0) {
    ++suspects_;
    failed_item.failing_since = now;
    failed_item.written_before = written_before;
  }
  ++failed_item.failures;
  failed_item.last_attempt = attempt;
}

bool write_batch::is_new(std::size_t i) const noexcept {
  return !items_[i].done && items_[i].failures == 0 && !is_blocked(i);
}

bool write_batch::is_suspect(std::size_t i) const noexcept {
  return !items_[i].done && items_[i].failures > 0 && !is_blocked(i);
}

/// The operations of a key are in order, and `level` counts those before it. Without a suspect
/// nothing is blocked: operations with a lower level are written first.
bool write_batch::is_blocked(std::size_t i) const noexcept {
  if (suspects_ == 0 || items_[i].level == 0) return false;
  for (std::size_t j = 0; j < i; ++j) {
    if (is_unfinished_of(j, items_[i].hash, place(entries_[i]), entries_[i].key)) return true;
  }
  return false;
}

bool write_batch::has_new() const noexcept {
  for (std::size_t i = 0; i < items_.size(); ++i) {
    if (is_new(i)) return true;
  }
  return false;
}

std::optional<write_batch::time> write_batch::failing_since() const noexcept {
  std::optional<time> earliest;
  if (suspects_ == 0) return earliest;
  for (const item& i : items_) {
    if (!i.done && i.failures > 0)
      earliest = std::min(earliest.value_or(i.failing_since), i.failing_since);
  }
  return earliest;
}

std::optional<std::size_t> write_batch::last_unfinished_of(const operation& op) const noexcept {
  for (std::size_t i = items_.size(); i-- > 0;) {
    if (is_unfinished_of(i, op.hash, place(op.value), op.value.key)) return i;
  }
  return std::nullopt;
}

void write_batch::hold(std::size_t i, held_operations& held, time due) {
  item& held_item = items_[i];
  operation op{.action = held_item.action,
               .sequence = held_item.sequence,
               .hash = held_item.hash,
               .bytes = held_item.bytes,
               .unsaved_since = held_item.unsaved_since};
  op.value = std::move(entries_[i]);
  try {
    held.add(std::move(op), due);
  } catch (const std::bad_alloc&) {
    entries_[i] = std::move(op.value);
    return;
  }
  held_item.action = operation::kind::none;
  bytes_ -= held_item.bytes;
  finish(i);
}

void write_batch::remove_finished() noexcept {
  if (unfinished_ == 0) {
    items_.clear();
    entries_.swap(cleared_entries_);
    bytes_ = 0;
    return;
  }
  // There are few of them, so the entries of the others are freed at once.
  std::size_t size = 0;
  bytes_ = 0;
  for (std::size_t i = 0; i < items_.size(); ++i) {
    if (items_[i].done) continue;
    bytes_ += items_[i].bytes;
    if (size != i) {
      items_[size] = items_[i];
      entries_[size] = std::move(entries_[i]);
    }
    ++size;
  }
  items_.resize(size);
  entries_.resize(size);
}

}  // namespace HOLDFAST_NAMESPACE::detail::store
