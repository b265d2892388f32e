#include "store/write_behind/batch_writer.hpp"

#include <optional>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::store {

namespace {

using guard = queue_state::guard;

/// Returns whether the store will always refuse this entry. Other failures are transient or can be
/// repaired, so the operations wait.
bool is_permanent(const error& e) noexcept {
  if (e.transient() || e.in_doubt()) return false;
  switch (e.code()) {
    case errc::invalid_argument:
    case errc::unsupported_type:
    case errc::out_of_range:
    case errc::not_finite:
    case errc::ill_formed_text:
    case errc::too_deep:
    case errc::too_large:
      return true;
    default:
      return false;
  }
}

/// Returns whether this row can never be read. The store then names the row in the path, as a
/// sealed store does for a payload that it cannot open.
bool is_unreadable(const error& e, const entry& row) {
  return !e.transient() && !e.in_doubt() && e.path() == row.name + "/" + row.key;
}

}  // namespace

void batch_writer::prepare() {
  if (state_.options.refresh_after.count() > 0) state_.pending.batch().compute_digests();
  const auto now = state_.options.clock->now();
  const auto steady_now = state_.steady_now();
  const guard lock(state_.mutex);
  state_.pending.prepare_batch(now, steady_now, state_.closed);
}

bool batch_writer::write() {
  for (std::size_t first = 0; first < batch_.size();) {
    std::size_t last = first + 1;
    if (batch_[first].is_pending_put()) {
      while (last < batch_.size() && batch_[last].is_pending_put() &&
             batch_[last].level == batch_[first].level)
        ++last;
      if (!write_puts(first, last)) return false;
    }
    // Erases, expired puts, and puts that expired while they were written.
    for (; first < last; ++first) {
      if (!batch_[first].done && !write_other(first)) return false;
    }
  }
  return true;
}

/// After close() has returned, no new call to the store begins. The rest of the batch counts as
/// unsaved.
bool batch_writer::stopped() const {
  const guard lock(state_.mutex);
  return state_.stopped;
}

bool batch_writer::write_puts(std::size_t first, std::size_t last) {
  if (stopped()) return false;
  try {
    state_.next->put(batch_.values(first, last));
    const auto now = state_.options.clock->now();
    const auto steady_now = state_.steady_now();
    const guard lock(state_.mutex);
    state_.pending.mark_written(first, last, now, steady_now);
    return true;
  } catch (const error& e) {
    if (!is_permanent(e)) {
      back_off(e.what());
      return false;
    }
    if (last - first == 1) return give_up_put(first, e);
  }
  const std::size_t middle = first + (last - first) / 2;
  return write_puts(first, middle) && write_puts(middle, last);
}

/// Fails a put that the store refuses permanently. If it has replaced an erase, that erase was
/// promised to its caller and is carried out.
bool batch_writer::give_up_put(std::size_t i, const error& reason) {
  if (batch_[i].replaces_erase) {
    try {
      erase_replaced(batch_.value(i));
    } catch (const error& e) {
      if (!is_permanent(e)) {
        back_off(e.what());
        return false;
      }
    }
  }
  fail(i, reason);
  return true;
}

/// Carries out an erase or an expired put.
bool batch_writer::write_other(std::size_t i) {
  if (stopped()) return false;
  const bool expired = batch_[i].action == operation::kind::expired_put;
  const entry& value = batch_.value(i);
  try {
    if (expired) erase_replaced(value);
    else (void)state_.next->erase(place(value), value.key, value.as_of);  // safe to repeat
  } catch (const error& e) {
    if (is_permanent(e)) {
      fail(i, e);
      return true;
    }
    back_off(e.what());
    return false;
  }
  const guard lock(state_.mutex);
  if (expired) state_.pending.mark_expired(i);
  else state_.pending.mark_erased(i);
  return true;
}

/// Erases the older entry that an entry would have replaced if it had been written in time.
void batch_writer::erase_replaced(const entry& expired) {
  std::optional<entry> stored;
  try {
    stored = state_.next->find(place(expired), expired.key);
  } catch (const error& e) {
    // No read returns an unreadable row, and one such row must not block the queue.
    if (is_unreadable(e, expired)) return;
    throw;
  }
  if (stored && *stored != expired && state_.rules->replaces(expired, *stored, state_.horizon()))
    (void)state_.next->erase(place(expired), expired.key, stored->as_of);
}

void batch_writer::fail(std::size_t i, const error& reason) noexcept {
  {
    const guard lock(state_.mutex);
    state_.pending.mark_failed(i);
  }
  const entry& value = batch_.value(i);
  state_.log.write_limited("write_behind.failed", log_level::error,
                           "the store refused an entry permanently; it is not stored",
                           {{.name = "name", .value = value.name},
                            {.name = "key", .value = value.key},
                            {.name = "problem", .value = reason.what()}});
  if (!state_.options.on_failed) return;
  try {
    state_.options.on_failed(value, reason);
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // An exception of the listener must not disturb the writer.
  }
}

void batch_writer::back_off(const char* reason) noexcept {
  {
    const guard lock(state_.mutex);
    state_.retry.add_failure(state_.steady_now());
  }
  state_.log.write_limited("write_behind.later", log_level::warning,
                           "the store cannot be written; queued operations wait in memory",
                           {{.name = "problem", .value = reason}});
}

}  // namespace HOLDFAST_NAMESPACE::detail::store
