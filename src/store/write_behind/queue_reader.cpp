#include "store/write_behind/queue_reader.hpp"

#include "store/checks.hpp"

#include <algorithm>
#include <exception>

namespace HOLDFAST_NAMESPACE::detail::store {

namespace {

/// Returns the version of a stored entry, unless it is so far in the future that it does not count.
std::optional<timestamp> version_within(const std::optional<entry>& stored, timestamp horizon) {
  return stored && stored->as_of <= horizon ? std::optional(stored->as_of) : std::nullopt;
}

}  // namespace

bool queue_reader::apply(const pending_operations::change& change, std::optional<entry>& visible,
                         timestamp horizon) const {
  if (change.action == operation::kind::erase) {
    if (visible && visible->as_of == change.value.as_of) visible.reset();
    return false;
  }
  const bool replaces = !visible || state_.rules->replaces(change.value, *visible, horizon);
  if (replaces) visible = change.value;
  return replaces;
}

std::optional<entry> queue_reader::find(place location, std::string_view key,
                                        std::optional<timestamp> required_version) const {
  check_name(location.name);
  check_key(key);
  const auto hash = hash_of(location, key);
  // First the pending operations, then the store. A put that is written in between is seen twice,
  // which is harmless; in the other order it could be missed. An erase that is carried out in
  // between would be applied to a newer state, so then the read is repeated.
  for (int repeats_left = 10;; --repeats_left) {
    queue_state::guard lock(state_.mutex);
    const auto pending = state_.pending.changes_of(location, key);
    lock.unlock();
    std::optional<entry> result;
    std::exception_ptr failure;
    try {
      result = state_.next->find(location, key);
    } catch (const error&) {
      failure = std::current_exception();
    }
    if (pending.changes.empty() && failure) std::rethrow_exception(failure);
    const auto horizon = state_.horizon();
    const auto stored_version = version_within(result, horizon);
    for (const auto& change : pending.changes) apply(change, result, horizon);
    lock.lock();
    auto& versions = state_.pending.written_versions();
    // Remembered so that, while the store fails, no older version is served from the queue.
    if (stored_version) versions.add_seen(hash, *stored_version);
    if (repeats_left > 0 && pending.has_erase &&
        pending.erases_done != state_.pending.erases_done())
      continue;
    if (!failure) return result;
    const bool usable = result && versions.is_newest(hash, result->as_of) &&
                        (!required_version || result->as_of == *required_version);
    if (!usable) std::rethrow_exception(failure);
    return result;
  }
}

remembered_entry queue_reader::find_in_memory(place location, std::string_view key) const {
  check_name(location.name);
  check_key(key);
  const auto hash = hash_of(location, key);
  // In the same order as find, and repeated for the same reason.
  for (int repeats_left = 10;; --repeats_left) {
    queue_state::guard lock(state_.mutex);
    const auto pending = state_.pending.changes_of(location, key);
    lock.unlock();
    auto result = state_.next->find_in_memory(location, key);
    const auto horizon = state_.horizon();
    const auto stored_version = version_within(result.entry, horizon);
    const bool below_decides = result.current || pending.changes.empty();
    bool queue_decides = false;
    timestamp newest = timestamp::min();
    for (const auto& change : pending.changes) {
      // Only a put decides: it replaces what the store below has, and an erase may follow it. An
      // erase alone does not: the store below may have another version, which it does not touch.
      if (!apply(change, result.entry, horizon)) continue;
      queue_decides = true;
      newest = std::max(newest, change.value.as_of);
    }
    lock.lock();
    auto& versions = state_.pending.written_versions();
    if (stored_version) versions.add_seen(hash, *stored_version);
    if (repeats_left > 0 && pending.has_erase &&
        pending.erases_done != state_.pending.erases_done())
      continue;
    if (below_decides || !queue_decides) return result;
    // The store below was not asked. The queue has the answer if nothing newer is known.
    if (!versions.is_newest(hash, result.entry ? result.entry->as_of : newest)) return {};
    result.current = true;
    return result;
  }
}

std::vector<std::optional<entry>> queue_reader::find_many(place location,
                                                          std::span<const std::string> keys) const {
  check_name(location.name);
  for (const auto& key : keys) check_key(key);
  // As in find(): first the pending operations, then the store.
  std::vector<pending_operations::key_changes> pending;
  pending.reserve(keys.size());
  queue_state::guard lock(state_.mutex);
  for (const auto& key : keys) pending.push_back(state_.pending.changes_of(location, key));
  lock.unlock();
  std::vector<std::optional<entry>> rows;
  try {
    rows = state_.next->find_many(location, keys);
  } catch (const error&) {
    const bool all_queued =
        std::ranges::none_of(pending, [](const auto& each) { return each.changes.empty(); });
    if (!all_queued) throw;
    for (const auto& key : keys) rows.push_back(find(location, key));
    return rows;
  }
  const auto horizon = state_.horizon();
  std::vector<std::size_t> uncertain;
  lock.lock();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    auto& row = rows[i];
    if (const auto version = version_within(row, horizon))
      state_.pending.written_versions().add_seen(hash_of(location, keys[i]), *version);
    for (const auto& change : pending[i].changes) apply(change, row, horizon);
    if (pending[i].has_erase && pending[i].erases_done != state_.pending.erases_done())
      uncertain.push_back(i);
  }
  lock.unlock();
  for (const auto i : uncertain) rows[i] = find(location, keys[i]);
  return rows;
}

}  // namespace HOLDFAST_NAMESPACE::detail::store
