#include "store/write_behind/pending_operations.hpp"

#include "store/checks.hpp"

#include <algorithm>
#include <cassert>
#include <new>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::store {

pending_operations::pending_operations(const write_behind_options& options,
                                       const queue_rules& rules)
    : options_(options),
      rules_(rules),
      last_written_(options.remembered),
      suspect_pause_(options) {}

bool pending_operations::has_room(std::size_t count, std::size_t bytes) const noexcept {
  return log_.slots() + batch_.unfinished() + held_.size() + count <= options_.max_entries &&
         log_.bytes() + batch_.bytes() + held_.bytes() + bytes <= options_.max_bytes;
}

bool pending_operations::has_room_for(std::span<const operation> ops) noexcept {
  std::size_t count = 0;
  std::size_t bytes = 0;
  for (const operation& op : ops) {
    bytes += op.bytes;
    const operation* const queued = log_.latest_of(op);
    if (queued != nullptr && would_coalesce(*queued, op)) bytes -= std::min(bytes, queued->bytes);
    else ++count;
  }
  return has_room(count, bytes);
}

bool pending_operations::add(operation&& op, timestamp horizon) {
  operation* const queued = log_.latest_of(op);
  if (queued == nullptr && merge_into_held(op, horizon)) {
    ++numbers_.queued;
    return false;
  }
  if (queued != nullptr && coalesce(*queued, op, horizon)) {
    ++numbers_.coalesced;
  } else {
    op.unsaved_since = arrival_time_;
    log_.push(std::move(op), queued);
  }
  ++numbers_.queued;
  return true;
}

/// Combines a put with a held one that is newer or has the same content. Without this each call of
/// a point whose answer does not change would wake the writer. Requires that nothing of the key is
/// queued.
bool pending_operations::merge_into_held(operation& op, timestamp horizon) noexcept {
  if (op.action != kind::put || batch_.unfinished() > 0) return false;
  const operation* const held = held_.find_same_key(op);
  if (held == nullptr) return false;
  const entry& older = held->value;
  if (!rules_.replaces(op.value, older, horizon)) {
    ++numbers_.coalesced;
    return true;
  }
  // It will be stored when the held one is due, and must not expire before.
  if (op.value.payload_class != older.payload_class || op.value.payload != older.payload ||
      op.value.expire_on < older.expire_on)
    return false;
  held_.replace_value(*held, op);
  ++numbers_.skipped;
  return true;
}

/// Combines two operations of a key if the store would end up in the same state. Then one of them
/// is no longer needed: either `added`, or `queued`, whose slot `added` takes.
bool pending_operations::coalesce(operation& queued, operation& added, timestamp horizon) noexcept {
  if (added.action == kind::erase) {
    if (queued.action == kind::erase) return queued.value.as_of == added.value.as_of;
    // The queued put writes a newer version first, so the erase would find nothing.
    return queued.value.as_of > added.value.as_of && queued.value.as_of <= horizon;
  }
  if (queued.action == kind::put) {
    if (!rules_.replaces(added.value, queued.value, horizon)) return true;
    // A swap: the caller destroys the replaced entry outside the lock.
    std::swap(queued.value, added.value);
    log_.update_size(queued);
    return true;
  }
  // A put that is not older makes the queued erase unnecessary: it replaces the version to be
  // erased. An older put would not be accepted without the erase.
  if (added.value.as_of < queued.value.as_of) return false;
  std::swap(queued.value, added.value);
  queued.action = kind::put;
  queued.replaces_erase = true;
  log_.update_size(queued);
  while (operation* const previous = log_.at(queued.previous)) {
    const bool needed = previous->action == kind::erase
                            ? previous->value.as_of > queued.value.as_of
                            : !rules_.replaces(queued.value, previous->value, horizon);
    if (needed) break;
    queued.previous = previous->previous;
    log_.cancel(*previous);
    ++numbers_.coalesced;
  }
  return true;
}

bool pending_operations::would_coalesce(const operation& queued,
                                        const operation& added) const noexcept {
  if (added.action == kind::erase) return false;
  return queued.action == kind::put || added.value.as_of >= queued.value.as_of;
}

bool pending_operations::drop_oldest_for(std::span<const operation> ops,
                                         std::vector<entry>& dropped) noexcept {
  while (!has_room_for(ops)) {
    operation oldest;
    if (!held_.empty()) {
      oldest = held_.remove(*held_.find_ready(log_.next_sequence(), time::min()));
    } else if (!log_.pop(oldest)) {
      // Operations in flight cannot be dropped, so the new ones are.
      numbers_.queued += ops.size();
      for (const operation& op : ops) drop(op, dropped);
      return false;
    }
    drop(oldest, dropped);
  }
  return true;
}

void pending_operations::drop(const operation& op, std::vector<entry>& dropped) noexcept {
  // A caller may have read the dropped version. An older one that is queued later must not be
  // served in its place.
  last_written_.add_version(op.hash, op.value.as_of);
  ++numbers_.dropped;
  ++unreported_dropped_;
  try {
    if (options_.on_failed) dropped.push_back(op.value);
    else if (dropped.empty()) dropped.push_back({.name = op.value.name, .key = op.value.key});
  } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch)
    // Counted, but not reported.
  }
}

bool pending_operations::must_wait(const operation& op) noexcept {
  if (log_.latest_of(op) != nullptr) return true;
  for (std::size_t i = 0; i < batch_.size(); ++i) {
    if (batch_.is_unfinished_of(i, op.hash, place(op.value), op.value.key)) return true;
  }
  return false;
}

void pending_operations::begin_write_through(std::span<const operation> ops) noexcept {
  for (const operation& op : ops) last_written_.add_version(op.hash, op.value.as_of);
}

void pending_operations::end_write_through(std::span<const operation> ops,
                                           timestamp horizon) noexcept {
  numbers_.written_through += ops.size();
  for (const operation& op : ops) {
    const operation* const held = held_.find_same_key(op);
    if (held == nullptr || !rules_.replaces(op.value, held->value, horizon)) continue;
    (void)held_.remove(*held);
    ++numbers_.skipped;
  }
}

pending_operations::key_changes pending_operations::changes_of(place location,
                                                               std::string_view key) {
  key_changes result;
  auto& changes = result.changes;
  const auto hash = hash_of(location, key);
  if (const operation* const held = held_.find(hash, location, key))
    changes.push_back({.action = held->action, .value = held->value});
  if (rules_.reads_in_flight()) {
    for (std::size_t i = 0; i < batch_.size(); ++i) {
      // A finished put is already in the store. Applying it again after the erase that followed it
      // would bring the entry back.
      if (batch_.is_unfinished_of(i, hash, location, key))
        changes.push_back({.action = batch_[i].action, .value = batch_.value(i)});
    }
  }
  const auto first_queued = static_cast<std::ptrdiff_t>(changes.size());
  for (const operation* op = log_.latest(hash, location, key); op != nullptr;
       op = log_.at(op->previous)) {
    changes.push_back({.action = op->action, .value = op->value});
  }
  std::reverse(changes.begin() + first_queued, changes.end());
  result.has_erase = std::ranges::find(changes, kind::erase, &change::action) != changes.end();
  result.erases_done = erases_done_;
  return result;
}

bool pending_operations::fill_batch(time now) {
  const auto horizon = skew_horizon(options_.clock->now(), options_.max_skew);
  arrival_time_ = now;
  // What the last batch has left does not use the room of others.
  const std::size_t old_size = batch_.size();
  const std::size_t old_bytes = batch_.bytes();
  // One more than the limit: an operation can bring along the held operation of its key.
  batch_.reserve(old_size + std::min(options_.batch_entries + 1, log_.size() + held_.size()));
  const auto has_capacity = [&] {
    return batch_.size() - old_size < options_.batch_entries &&
           batch_.bytes() - old_bytes < options_.batch_bytes;
  };
  bool has_held = false;
  while (has_capacity()) {
    const operation* const ready = held_.find_ready(flush_target_, now);
    if (ready == nullptr) break;
    batch_.append(held_.remove(*ready), true, false);
    has_held = true;
  }
  operation op;
  while (has_capacity() && log_.pop(op)) {
    if (old_size > 0 && !supersede_unfinished(op, horizon)) continue;
    if (const operation* const held = held_.find_same_key(op)) {
      if (op.action != kind::put) {
        batch_.append(held_.remove(*held), true, false);
        has_held = true;
      } else if (rules_.replaces(op.value, held->value, horizon)) {
        (void)held_.remove(*held);
        ++numbers_.skipped;
      } else {
        ++numbers_.coalesced;
        continue;
      }
    }
    const bool may_have_predecessor = has_held || op.previous != 0 || old_size > 0;
    batch_.append(std::move(op), false, may_have_predecessor);
  }
  return has_work_in_batch(now);
}

bool pending_operations::has_work_in_batch(time now) const noexcept {
  return batch_.has_new() || (suspects_are_due(now) && batch_.suspects() > 0);
}

/// Lets a put take the place of an unfinished put of the same key that the last batch has left.
/// Returns false if the unfinished one is newer, so that the put is not needed. That is also so if
/// the newer one has expired: had it been written in time, the store would refuse the put.
bool pending_operations::supersede_unfinished(operation& op, timestamp horizon) noexcept {
  const auto last = op.action == kind::put ? batch_.last_unfinished_of(op) : std::nullopt;
  if (!last || batch_[*last].action == kind::erase) return true;
  const bool replaces = rules_.replaces(op.value, batch_.value(*last), horizon);
  if (replaces && batch_[*last].action == kind::expired_put) return true;
  ++numbers_.coalesced;
  if (!replaces) return false;
  op.replaces_erase = op.replaces_erase || batch_[*last].replaces_erase;
  batch_[*last].action = kind::none;
  batch_.finish(*last);
  return true;
}

void pending_operations::prepare_batch(timestamp now, time steady_now, bool closed) {
  bool in_order = true;
  for (std::size_t i = 0; i < batch_.size(); ++i) {
    write_batch::item& item = batch_[i];
    if (item.action == kind::put && batch_.value(i).expire_on < now)
      item.action = kind::expired_put;
    else if (may_hold(i, now, steady_now, closed))
      batch_.hold(i, held_, last_written_.find(item.hash)->written_at + options_.refresh_after);
    in_order = in_order && item.action == kind::put && item.level == 0;
  }
  if (!in_order) batch_.sort_for_writing();
}

bool pending_operations::may_hold(std::size_t i, timestamp now, time steady_now,
                                  bool closed) const noexcept {
  const write_batch::item& item = batch_[i];
  if (item.action != kind::put || item.level > 0 || item.has_successor || item.was_held ||
      item.failures > 0 || item.replaces_erase || item.sequence < flush_target_ || closed)
    return false;
  const auto* const stored = last_written_.find(item.hash);
  if (stored == nullptr || stored->digest != item.digest ||
      stored->written_at + options_.refresh_after <= steady_now)
    return false;
  if (held_.size() >= options_.max_held || held_.bytes() >= options_.max_bytes / 4) return false;
  // Neither the stored nor the held entry may expire before the held one is written.
  const auto latest_write = now + 2 * std::chrono::microseconds(options_.refresh_after);
  return stored->expire_on >= latest_write && batch_.value(i).expire_on >= latest_write;
}

void pending_operations::count_attempt(bool retry) noexcept {
  ++numbers_.batches;
  if (retry) ++numbers_.retried;
}

void pending_operations::mark_written(std::size_t first, std::size_t last, timestamp now,
                                      time steady_now) {
  for (std::size_t i = first; i < last; ++i) {
    write_batch::item& item = batch_[i];
    const entry& value = batch_.value(i);
    if (value.expire_on < now) {
      // It may have expired before the store read its clock; then the store has not written it.
      item.action = kind::expired_put;
      continue;
    }
    batch_.finish(i);
    ++numbers_.written;
    last_written_.add({.hash = item.hash,
                       .digest = item.digest,
                       .as_of = value.as_of,
                       .expire_on = value.expire_on,
                       .written_at = steady_now,
                       .content_known = true,
                       .used = true});
  }
}

void pending_operations::mark_erased(std::size_t i) noexcept {
  batch_.finish(i);
  ++numbers_.written;
  ++erases_done_;
  last_written_.add_version(batch_[i].hash, batch_.value(i).as_of);
}

void pending_operations::mark_expired(std::size_t i) noexcept {
  batch_.finish(i);
  ++numbers_.skipped;
  ++numbers_.expired;
  cancel_older(batch_[i], batch_.value(i));
  last_written_.add_version(batch_[i].hash, batch_.value(i).as_of);
}

/// Cancels an older put that was queued after an expired one. Had the expired one been written, the
/// store would refuse the older one.
void pending_operations::cancel_older(const write_batch::item& expired,
                                      const entry& value) noexcept {
  if (expired.has_successor) return;  // an erase, after which the older put is valid
  operation* first = log_.latest(expired.hash, place(value), value.key);
  if (first == nullptr) return;
  while (operation* const previous = log_.at(first->previous)) first = previous;
  if (first->action != kind::put || first->value.as_of >= value.as_of) return;
  log_.cancel(*first);
  ++numbers_.coalesced;
}

void pending_operations::mark_suspect(std::size_t i, time now,
                                      std::uint64_t written_before) noexcept {
  batch_.add_failure(i, now, written_before, attempts());
}

void pending_operations::pause_suspects(time now, bool failed, bool wrote) {
  if (batch_.suspects() == 0) {
    suspect_pause_.reset();
    return;
  }
  // While the store can be written, the pause stays short: a suspect is soon written or given up.
  if (!failed && !(wrote && suspect_pause_.failures() > 1)) return;
  if (wrote) suspect_pause_.reset();
  suspect_pause_.add_failure(now);
}

bool pending_operations::is_only_operation(std::size_t i) const noexcept {
  return !batch_[i].done && batch_.unfinished() + log_.size() + held_.size() == 1;
}

void pending_operations::mark_quarantined(std::size_t i) noexcept {
  mark_failed(i);
  ++numbers_.quarantined;
}

void pending_operations::mark_failed(std::size_t i) noexcept {
  batch_[i].action = kind::none;  // reads must not see an entry that is never stored
  batch_.finish(i);
  ++numbers_.failed;
  ++unreported_failed_;
  last_written_.add_version(batch_[i].hash, batch_.value(i).as_of);
}

void pending_operations::flush_up_to(std::uint64_t sequence) noexcept {
  flush_target_ = std::max(flush_target_, sequence);
}

bool pending_operations::is_saved(std::uint64_t sequence) const noexcept {
  const operation* const first = log_.front();
  if (first != nullptr && first->sequence < sequence) return false;
  if (!held_.empty() && held_.first_sequence() < sequence) return false;
  return batch_.unfinished_before(sequence) == 0;
}

bool pending_operations::is_ready(time now) const noexcept {
  return has_work_in_batch(now) || log_.front() != nullptr ||
         held_.find_ready(flush_target_, now) != nullptr;
}

std::optional<pending_operations::time> pending_operations::next_due() const noexcept {
  std::optional<time> due;
  if (!held_.empty()) due = held_.next_due();
  if (batch_.suspects() > 0) due = std::min(due.value_or(time::max()), suspect_pause_.not_before());
  return due;
}

write_behind_report pending_operations::make_report(std::uint64_t sequence,
                                                    std::uint64_t written_before) noexcept {
  return {.written = numbers_.written - written_before,
          .unsaved = log_.count_before(sequence) + held_.count_before(sequence),
          .in_flight = batch_.unfinished_before(sequence),
          .failed = std::exchange(unreported_failed_, 0),
          .dropped = std::exchange(unreported_dropped_, 0)};
}

write_behind_numbers pending_operations::numbers(time now) const {
  auto result = numbers_;
  result.held = held_.size();
  result.pending = log_.size() + batch_.unfinished() + held_.size();
  result.pending_bytes = log_.bytes() + batch_.bytes() + held_.bytes();
  auto oldest = now;
  if (const operation* const first = log_.front()) oldest = std::min(oldest, first->unsaved_since);
  for (const write_batch::item& item : batch_.items()) {
    if (!item.done) oldest = std::min(oldest, item.unsaved_since);
  }
  result.oldest = std::chrono::duration_cast<std::chrono::microseconds>(now - oldest);
  assert(result.queued == result.coalesced + result.written + result.skipped + result.dropped +
                              result.failed + result.pending);
  return result;
}

}  // namespace HOLDFAST_NAMESPACE::detail::store
