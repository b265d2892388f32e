#include "store/write_behind/queue_reader.hpp"

#include "store/checks.hpp"

#include <exception>

namespace HOLDFAST_NAMESPACE::detail::store {

void queue_reader::apply(const pending_operations::change& change, std::optional<entry>& visible,
                         timestamp horizon) const {
  if (change.action == operation::kind::erase) {
    if (visible && visible->as_of == change.value.as_of) visible.reset();
  } else if (!visible || state_.rules->replaces(change.value, *visible, horizon)) {
    visible = change.value;
  }
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
    const auto stored_version =
        result && result->as_of <= horizon ? std::optional(result->as_of) : std::nullopt;
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

}  // namespace HOLDFAST_NAMESPACE::detail::store
