#include "store/checks.hpp"
#include "store/write_behind_core.hpp"

#include <algorithm>
#include <cassert>
#include <exception>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>

namespace HOLDFAST_NAMESPACE::behind {

namespace {

/// Is it this entry that the store refuses, today and tomorrow? Everything else may pass, or be mended by somebody, and waits.
bool is_poison(const error& e) noexcept {
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

/// Is it this row that cannot be read, today and tomorrow? A store names it then. (A sealed store does so for each that it cannot open.)
bool is_unreadable(const error& e, const entry& row) { return !e.transient() && !e.in_doubt() && e.path() == row.name + "/" + row.key; }

/// A task of the executor. It does not keep the core alive while it waits, and says so when it is thrown away.
class errand {
 public:
  errand(std::weak_ptr<core> of, std::uint64_t timer) : of_(std::move(of)), timer_(timer) {}
  errand(const errand&) = delete;
  errand& operator=(const errand&) = delete;
  ~errand() {
    if (ran_) return;
    if (const auto alive = of_.lock()) alive->task_lost();
  }
  void run() {
    ran_ = true;
    if (const auto alive = of_.lock()) alive->drain(timer_);
  }

 private:
  std::weak_ptr<core> of_;
  std::uint64_t timer_;
  bool ran_ = false;
};

}  // namespace

executor::task core::task(std::uint64_t timer) {
  return [one = std::make_shared<errand>(weak_from_this(), timer)] { one->run(); };
}

void core::task_lost() noexcept {
  const guard lock(mutex_);
  if (!writing_) awake_ = false;
  timer_.reset();  // it may have been one of these
  retry_.reset();
}

/// False: nobody will write until somebody asks again.
bool core::wake() noexcept {
  try {
    if (const auto runs = executor_.lock(); runs && runs->post(task())) return true;
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // As good as refused.
  }
  const guard lock(mutex_);
  if (!writing_) awake_ = false;
  return false;
}

void core::drain(std::uint64_t timer) noexcept {
  guard lock(mutex_);
  // The executor counts delays on a clock of its own: a timer that runs is over, also where our clock says that it is early.
  if (timer_ && timer_->number == timer) timer_.reset();
  if (retry_ && retry_->number == timer) retry_.reset();
  if (writing_ || stopped_) return;
  const auto steady = options_.clock->steady();
  if (timer_ && timer_->when <= steady) timer_.reset();
  if (retry_ && retry_->when <= steady) retry_.reset();
  if (steady < not_before_) return go_on(lock);
  writing_ = true;
  awake_ = true;
  bool done = false;
  try {
    if (flights_.empty() && !take(steady)) {
      writing_ = false;
      return go_on(lock);
    }
    ++numbers_.batches;
    if (tries_ > 0) ++numbers_.retried;
    lock.unlock();
    if (tries_ == 0) arrange();
    done = write_flight();
  } catch (const std::exception& e) {
    if (lock.owns_lock()) lock.unlock();
    back_off(e.what());  // no memory, or a store that throws what is no holdfast::error
  } catch (...) {
    if (lock.owns_lock()) lock.unlock();
    back_off("an exception that is no std::exception");
  }
  if (!lock.owns_lock()) lock.lock();
  if (done) retire(lock);
  writing_ = false;
  go_on(lock);
  publish();
}

/// All that is queued, up to a batch. Under the lock.
bool core::take(time now) {
  const auto horizon = skew_horizon(options_.clock->now(), options_.max_skew);
  since_ = now;
  // A put of a key that is held may bring that one along.
  const std::size_t most = std::min(options_.batch_entries + 1, log_.live() + held_.size());
  flights_.reserve(most);
  entries_.reserve(most);
  const auto room_left = [this] { return flights_.size() < options_.batch_entries && flying_bytes_ < options_.batch_bytes; };
  bool released = false;
  while (room_left()) {
    const operation* const ripe = held_.ripe(flush_target_, now);
    if (ripe == nullptr) break;
    append(held_.take(*ripe), true, false);
    released = true;
  }
  operation one;
  while (room_left() && log_.pop(one)) {
    if (const operation* const held = held_.find(one.hash, place(one.what), one.what.key)) {
      if (one.does == kind::put && replaces(one.what, held->what, horizon)) {
        (void)held_.take(*held);
        ++numbers_.skipped;
      } else if (one.does == kind::put) {
        ++numbers_.coalesced;
        continue;
      } else {
        append(held_.take(*held), true, false);
        released = true;
      }
    }
    const bool look_back = released || one.earlier != 0;
    append(std::move(one), false, look_back);
  }
  return !flights_.empty();
}

void core::append(operation&& one, bool released, bool look_back) {
  flight added{.does = one.does,
               .released = released,
               .clears = one.clears,
               .sequence = one.sequence,
               .hash = one.hash,
               .bytes = one.bytes,
               .since = one.since};
  for (std::size_t i = flights_.size(); look_back && i-- > 0;) {
    if (flights_[i].hash != one.hash || !is_about(entries_[i], place(one.what), one.what.key)) continue;
    flights_[i].followed = true;
    added.level = flights_[i].level + 1;
    break;
  }
  flying_bytes_ += one.bytes;
  ++flying_;
  flights_.push_back(added);
  entries_.push_back(std::move(one.what));
}

/// Puts aside what need not be written yet, and brings the rest into the order in which it is written.
void core::arrange() {
  if (options_.refresh_after.count() > 0) {
    for (std::size_t i = 0; i < flights_.size(); ++i) {
      if (flights_[i].does == kind::put) flights_[i].digest = digest_of(entries_[i]);
    }
  }
  const auto now = options_.clock->now();
  const auto steady = options_.clock->steady();
  const guard lock(mutex_);
  bool in_order = true;
  for (std::size_t i = 0; i < flights_.size(); ++i) {
    flight& each = flights_[i];
    if (each.does == kind::put && entries_[i].expire_on < now) each.does = kind::lapse;
    else if (may_hold(i, now, steady)) hold(i, last_written_.find(each.hash)->when + options_.refresh_after);
    in_order = in_order && each.does == kind::put && each.level == 0;
  }
  if (!in_order) reorder();
}

bool core::may_hold(std::size_t at, timestamp now, time steady) const noexcept {
  const flight& one = flights_[at];
  if (one.does != kind::put || one.level > 0 || one.followed || one.released || one.clears || one.sequence < flush_target_ || closed_)
    return false;
  const auto* const there = last_written_.find(one.hash);
  if (there == nullptr || there->digest != one.digest || there->when + options_.refresh_after <= steady) return false;
  if (held_.size() >= options_.max_held || held_.bytes() >= options_.max_bytes / 4) return false;
  // Neither what is stored nor what waits expires before it is written again.
  const auto enough = now + 2 * std::chrono::microseconds(options_.refresh_after);
  return there->expire_on >= enough && entries_[at].expire_on >= enough;
}

void core::hold(std::size_t at, time due) {
  flight& one = flights_[at];
  operation made{.does = kind::put, .sequence = one.sequence, .hash = one.hash, .bytes = one.bytes, .since = one.since};
  made.what = std::move(entries_[at]);
  try {
    held_.add(std::move(made), due);
  } catch (const std::bad_alloc&) {
    entries_[at] = std::move(made.what);
    return;
  }
  one.does = kind::none;
  one.done = true;
  --flying_;
  flying_bytes_ -= one.bytes;
}

/// By level, puts before the others: few statements, and the order of each key stays. Under the lock.
void core::reorder() {
  std::vector<std::size_t> order(flights_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::erase_if(order, [this](std::size_t i) { return flights_[i].does == kind::none; });
  const auto rank = [this](std::size_t i) { return std::tuple(flights_[i].level, flights_[i].does != kind::put, i); };
  std::sort(order.begin(), order.end(), [&rank](std::size_t a, std::size_t b) { return rank(a) < rank(b); });
  std::vector<flight> flights;
  std::vector<entry> entries;
  flights.reserve(flights_.capacity());
  entries.reserve(entries_.capacity());
  for (const std::size_t i : order) {
    flights.push_back(flights_[i]);
    entries.push_back(std::move(entries_[i]));
  }
  flights_.swap(flights);
  entries_.swap(entries);
}

/// False: there was a failure that may pass; what is not done is tried again later.
bool core::write_flight() {
  for (std::size_t first = 0; first < flights_.size();) {
    const flight& one = flights_[first];
    std::size_t last = first + 1;
    if (!one.done && one.does == kind::put) {
      while (last < flights_.size() && !flights_[last].done && flights_[last].does == kind::put && flights_[last].level == one.level)
        ++last;
      if (!write_run(first, last)) return false;
    }
    // Also what turned out to have expired while it was written.
    for (; first < last; ++first) {
      if (!flights_[first].done && !carry_out(first)) return false;
    }
  }
  return true;
}

/// After close() returned nothing is begun any more: what is left of a batch counts as unsaved.
bool core::stopped() const {
  const guard lock(mutex_);
  return stopped_;
}

/// Writes some puts at once. When an entry among them is refused for good, halves find it.
bool core::write_run(std::size_t first, std::size_t last) {
  if (stopped()) return false;
  try {
    next_->put(std::span(entries_).subspan(first, last - first));
    written(first, last);
    return true;
  } catch (const error& e) {
    if (!is_poison(e)) {
      back_off(e.what());
      return false;
    }
    if (last - first == 1) return give_up(first, e);
  }
  const std::size_t middle = first + (last - first) / 2;
  return write_run(first, middle) && write_run(middle, last);
}

/// A put that is refused for good. An erase that it had taken the place of was promised, and is carried out.
bool core::give_up(std::size_t at, const error& why) {
  if (flights_[at].clears) {
    try {
      lapse(entries_[at]);
    } catch (const error& e) {
      if (!is_poison(e)) {
        back_off(e.what());
        return false;
      }
    }
  }
  fail(at, why);
  return true;
}

void core::written(std::size_t first, std::size_t last) {
  const auto now = options_.clock->now();
  const auto steady = options_.clock->steady();
  const guard lock(mutex_);
  for (std::size_t i = first; i < last; ++i) {
    flight& each = flights_[i];
    if (entries_[i].expire_on < now) {
      each.does = kind::lapse;  // perhaps before the store looked at its clock
      continue;
    }
    each.done = true;
    --flying_;
    ++numbers_.written;
    last_written_.note({.hash = each.hash,
                        .digest = each.digest,
                        .as_of = entries_[i].as_of,
                        .expire_on = entries_[i].expire_on,
                        .when = steady,
                        .there = true,
                        .used = true});
  }
}

bool core::carry_out(std::size_t at) {
  if (stopped()) return false;
  flight& one = flights_[at];
  const entry& what = entries_[at];
  try {
    if (one.does == kind::lapse) lapse(what);
    else (void)next_->erase(place(what), what.key, what.as_of);  // safe to repeat: it names a version
  } catch (const error& e) {
    if (is_poison(e)) {
      fail(at, e);
      return true;
    }
    back_off(e.what());
    return false;
  }
  const guard lock(mutex_);
  one.done = true;
  --flying_;
  if (one.does == kind::lapse) {
    ++numbers_.skipped;
    ++numbers_.expired;
    supersede(one, what);
  } else {
    ++numbers_.written;
    ++erased_;
  }
  last_written_.doubt(one.hash, what.as_of);
  return true;
}

/// What expired while it waited is not written. Had it been written in time, what is older would be gone: so that goes.
void core::lapse(const entry& what) {
  std::optional<entry> there;
  try {
    there = next_->find(place(what), what.key);
  } catch (const error& e) {
    // Nobody can read what is there, so nobody is given it; and all that is queued must not wait for somebody to mend one row.
    if (is_unreadable(e, what)) return;
    throw;
  }
  const auto horizon = skew_horizon(options_.clock->now(), options_.max_skew);
  if (there && *there != what && replaces(what, *there, horizon)) (void)next_->erase(place(what), what.key, there->as_of);
}

/// An older one that was queued meanwhile must not get in, only because what expired is not there to refuse it. Under the lock.
void core::supersede(const flight& one, const entry& what) noexcept {
  if (one.followed) return;  // by an erase, which lets it in
  operation* first = log_.latest(one.hash, place(what), what.key);
  if (first == nullptr) return;
  while (operation* const before = log_.at(first->earlier)) first = before;
  if (first->does != kind::put || first->what.as_of >= what.as_of) return;
  log_.kill(*first);
  ++numbers_.coalesced;
}

void core::fail(std::size_t at, const error& why) noexcept {
  {
    const guard lock(mutex_);
    flight& one = flights_[at];
    one.does = kind::none;  // reads must not see what will never be stored
    one.done = true;
    --flying_;
    ++numbers_.failed;
    ++unreported_failed_;
    last_written_.doubt(one.hash, entries_[at].as_of);
  }
  const entry& what = entries_[at];
  log_to_.write_limited(
      "write_behind.failed", log_level::error, "the store refused an entry for good; it is not stored",
      {{.name = "name", .value = what.name}, {.name = "key", .value = what.key}, {.name = "problem", .value = why.what()}});
  if (!options_.on_failed) return;
  try {
    options_.on_failed(what, why);
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // A listener never disturbs the writer.
  }
}

void core::back_off(const char* why) noexcept {
  {
    const guard lock(mutex_);
    constexpr unsigned most_doublings = 20;
    const auto steady = options_.clock->steady();
    const auto longest = std::chrono::microseconds(options_.retry_longest);
    const int doubled = 1 << std::min(tries_, most_doublings);
    const auto first = std::chrono::microseconds(options_.retry_first);
    auto pause = first >= longest / doubled ? longest : first * doubled;
    // Between half of it and all: many writers that failed together do not come back together.
    pause = pause / 2 + std::chrono::microseconds(std::uniform_int_distribution<std::int64_t>(0, pause.count() / 2)(random_));
    ++tries_;
    not_before_ = steady + pause;
    if (!failing_since_) failing_since_ = steady;
  }
  log_to_.write_limited("write_behind.later", log_level::warning, "the store cannot be written; what is queued waits in memory",
                        {{.name = "problem", .value = why}});
}

void core::retire(guard& lock) noexcept {
  assert(flying_ == 0);
  flights_.clear();
  entries_.swap(spent_);
  flying_bytes_ = 0;
  tries_ = 0;
  failing_since_.reset();
  not_before_ = time::min();
  if (waiting_for_room_ > 0) room_.notify_all();
  if (flushing_ > 0) saved_.notify_all();
  // Thousands of strings are freed without keeping anybody waiting.
  lock.unlock();
  spent_.clear();
  lock.lock();
}

/// Sees to it that somebody writes what is left. Gives up the lock.
void core::go_on(guard& lock) noexcept {
  if (stopped_) {
    awake_ = false;
    saved_.notify_all();
    return lock.unlock();
  }
  const auto steady = options_.clock->steady();
  const bool pausing = not_before_ > steady;
  const bool busy = !flights_.empty() || log_.front() != nullptr || held_.ripe(flush_target_, steady) != nullptr;
  std::optional<armed_timer> next;
  // One timer is enough, if it is not too late: it looks again, and arms another. Each flush of a store that fails would leave one otherwise.
  // One that is over may have met a writer at work, and done nothing.
  const auto armed = [steady](const std::optional<armed_timer>& timer, time by) {
    return timer && timer->when > steady && timer->when <= by;
  };
  const auto timer_at = [this](time when) { return armed_timer{.when = when, .number = ++timers_armed_}; };
  if (pausing && !armed(retry_, not_before_)) retry_ = next = timer_at(not_before_);
  else if (!pausing && !busy && !held_.empty() && !armed(timer_, held_.next_due())) timer_ = next = timer_at(held_.next_due());
  awake_ = busy;
  lock.unlock();
  if (busy && !pausing) {
    wake();
    return;
  }
  if (!next) return;
  bool posted = false;
  try {
    if (const auto runs = executor_.lock()) posted = runs->post_after(next->when - steady, task(next->number));
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // As good as refused: the next put or flush asks again.
  }
  if (posted) return;
  lock.lock();
  if (!writing_) awake_ = false;
  timer_.reset();
  retry_.reset();
  lock.unlock();
}

}  // namespace HOLDFAST_NAMESPACE::behind
