#include "store/write_behind/writer_loop.hpp"

#include "base/thread.hpp"
#include "store/write_behind/bounded_wait.hpp"

#include <exception>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::store {

namespace {

/// A task of the executor. It does not keep the loop alive while it waits, and tells it if it is
/// destroyed without having run.
class write_task {
 public:
  write_task(std::weak_ptr<writer_loop> loop, std::uint64_t timer)
      : loop_(std::move(loop)), timer_(timer) {}
  write_task(const write_task&) = delete;
  write_task& operator=(const write_task&) = delete;
  ~write_task() {
    if (ran_) return;
    if (const auto loop = loop_.lock()) loop->task_lost();
  }
  void run() {
    ran_ = true;
    if (const auto loop = loop_.lock()) loop->write_next_batch(timer_);
  }

 private:
  std::weak_ptr<writer_loop> loop_;
  std::uint64_t timer_;
  bool ran_ = false;
};

}  // namespace

writer_loop::writer_loop(std::shared_ptr<holdfast::store> next, write_behind_options options,
                         std::shared_ptr<const queue_rules> rules,
                         std::weak_ptr<executor> runs_tasks)
    : state_(std::move(next), std::move(options), std::move(rules)),
      writer_(state_),
      metrics_(state_.options.metrics),
      executor_(std::move(runs_tasks)) {}

executor::task writer_loop::make_task(std::uint64_t timer) {
  return [task = std::make_shared<write_task>(weak_from_this(), timer)] { task->run(); };
}

void writer_loop::task_lost() noexcept {
  const guard lock(state_.mutex);
  if (!writing_) active_ = false;
  held_timer_.reset();  // the lost task may have been one of these
  retry_timer_.reset();
}

void writer_loop::activate(guard& lock) noexcept {
  if (std::exchange(active_, true)) return;
  lock.unlock();
  post_task();
}

/// Returns false if the executor refuses the task. Then nothing is written until the next request.
bool writer_loop::post_task() noexcept {
  try {
    if (const auto runs = executor_.lock(); runs && runs->post(make_task())) return true;
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // Equivalent to a refusal.
  }
  const guard lock(state_.mutex);
  if (!writing_) active_ = false;
  return false;
}

void writer_loop::write_next_batch(std::uint64_t timer) noexcept {
  guard lock(state_.mutex);
  // The executor measures delays with its own clock. A timer that runs has ended, even if it is
  // early by our clock.
  if (held_timer_ && held_timer_->number == timer) held_timer_.reset();
  if (retry_timer_ && retry_timer_->number == timer) retry_timer_.reset();
  if (writing_ || state_.stopped) return;
  const auto now = state_.steady_now();
  if (held_timer_ && held_timer_->when <= now) held_timer_.reset();
  if (retry_timer_ && retry_timer_->when <= now) retry_timer_.reset();
  if (now < state_.retry.not_before()) return schedule_next(lock);
  writing_ = true;
  active_ = true;
  bool finished = false;
  try {
    const bool retry = state_.retry.failures() > 0 && !state_.pending.batch().empty();
    if (!retry && !state_.pending.fill_batch(now)) {
      writing_ = false;
      return schedule_next(lock);
    }
    state_.writing_since = now;
    state_.pending.count_attempt(retry);
    lock.unlock();
    if (!retry) writer_.prepare();
    finished = writer_.write();
  } catch (const std::exception& e) {
    if (lock.owns_lock()) lock.unlock();
    writer_.back_off(e.what());  // out of memory, or not a holdfast::error
  } catch (...) {
    if (lock.owns_lock()) lock.unlock();
    writer_.back_off("an exception that is not a std::exception");
  }
  if (!lock.owns_lock()) lock.lock();
  state_.writing_since.reset();
  if (finished) finish_batch(lock);
  writing_ = false;
  schedule_next(lock);
  publish();
}

void writer_loop::finish_batch(guard& lock) noexcept {
  state_.pending.batch().remove_finished();
  state_.retry.reset();
  if (state_.puts_waiting > 0) state_.room_available.notify_all();
  if (state_.flushes_waiting > 0) state_.batch_finished.notify_all();
  // Frees thousands of strings outside the lock.
  lock.unlock();
  state_.pending.batch().free_entries();
  lock.lock();
}

/// Posts a task or sets a timer for the remaining operations. Releases the lock.
void writer_loop::schedule_next(guard& lock) noexcept {
  if (state_.stopped) {
    active_ = false;
    state_.batch_finished.notify_all();
    return lock.unlock();
  }
  const auto now = state_.steady_now();
  const bool busy = state_.pending.is_ready(now);
  const bool pausing = state_.retry.not_before() > now;
  const auto timer = next_timer(now, busy);
  active_ = busy;
  lock.unlock();
  if (busy && !pausing) {
    post_task();
    return;
  }
  if (!timer) return;
  bool posted = false;
  try {
    if (const auto runs = executor_.lock())
      posted = runs->post_after(timer->when - now, make_task(timer->number));
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // Equivalent to a refusal: the next put or flush posts again.
  }
  if (posted) return;
  lock.lock();
  if (!writing_) active_ = false;
  held_timer_.reset();
  retry_timer_.reset();
  lock.unlock();
}

/// Returns the timer to set, or nothing if an armed timer is early enough. Without that check each
/// flush of a failing store would add a timer. A timer that is over does not count: it may have met
/// a writer at work and done nothing.
std::optional<writer_loop::armed_timer> writer_loop::next_timer(time now, bool busy) {
  const auto is_armed = [now](const std::optional<armed_timer>& timer, time due) {
    return timer && timer->when > now && timer->when <= due;
  };
  const auto arm = [this](std::optional<armed_timer>& timer, time when) {
    return timer = armed_timer{.when = when, .number = ++timers_armed_};
  };
  const auto not_before = state_.retry.not_before();
  if (not_before > now)
    return is_armed(retry_timer_, not_before) ? std::nullopt : arm(retry_timer_, not_before);
  const auto due = state_.pending.next_due();
  if (busy || !due || is_armed(held_timer_, *due)) return std::nullopt;
  return arm(held_timer_, *due);
}

bool writer_loop::wait_until_saved(guard& lock, std::uint64_t sequence, time deadline) {
  auto& pending = state_.pending;
  pending.flush_up_to(sequence);
  if (pending.is_saved(sequence)) return true;
  // After a stop only the batch in progress is finished; there is nothing else to wait for.
  const auto is_over = [&] { return pending.is_saved(sequence) || (state_.stopped && !writing_); };
  if (is_over()) return false;
  ++state_.flushes_waiting;
  // The caller wants a result now, so a retry pause ends.
  if (!writing_) {
    pending.retry_suspects_now();
    if (state_.retry.not_before() > state_.steady_now()) {
      state_.retry.skip();
      active_ = false;
    }
  }
  // Checked after each wait: if the executor refuses tasks, no task continues after a batch or a
  // pause.
  const bounded_wait wait(*state_.options.clock, deadline);
  do ensure_writer(lock, deadline);
  while (!is_over() && wait.wait_once(lock, state_.batch_finished));
  --state_.flushes_waiting;
  return pending.is_saved(sequence);
}

/// Starts a writer, unless one is active or will be after a retry pause.
void writer_loop::ensure_writer(guard& lock, time deadline) {
  if (active_ || writing_ || own_thread_ || state_.retry.not_before() > state_.steady_now()) return;
  active_ = true;
  lock.unlock();
  const bool posted = post_task();
  lock.lock();
  if (posted || std::exchange(own_thread_, true)) return;
  lock.unlock();
  write_on_own_thread(deadline);
  lock.lock();
}

/// Writes on a detached thread, because the executor refuses tasks. The caller's thread would be
/// blocked beyond its deadline if the store hangs. The thread keeps this object alive. It ends
/// after a failure; a caller that still waits starts another one.
void writer_loop::write_on_own_thread(time deadline) {
  auto write = [self = shared_from_this(), deadline] {
    for (;;) {
      self->write_next_batch();
      auto& state = self->state_;
      const guard lock(state.mutex);
      const auto now = state.steady_now();
      if (now < deadline && !state.pending.is_saved(state.pending.flush_target()) &&
          !state.stopped && !self->writing_ && state.retry.not_before() <= now &&
          state.pending.is_ready(now))
        continue;
      self->own_thread_ = false;
      return;
    }
  };
  try {
    start_quiet_thread("write-behind", write).detach();
  } catch (const std::exception&) {
    write();  // no thread could be started: a late write is better than a lost one
  }
}

void writer_loop::publish() noexcept {
  if (!metrics_.enabled()) return;
  try {
    write_behind_numbers previous;
    write_behind_numbers current;
    {
      const guard lock(state_.mutex);
      previous = published_;
      current = state_.numbers();
      published_ = current;
    }
    metrics_.update(previous, current);
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // A failing metrics sink must not disturb the writer.
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail::store
