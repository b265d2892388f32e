#include "store/write_behind/batch_writer.hpp"

#include <algorithm>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::store {

namespace {

using guard = queue_state::guard;

/// So many rows that fail alone, one after the other, mean that the store is at fault.
constexpr unsigned max_failures_in_row = 8;
/// Reads search the suspects one by one.
constexpr std::size_t max_suspects = 500;

enum class failure_kind : std::uint8_t {
  row_refused,   ///< the store will always refuse this entry
  store_failed,  ///< it concerns all entries, and passes or can be repaired
  unknown        ///< it is not known whether the entry or the store is at fault
};

failure_kind kind_of(const error& e) noexcept {
  if (e.transient() || e.in_doubt()) return failure_kind::store_failed;
  switch (e.code()) {
    case errc::invalid_argument:
    case errc::unsupported_type:
    case errc::out_of_range:
    case errc::not_finite:
    case errc::ill_formed_text:
    case errc::too_deep:
    case errc::too_large:
      return failure_kind::row_refused;
    case errc::timeout:
    case errc::grammar:
    case errc::missing_object:
    case errc::permission:
      return failure_kind::store_failed;
    default:
      return failure_kind::unknown;
  }
}

/// Calls the store below. Every exception becomes an error.
template <class Operation>
std::optional<error> failure_of(Operation operation) {
  try {
    operation();
    return std::nullopt;
  } catch (const error& e) {
    return e;
  } catch (const std::bad_alloc&) {
    return error(errc::unavailable, "the process is out of memory", {.transient = true});
  } catch (const std::exception& e) {
    return error(errc::internal, e.what());
  } catch (...) {
    return error(errc::internal, "an exception that is not a std::exception");
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
  begin_pass();
  const bool finished = write_new_operations() && retry_suspects();
  end_pass();
  return finished;
}

void batch_writer::begin_pass() {
  const auto now = state_.steady_now();
  const guard lock(state_.mutex);
  pass_ = {.started_at = now, .written_before = state_.pending.written()};
}

void batch_writer::end_pass() {
  const auto now = state_.steady_now();
  const guard lock(state_.mutex);
  const bool wrote = state_.pending.written() > pass_.written_before;
  state_.pending.pause_suspects(now, pass_.failed, wrote);
}

bool batch_writer::write_new_operations() {
  for (std::size_t first = 0; first < batch_.size();) {
    if (!batch_.is_new(first)) {
      ++first;
      continue;
    }
    std::size_t last = first + 1;
    if (batch_[first].action == operation::kind::put) {
      while (last < batch_.size() && batch_[last].action == operation::kind::put &&
             batch_[last].level == batch_[first].level && batch_.is_new(last))
        ++last;
      if (!write_puts(first, last)) return false;
    }
    // Erases, expired puts, and puts that expired while they were written.
    for (; first < last; ++first) {
      if (batch_.is_new(first) && !write_other(first)) return false;
    }
  }
  return true;
}

/// Tries suspects after the new operations, so that their failures do not keep others from being
/// tried. Each pass begins with another one: it ends early if several fail in a row.
bool batch_writer::retry_suspects() {
  if (!state_.pending.suspects_are_due(pass_.started_at)) return true;
  pass_.retries_suspects = true;
  pass_.failures_in_row = 0;
  const std::uint64_t attempt = state_.pending.attempts();
  for (std::size_t n = 0; n < batch_.size(); ++n) {
    const std::size_t i = (attempt + n) % batch_.size();
    if (!batch_.is_suspect(i) || batch_[i].last_attempt == attempt) continue;
    if (pass_.failures_in_row >= max_failures_in_row) break;
    if (batch_[i].action == operation::kind::put && !write_puts(i, i + 1)) return false;
    // Not a put, or one that expired while it was written.
    if (batch_[i].action != operation::kind::put && batch_.is_suspect(i) && !write_other(i))
      return false;
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
  const auto failure = failure_of([&] { state_.next->put(batch_.values(first, last)); });
  if (!failure) {
    pass_.failures_in_row = 0;
    const auto now = state_.options.clock->now();
    const auto steady_now = state_.steady_now();
    const guard lock(state_.mutex);
    state_.pending.mark_written(first, last, now, steady_now);
    return true;
  }
  if (last - first == 1 || kind_of(*failure) == failure_kind::store_failed)
    return handle_failure(first, *failure);
  const std::size_t middle = first + (last - first) / 2;
  return write_puts(first, middle) && write_puts(middle, last);
}

/// Carries out an erase or an expired put.
bool batch_writer::write_other(std::size_t i) {
  if (stopped()) return false;
  const bool expired = batch_[i].action == operation::kind::expired_put;
  const entry& value = batch_.value(i);
  const auto failure = failure_of([&] {
    if (expired) erase_replaced(value);
    else (void)state_.next->erase(place(value), value.key, value.as_of);  // safe to repeat
  });
  if (failure) return handle_failure(i, *failure);
  pass_.failures_in_row = 0;
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

/// Handles the failure of a single operation, or of the store. Returns false if the store is at
/// fault.
bool batch_writer::handle_failure(std::size_t i, const error& reason) {
  switch (kind_of(reason)) {
    case failure_kind::row_refused:
      return give_up(i, reason, given_up::refused);
    case failure_kind::unknown:
      if (is_row_at_fault(i)) return give_up(i, reason, given_up::quarantined);
      if (set_aside(i, reason)) return true;
      break;
    case failure_kind::store_failed:
      break;
  }
  back_off(reason.what());
  return false;
}

/// Returns whether an operation that has failed alone once more is to be quarantined: it has failed
/// often enough, the store answers, and it can be written. The last condition holds if another
/// operation was written since the first failure. If there is no other operation, the failures must
/// have lasted for long.
bool batch_writer::is_row_at_fault(std::size_t i) {
  const auto& item = batch_[i];
  if (item.failures + 1 < state_.options.quarantine_after) return false;
  {
    const auto now = state_.steady_now();
    const guard lock(state_.mutex);
    const bool is_first = item.failures == 0;
    const auto written_before = is_first ? pass_.written_before : item.written_before;
    const bool fails_for_long =
        !is_first && now - item.failing_since >= state_.options.stalled_after;
    if (state_.pending.written() == written_before &&
        !(fails_for_long && state_.pending.is_only_operation(i)))
      return false;
  }
  if (!pass_.store_answers) pass_.store_answers = state_.next->health().available;
  return *pass_.store_answers;
}

/// Makes an operation a suspect. Returns false if the store seems to be at fault.
bool batch_writer::set_aside(std::size_t i, const error& reason) {
  pass_.failed = true;
  ++pass_.failures_in_row;
  {
    const auto limit = std::clamp<std::size_t>(state_.options.max_entries / 2, 1, max_suspects);
    const auto now = state_.steady_now();
    const guard lock(state_.mutex);
    if (batch_[i].failures == 0 && batch_.suspects() >= limit) return false;
    state_.pending.mark_suspect(i, now, pass_.written_before);
  }
  const entry& value = batch_.value(i);
  state_.log.write_limited("write_behind.suspect", log_level::warning,
                           "an operation failed for an unknown reason; it is tried again alone",
                           {{.name = "name", .value = value.name},
                            {.name = "key", .value = value.key},
                            {.name = "problem", .value = reason.what()}});
  return pass_.retries_suspects || pass_.failures_in_row < max_failures_in_row;
}

/// Gives an operation up. If it is a put that has replaced an erase, that erase was promised to its
/// caller and is carried out first. Returns false if the store is at fault.
bool batch_writer::give_up(std::size_t i, const error& reason, given_up cause) {
  if (batch_[i].replaces_erase && batch_[i].action == operation::kind::put) {
    if (const auto failure = failure_of([&] { erase_replaced(batch_.value(i)); })) {
      const auto kind = kind_of(*failure);
      const bool suspect = kind == failure_kind::unknown && !is_row_at_fault(i);
      if (suspect && set_aside(i, *failure)) return true;
      if (suspect || kind == failure_kind::store_failed) {
        back_off(failure->what());
        return false;
      }
    }
  }
  {
    const guard lock(state_.mutex);
    if (cause == given_up::quarantined) state_.pending.mark_quarantined(i);
    else state_.pending.mark_failed(i);
  }
  state_.report_given_up(batch_.value(i), reason, cause);
  return true;
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
