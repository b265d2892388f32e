#include "store/write_behind/queue_intake.hpp"

#include "store/checks.hpp"
#include "store/write_behind/bounded_wait.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::store {

namespace {

std::size_t total_bytes(std::span<const operation> ops) {
  std::size_t bytes = 0;
  for (const operation& op : ops) bytes += op.bytes;
  return bytes;
}

}  // namespace

void queue_intake::put(std::span<const entry> entries) {
  const auto now = state_.options.clock->now();
  const auto horizon = skew_horizon(now, state_.options.max_skew);
  for (const entry& e : entries) check_entry(e);
  if (entries.size() == 1) {  // the usual case, without an allocation
    if (entries[0].expire_on < now) return;
    operation op = make_put(entries[0]);
    return enqueue({&op, 1}, entries, horizon);
  }
  std::vector<operation> ops;
  ops.reserve(entries.size());
  for (const entry& e : entries) {
    if (e.expire_on >= now) ops.push_back(make_put(e));
  }
  if (!ops.empty()) enqueue(ops, entries, horizon);
}

void queue_intake::enqueue(std::span<operation> ops, std::span<const entry> entries,
                           timestamp horizon) {
  std::vector<entry> dropped;
  guard lock(state_.mutex);
  state_.check_open();
  if (state_.pending.has_room(ops.size(), total_bytes(ops)) ||
      make_room(lock, ops, entries, horizon, dropped) == room::available)
    add_all(lock, ops, horizon);
  if (!dropped.empty()) report_dropped(lock, dropped);
}

/// May release the lock.
void queue_intake::add_all(guard& lock, std::span<operation> ops, timestamp horizon) {
  state_.pending.reserve(ops.size());
  // The clock is read once for all operations between two batches, to keep a put cheap.
  if (!loop_.active()) state_.pending.set_arrival_time(state_.steady_now());
  bool is_new = false;
  for (operation& op : ops) is_new = state_.pending.add(std::move(op), horizon) || is_new;
  if (is_new || !loop_.will_continue()) loop_.activate(lock);
}

queue_intake::room queue_intake::make_room(guard& lock, std::span<const operation> ops,
                                           std::span<const entry> entries, timestamp horizon,
                                           std::vector<entry>& dropped) {
  if (ops.size() > state_.options.max_entries || total_bytes(ops) > state_.options.max_bytes) {
    throw error(errc::too_large, "the put has " + std::to_string(ops.size()) + " entries of " +
                                     std::to_string(total_bytes(ops)) +
                                     " bytes, more than the whole queue holds; put less at once, "
                                     "or raise max_entries and max_bytes");
  }
  if (state_.pending.has_room_for(ops)) return room::available;
  switch (state_.options.full) {
    case when_full::drop_oldest:
      return state_.pending.drop_oldest_for(ops, dropped) ? room::available : room::not_needed;
    case when_full::write_through:
      return write_through(lock, ops, entries, horizon);
    case when_full::block:
      break;
  }
  wait_for_room(lock, ops);
  return room::available;
}

void queue_intake::wait_for_room(guard& lock, std::span<const operation> ops) {
  // Held operations make room first.
  state_.pending.flush_up_to(state_.pending.next_sequence());
  loop_.activate(lock);
  if (!lock.owns_lock()) lock.lock();
  ++state_.puts_waiting;
  const bounded_wait wait(*state_.options.clock, state_.steady_now() + state_.options.block_for);
  const auto is_over = [&] { return state_.closed || state_.pending.has_room_for(ops); };
  while (!is_over() && wait.wait_once(lock, state_.room_available)) {
  }
  const bool in_time = is_over();
  --state_.puts_waiting;
  state_.check_open();
  if (in_time) return;
  state_.pending.count_refused(ops.size());
  throw error(errc::timeout, "the queue is full, and the store below did not make room in time",
              {.transient = true});
}

queue_intake::room queue_intake::write_through(guard& lock, std::span<const operation> ops,
                                               std::span<const entry> entries, timestamp horizon) {
  const bool must_wait = std::ranges::any_of(
      ops, [this](const operation& op) { return state_.pending.must_wait(op); });
  if (must_wait) {
    wait_for_room(lock, ops);
    return room::available;
  }
  state_.pending.begin_write_through(ops);
  lock.unlock();
  state_.next->put(entries);
  lock.lock();
  state_.pending.end_write_through(ops, horizon);
  return room::not_needed;
}

bool queue_intake::erase(const queue_reader& reader, place location, std::string_view key,
                         timestamp as_of) {
  const auto visible = reader.find(location, key, as_of);
  if (!visible || visible->as_of != as_of) {
    const guard lock(state_.mutex);
    state_.check_open();
    return false;
  }
  operation op = make_erase(location, key, as_of);
  std::vector<entry> dropped;
  guard lock(state_.mutex);
  state_.check_open();
  bool has_room = state_.pending.has_room(1, op.bytes);
  if (!has_room && state_.options.full == when_full::drop_oldest) {
    has_room = state_.pending.drop_oldest_for({&op, 1}, dropped);
  } else if (!has_room) {
    // The caller of an erase cannot write through: the result of the erase is already known.
    wait_for_room(lock, {&op, 1});
    has_room = true;
  }
  if (has_room) add_all(lock, {&op, 1}, state_.horizon());
  if (!dropped.empty()) report_dropped(lock, dropped);
  return true;
}

/// Releases the lock.
void queue_intake::report_dropped(guard& lock, std::span<const entry> dropped) const {
  if (lock.owns_lock()) lock.unlock();
  const error reason(errc::unavailable, "the queue was full before the operation was written",
                     {.transient = true});
  for (const entry& e : dropped) state_.report_given_up(e, reason, given_up::dropped);
}

}  // namespace HOLDFAST_NAMESPACE::detail::store
