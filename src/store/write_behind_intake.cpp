#include "base/deadline.hpp"
#include "base/thread.hpp"
#include "store/checks.hpp"
#include "store/write_behind_core.hpp"

#include <algorithm>
#include <cassert>
#include <exception>
#include <string>
#include <utility>

namespace HOLDFAST_NAMESPACE::behind {

namespace {

/// A wait looks at the clock this often: a test's clock moves without waking anybody.
constexpr std::chrono::milliseconds longest_look{50};

std::size_t total_bytes(std::span<const operation> ones) {
  std::size_t bytes = 0;
  for (const operation& each : ones) bytes += each.bytes;
  return bytes;
}

}  // namespace

bool core::replaces(const entry& newer, const entry& there, timestamp horizon) const noexcept {
  return newer.as_of >= there.as_of || there.as_of > horizon;
}

bool core::reads_in_flight() const noexcept { return true; }

void core::check_open() const {
  if (closed_) throw error(errc::unavailable, "the write-behind store is closed; nothing can be written any more");
}

operation core::made(const entry& from) const {
  operation one{.what = from, .does = kind::put};
  if (one.what.tombstone()) one.what.payload_class.clear();
  one.hash = hash_of(place(from), from.key);
  one.bytes = bytes_of(one.what);
  return one;
}

void core::put(std::span<const entry> given) {
  const auto now = options_.clock->now();
  const auto horizon = skew_horizon(now, options_.max_skew);
  for (const entry& each : given) check_entry(each);
  if (given.size() == 1) {
    if (given[0].expire_on < now) return;
    operation one = made(given[0]);
    return put_all({&one, 1}, given, horizon);
  }
  std::vector<operation> ones;
  ones.reserve(given.size());
  for (const entry& each : given) {
    if (each.expire_on >= now) ones.push_back(made(each));
  }
  if (!ones.empty()) put_all(ones, given, horizon);
}

void core::put_all(std::span<operation> ones, std::span<const entry> given, timestamp horizon) {
  guard lock(mutex_);
  check_open();
  if (!fits(ones.size(), total_bytes(ones)) && make_room(lock, ones, given, horizon) == room::not_needed) return;
  log_.reserve(ones.size());
  stamp();
  for (operation& each : ones) enqueue(std::move(each), horizon);
  if (std::exchange(awake_, true)) return;
  lock.unlock();
  wake();
}

/// One look at the clock for all that is queued between two batches: a put must not pay for two.
void core::stamp() {
  if (!awake_) since_ = options_.clock->steady();
}

void core::enqueue(operation&& one, timestamp horizon) {
  operation* const last = log_.latest(one.hash, place(one.what), one.what.key);
  if (last != nullptr && merge(*last, one, horizon)) {
    ++numbers_.coalesced;
  } else {
    one.since = since_;
    log_.push(std::move(one), last);
  }
  ++numbers_.queued;
}

/// Makes one operation of two where the store would come to the same in the end; one of them is not needed any more.
bool core::merge(operation& last, operation& one, timestamp horizon) noexcept {
  if (one.does == kind::erase) {
    if (last.does == kind::erase) return last.what.as_of == one.what.as_of;
    // When a newer version is written first there is nothing left to erase.
    return last.what.as_of > one.what.as_of && last.what.as_of <= horizon;
  }
  if (last.does == kind::put) {
    if (!replaces(one.what, last.what, horizon)) return true;
    // What is replaced is destroyed by the caller, outside the lock.
    std::swap(last.what, one.what);
    log_.resized(last);
    return true;
  }
  // An erase is not needed before a put that is not older: it replaces the version that was to be erased. But an older one only gets in
  // because of the erase.
  if (one.what.as_of < last.what.as_of) return false;
  std::swap(last.what, one.what);
  last.does = kind::put;
  last.clears = true;
  log_.resized(last);
  while (operation* const before = log_.at(last.earlier)) {
    if (before->does == kind::erase ? before->what.as_of > last.what.as_of : !replaces(last.what, before->what, horizon)) break;
    last.earlier = before->earlier;
    log_.kill(*before);
    ++numbers_.coalesced;
  }
  return true;
}

bool core::would_merge(const operation& one) noexcept {
  const operation* const last = log_.latest(one.hash, place(one.what), one.what.key);
  if (last == nullptr || one.does == kind::erase) return false;
  return last->does == kind::put || one.what.as_of >= last->what.as_of;
}

bool core::fits(std::size_t places, std::size_t bytes) const noexcept {
  return log_.places() + flying_ + held_.size() + places <= options_.max_entries &&
         log_.bytes() + flying_bytes_ + held_.bytes() + bytes <= options_.max_bytes;
}

/// The same, seen more closely: what takes the place of another needs none.
bool core::fit(std::span<const operation> ones) noexcept {
  std::size_t places = 0;
  std::size_t bytes = 0;
  for (const operation& each : ones) {
    bytes += each.bytes;
    if (would_merge(each)) {
      bytes -= std::min(bytes, log_.latest(each.hash, place(each.what), each.what.key)->bytes);
    } else {
      ++places;
    }
  }
  return fits(places, bytes);
}

core::room core::make_room(guard& lock, std::span<operation> ones, std::span<const entry> given, timestamp horizon) {
  if (ones.size() > options_.max_entries || total_bytes(ones) > options_.max_bytes) {
    throw error(errc::too_large, "the put has " + std::to_string(ones.size()) + " entries of " + std::to_string(total_bytes(ones)) +
                                     " bytes, more than the whole queue holds; put less at once, or raise max_entries and max_bytes");
  }
  if (fit(ones)) return room::made;
  switch (options_.full) {
    case when_full::drop_oldest:
      return drop_oldest(ones);
    case when_full::write_through:
      return write_through(lock, ones, given, horizon);
    case when_full::block:
      break;
  }
  wait_for_room(lock, ones);
  return room::made;
}

void core::wait_for_room(guard& lock, std::span<const operation> ones) {
  // What is held only waits to be replaced: it makes room first.
  flush_target_ = std::max(flush_target_, log_.next_sequence());
  if (!std::exchange(awake_, true)) {
    lock.unlock();
    wake();
    lock.lock();
  }
  ++waiting_for_room_;
  const bool in_time = wait(lock, room_, deadline_after(options_.block_for), [&] { return closed_ || fit(ones); });
  --waiting_for_room_;
  check_open();
  if (in_time) return;
  numbers_.refused += ones.size();
  throw error(errc::timeout, "the queue is full, and the store below did not make room in time", {.transient = true});
}

core::room core::drop_oldest(std::span<const operation> ones) noexcept {
  std::uint64_t dropped = 0;
  room result = room::made;
  // A caller may have read it here: an older one that is queued later must not be served in its place.
  const auto drop = [&](const operation& one) {
    last_written_.doubt(one.hash, one.what.as_of);
    ++dropped;
  };
  operation oldest;
  while (!fit(ones)) {
    if (!held_.empty()) {
      oldest = held_.take(*held_.ripe(log_.next_sequence(), time::min()));
      drop(oldest);
    } else if (log_.pop(oldest)) {
      drop(oldest);
    } else {
      // All room is taken by what is in flight: the oldest that can be dropped is what was to be added.
      numbers_.queued += ones.size();
      for (const operation& each : ones) drop(each);
      result = room::not_needed;
      break;
    }
  }
  numbers_.dropped += dropped;
  unreported_dropped_ += dropped;
  return result;
}

/// Must an operation of this key wait for another, because only their order makes the result right?
bool core::pending_elsewhere(const operation& one) noexcept {
  if (log_.latest(one.hash, place(one.what), one.what.key) != nullptr) return true;
  for (std::size_t i = 0; i < flights_.size(); ++i) {
    if (flights_[i].hash == one.hash && !flights_[i].done && is_about(entries_[i], place(one.what), one.what.key)) return true;
  }
  return false;
}

core::room core::write_through(guard& lock, std::span<const operation> ones, std::span<const entry> given, timestamp horizon) {
  if (std::any_of(ones.begin(), ones.end(), [this](const operation& each) { return pending_elsewhere(each); })) {
    wait_for_room(lock, ones);
    return room::made;
  }
  for (const operation& each : ones) last_written_.doubt(each.hash, each.what.as_of);
  lock.unlock();
  next_->put(given);
  lock.lock();
  numbers_.written_through += ones.size();
  for (const operation& each : ones) {
    const operation* const held = held_.find(each.hash, place(each.what), each.what.key);
    if (held == nullptr || !replaces(each.what, held->what, horizon)) continue;
    (void)held_.take(*held);
    ++numbers_.skipped;
  }
  return room::not_needed;
}

core::pending_changes core::pending_of(place where, std::string_view key) {
  pending_changes result;
  auto& changes = result.changes;
  const auto hash = hash_of(where, key);
  const guard lock(mutex_);
  if (const operation* const held = held_.find(hash, where, key)) changes.push_back({.does = held->does, .what = held->what});
  if (reads_in_flight()) {
    for (std::size_t i = 0; i < flights_.size(); ++i) {
      const flight& each = flights_[i];
      // What is done is in the store already; to apply a put again after the erase that followed it would bring it back.
      if (each.hash != hash || each.done || !is_about(entries_[i], where, key)) continue;
      changes.push_back({.does = each.does, .what = entries_[i]});
    }
  }
  const auto queued = static_cast<std::ptrdiff_t>(changes.size());
  for (const operation* each = log_.latest(hash, where, key); each != nullptr; each = log_.at(each->earlier)) {
    changes.push_back({.does = each->does, .what = each->what});
  }
  std::reverse(changes.begin() + queued, changes.end());
  result.has_erase = std::any_of(changes.begin(), changes.end(), [](const change& each) { return each.does == kind::erase; });
  result.erased = erased_;
  return result;
}

void core::apply(const change& one, std::optional<entry>& there, timestamp horizon) const {
  if (one.does == kind::erase) {
    if (there && there->as_of == one.what.as_of) there.reset();
  } else if (!there || replaces(one.what, *there, horizon)) {
    there = one.what;
  }
}

std::optional<entry> core::find(place where, std::string_view key) { return look(where, key, std::nullopt); }

/// What is visible. When the store cannot be asked: what waits here, if it is the version that is wanted, or any will do.
std::optional<entry> core::look(place where, std::string_view key, std::optional<timestamp> wanted) {
  check_name(where.name);
  check_key(key);
  // First what is pending, then the store: what is written in between is seen twice, which changes nothing; the other way round it could
  // be missed. Only an erase that is carried out in between would be seen too late: then we look again.
  for (int left = 10;; --left) {
    const auto pending = pending_of(where, key);
    std::optional<entry> result;
    std::exception_ptr failure;
    try {
      result = next_->find(where, key);
    } catch (const error&) {
      failure = std::current_exception();
    }
    if (pending.changes.empty() && failure) std::rethrow_exception(failure);
    const auto horizon = skew_horizon(options_.clock->now(), options_.max_skew);
    // A caller that was given a version must not be given an older one from the queue afterwards, when the store cannot be asked.
    const auto read_version = result && result->as_of <= horizon ? std::optional(result->as_of) : std::nullopt;
    for (const change& each : pending.changes) apply(each, result, horizon);
    const guard lock(mutex_);
    if (read_version) last_written_.note_seen(hash_of(where, key), *read_version);
    if (left > 0 && pending.has_erase && pending.erased != erased_) continue;
    // An answer that waits here is the newest that can be had when the store cannot be asked; unless we wrote or read a newer one before.
    if (failure && (!result || !last_written_.none_newer(hash_of(where, key), result->as_of) || (wanted && result->as_of != *wanted))) {
      std::rethrow_exception(failure);
    }
    return result;
  }
}

bool core::erase(place where, std::string_view key, timestamp as_of) {
  const auto visible = look(where, key, as_of);
  if (!visible || visible->as_of != as_of) {
    const guard lock(mutex_);
    check_open();
    return false;
  }
  operation one{.does = kind::erase};
  one.what.name = where.name;
  one.what.key = key;
  one.what.realm = where.realm;
  one.what.as_of = as_of;
  one.what.expire_on = as_of;
  one.hash = hash_of(where, key);
  one.bytes = bytes_of(one.what);
  guard lock(mutex_);
  check_open();
  if (!fits(1, one.bytes)) {
    if (options_.full != when_full::drop_oldest) wait_for_room(lock, {&one, 1});
    else if (drop_oldest({&one, 1}) == room::not_needed) return true;
  }
  log_.reserve(1);
  stamp();
  enqueue(std::move(one), skew_horizon(options_.clock->now(), options_.max_skew));
  if (std::exchange(awake_, true)) return true;
  lock.unlock();
  wake();
  return true;
}

core::time_limit core::limit_of(time deadline) const noexcept {
  return {.deadline = deadline,
          .machine_deadline = moment_after(std::chrono::steady_clock::now(), time_until(deadline, options_.clock->steady()))};
}

/// Returns false when the time is over.
bool core::wait_a_little(guard& lock, std::condition_variable& on, const time_limit& limit) {
  const auto left = time_until(limit.deadline, options_.clock->steady());
  if (left == time::duration::zero() || std::chrono::steady_clock::now() >= limit.machine_deadline) return false;
  on.wait_for(lock, std::min<std::chrono::nanoseconds>(left, longest_look));
  return true;
}

template <class Condition>
bool core::wait(guard& lock, std::condition_variable& on, time deadline, Condition condition) {
  const auto limit = limit_of(deadline);
  while (!condition()) {
    if (!wait_a_little(lock, on, limit)) return false;
  }
  return true;
}

bool core::saved(std::uint64_t before) const noexcept {
  const operation* const first = log_.front();
  if (first != nullptr && first->sequence < before) return false;
  if (!held_.empty() && held_.first() < before) return false;
  return std::none_of(flights_.begin(), flights_.end(), [before](const flight& each) { return !each.done && each.sequence < before; });
}

/// Nobody runs our tasks: then a thread of our own writes. Not the caller's, since a store that hangs would keep him beyond his deadline; so
/// nobody waits for its end, either. It keeps us alive meanwhile. After a failure it ends, and whoever still waits starts another.
void core::drain_apart(time deadline) {
  auto write = [self = shared_from_this(), deadline] {
    for (;;) {
      self->drain();
      const guard look(self->mutex_);
      const auto now = self->options_.clock->steady();
      if (now < deadline && !self->saved(self->flush_target_) && !self->stopped_ && !self->writing_ && self->not_before_ <= now) continue;
      self->apart_ = false;
      return;
    }
  };
  try {
    start_quiet_thread("write-behind", write).detach();
  } catch (const std::exception&) {
    write();  // no thread to be had: late is better than lost
  }
}

/// Unless somebody writes, or will when the pause after a failure is over.
void core::see_to_a_writer(guard& lock, time deadline) {
  if (awake_ || writing_ || apart_ || not_before_ > options_.clock->steady()) return;
  awake_ = true;
  lock.unlock();
  const bool runs = wake();
  lock.lock();
  if (runs || std::exchange(apart_, true)) return;
  lock.unlock();
  drain_apart(deadline);
  lock.lock();
}

bool core::settle(guard& lock, std::uint64_t before, time deadline) {
  flush_target_ = std::max(flush_target_, before);
  if (saved(before)) return true;
  // When it was closed nothing is written any more, but what is on its way: who asks then does not wait for nothing.
  const auto over = [&] { return saved(before) || (stopped_ && !writing_); };
  if (over()) return false;
  ++flushing_;
  // Whoever asks wants to know now: no pause after the last failure.
  if (!writing_ && not_before_ > options_.clock->steady()) {
    not_before_ = time::min();
    awake_ = false;
  }
  // Looked at again and again: where tasks are refused, nobody comes by himself for the next batch, or after a pause.
  const auto limit = limit_of(deadline);
  do see_to_a_writer(lock, deadline);
  while (!over() && wait_a_little(lock, saved_, limit));
  --flushing_;
  return saved(before);
}

write_behind_report core::settle_and_report(guard& lock, time deadline) {
  const auto before = log_.next_sequence();
  const auto written = numbers_.written;
  settle(lock, before, deadline);
  write_behind_report report;
  report.written = numbers_.written - written;
  report.unsaved = log_.before(before) + held_.before(before);
  report.in_flight = static_cast<std::uint64_t>(
      std::count_if(flights_.begin(), flights_.end(), [before](const flight& each) { return !each.done && each.sequence < before; }));
  report.failed = std::exchange(unreported_failed_, 0);
  report.dropped = std::exchange(unreported_dropped_, 0);
  return report;
}

write_behind_report core::flush(time deadline) {
  guard lock(mutex_);
  const auto report = settle_and_report(lock, deadline);
  lock.unlock();
  publish();
  return report;
}

write_behind_report core::close(time deadline) {
  guard lock(mutex_);
  closed_ = true;
  room_.notify_all();
  const auto report = settle_and_report(lock, deadline);
  stopped_ = true;
  lock.unlock();
  publish();
  return report;
}

void core::flush_for_scan() {
  guard lock(mutex_);
  if (settle(lock, log_.next_sequence(), deadline_after(options_.scan_flush))) return;
  throw error(errc::timeout, "what is queued could not be written in time, so what is stored cannot be listed or counted",
              {.transient = true});
}

write_behind_numbers core::numbers_now() const {
  auto result = numbers_;
  result.held = held_.size();
  result.pending = log_.live() + flying_ + held_.size();
  result.pending_bytes = log_.bytes() + flying_bytes_ + held_.bytes();
  const auto now = options_.clock->steady();
  auto oldest = now;
  if (const operation* const first = log_.front()) oldest = std::min(oldest, first->since);
  for (const flight& each : flights_) {
    if (!each.done) oldest = std::min(oldest, each.since);
  }
  result.oldest = std::chrono::duration_cast<std::chrono::microseconds>(now - oldest);
  result.stalled = failing_since_ && now - *failing_since_ >= options_.stalled_after;
  assert(result.queued == result.coalesced + result.written + result.skipped + result.dropped + result.failed + result.pending);
  return result;
}

write_behind_numbers core::numbers() const {
  const guard lock(mutex_);
  return numbers_now();
}

}  // namespace HOLDFAST_NAMESPACE::behind
