#include "outbox/sql/row_repair.hpp"

#include <utility>

namespace HOLDFAST_NAMESPACE::detail::outbox {

namespace {

std::optional<std::string> queue_of_key(const std::string& key) {
  return key.empty() ? std::nullopt : std::optional(key);
}

/// The state that the other columns of the row tell, if PLACE may be the damaged one.
row_state restored_state(const event_row& row, bool has_entry) {
  using enum row_state;
  const bool was_in_queue = row.queue || (row.key.empty() && row.due);
  switch (row.state) {
    case queued:
      return queued;
    case parked:
      // A parked event has a reason, and is in no queue.
      return was_in_queue && row.last_error.empty() ? queued : parked;
    case blocking:
      if (row.due && row.parked_by == 0 && row.last_error.empty()) return queued;
      return row.key.empty() ? parked : blocking;
    case remembered:
      if (!has_entry) return remembered;
      return row.queue || row.due ? queued : parked;
  }
  if (!has_entry) return remembered;
  if (row.due) return queued;
  if (row.queue) return row.is_head() ? blocking : queued;
  return parked;
}

}  // namespace

bool is_misplaced_row(const event_row& row, bool has_entry) {
  using enum row_state;
  switch (row.state) {
    case queued:
      return row.queue != queue_of_key(row.key);
    case parked:
      return row.queue || row.due;
    case blocking:
      return row.key.empty() || row.queue != row.key || row.due.has_value() != (row.parked_by != 0);
    case remembered:
      return row.queue || row.due || has_entry;
  }
  return true;
}

event_row repaired_row(event_row row, bool has_entry, const std::optional<std::string>& entry_key) {
  using enum row_state;
  row.has_bad_number = false;
  const auto before = row.state;
  row.state = restored_state(row, has_entry);
  if (entry_key) row.key = *entry_key;
  if (before != row.state) row.run_length = row.parked_by = 0;
  switch (row.state) {
    case queued:
      row.queue = queue_of_key(row.key);
      if (before != queued && !row.due) row.due = row.state_time;
      break;
    case blocking:
      row.queue = queue_of_key(row.key);
      if (!row.due) row.parked_by = 0;
      if (row.parked_by == 0) row.due.reset();
      break;
    case parked:
    case remembered:
      row.queue.reset();
      row.due.reset();
      row.token = 0;
      break;
  }
  if (row.state == parked && row.last_error.empty())
    row.last_error = "its row in the outbox was damaged";
  return row;
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
