#include "store/cleaner.hpp"

#include <holdfast/error.hpp>

#include "base/thread.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <exception>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::store {

namespace {

using namespace std::chrono_literals;

constexpr std::array results_with_counter{cleanup_result::cleaned,        cleanup_result::limited,
                                          cleanup_result::held_elsewhere, cleanup_result::lost,
                                          cleanup_result::stopped,        cleanup_result::failed};

cleanup_options checked(cleanup_options options) {
  const auto refuse = [](const std::string& message) {
    throw error(errc::invalid_argument, "cleanup: " + message);
  };
  if (options.batch == 0) refuse("batch must be at least 1 entry");
  if (options.limit == 0) refuse("limit must be at least 1 entry");
  if (options.jitter.count() < 0) refuse("jitter must not be negative");
  if (options.lease.count() != 0 && options.lease < 1s)
    refuse("lease must be at least 1 s, or 0 for no lease");
  return options;
}

/// Returns an owner name that no other cleaner has. 150 characters and the random part fit the
/// column.
std::string unique_owner(const std::string& configured) {
  std::string name = configured;
  if (name.empty()) {
    std::array<char, 256> host{};
    if (::gethostname(host.data(), host.size() - 1) != 0) host = {'?'};
    name = std::string(host.data()) + ":" + std::to_string(::getpid());
  }
  std::random_device random;
  return name.substr(0, 150) + ":" + std::to_string(random()) + std::to_string(random());
}

bool is_failure(cleanup_result result) {
  return result == cleanup_result::failed || result == cleanup_result::lost;
}

}  // namespace

cleaner::cleaner(cleaner_parts parts, cleanup_options options)
    : parts_(std::move(parts)),
      options_(checked(std::move(options))),
      schedule_(cron::parse(options_.cron)),
      owner_(unique_owner(options_.owner)) {
  for (const auto result : results_with_counter) {
    runs_total_[result] =
        parts_.metrics->counter("holdfast_cleanup_runs_total", {{"result", to_string(result)}},
                                "Runs of the cleanup, by how they ended");
  }
  removed_total_ = parts_.metrics->counter("holdfast_cleanup_removed_total", {},
                                           "Expired entries that the cleanup removed");
  seconds_ = parts_.metrics->histogram("holdfast_cleanup_seconds", {},
                                       "How long runs of the cleanup took");
  last_success_ =
      parts_.metrics->gauge("holdfast_cleanup_last_success_timestamp_seconds", {},
                            "When a run of the cleanup on this machine last ended well");
}

void cleaner::start() {
  const std::scoped_lock lock(mutex_);
  schedule_next(parts_.clock->now());
  arm_timer();
}

void cleaner::schedule_next(timestamp now) {
  last_tick_ = now;
  const auto next = schedule_.next(std::chrono::floor<std::chrono::seconds>(now));
  if (!next) {
    state_.next.reset();
    return;
  }
  const auto max_jitter = std::chrono::microseconds(options_.jitter).count();
  state_.next = *next + std::chrono::microseconds(
                            std::uniform_int_distribution<std::int64_t>(0, max_jitter)(random_));
}

void cleaner::arm_timer() {
  if (!state_.next) return;
  const auto now = parts_.clock->now();
  const auto delay =
      std::clamp<std::chrono::microseconds>(*state_.next - now, 0us, longest_sleep_until_wall_time);
  const bool accepted = parts_.executor->post_after(delay, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->tick();
  });
  const bool already_logged = std::exchange(timer_refused_, !accepted);
  if (accepted) return;
  state_.next.reset();
  if (already_logged) return;
  parts_.log->write(log_level::error,
                    "the executor has no room for the timer of the cleanup; it is tried again at "
                    "the next call of state() or run_now()");
}

/// A refused timer cannot rearm itself, so callers of the public functions do it.
void cleaner::rearm_refused_timer() {
  if (!timer_refused_ || closing_) return;
  schedule_next(parts_.clock->now());
  arm_timer();
}

void cleaner::tick() {
  const auto now = parts_.clock->now();
  {
    const std::scoped_lock lock(mutex_);
    if (closing_ || !state_.next) return;
    const bool due = now >= *state_.next;
    const bool clock_set_back = now < last_tick_;
    if (due || clock_set_back) schedule_next(now);
    last_tick_ = now;
    arm_timer();
    // If a run takes longer than the period of the schedule, no second run starts.
    if (!due || phase_ != phase::idle) return;
    phase_ = phase::waiting;
    begin_run();
  }
  post_step();
}

void cleaner::begin_run() {
  run_ = {};
  run_.report.started = run_.expired_before = parts_.clock->now();
  run_.started = parts_.clock->steady();
}

/// Posts the next step as a task, so that other tasks of the executor run in between. Runs it here
/// if the executor is full.
void cleaner::post_step() {
  const bool accepted =
      parts_.executor->post([self = shared_from_this()] { self->run_posted_steps(); });
  if (!accepted) run_posted_steps();
}

void cleaner::run_posted_steps() {
  for (;;) {
    {
      const std::scoped_lock lock(mutex_);
      if (phase_ != phase::waiting) return;  // close() has ended the run
      phase_ = phase::stepping;
    }
    const bool more = step();
    end_stepping(more ? phase::waiting : phase::idle);
    if (!more || parts_.executor->post([self = shared_from_this()] { self->run_posted_steps(); }))
      return;
  }
}

void cleaner::end_stepping(phase next) {
  {
    const std::scoped_lock lock(mutex_);
    phase_ = next;
  }
  phase_changed_.notify_all();
}

cleanup_report cleaner::run_now() {
  {
    const std::scoped_lock lock(mutex_);
    if (closing_) return {.result = cleanup_result::stopped, .started = parts_.clock->now()};
    rearm_refused_timer();
    if (phase_ != phase::idle)
      return {.result = cleanup_result::running, .started = run_.report.started};
    phase_ = phase::stepping;
    begin_run();
  }
  while (step()) {
  }
  cleanup_report report = run_.report;
  end_stepping(phase::idle);
  return report;
}

/// Returns whether the run continues. An exception ends the run as failed.
bool cleaner::step() noexcept {
  try {
    return step_or_throw();
  } catch (const std::exception& e) {
    try {
      run_.report.problem = e.what();
    } catch (...) {  // NOLINT(bugprone-empty-catch)
      // Out of memory: the report has no reason.
    }
  } catch (...) {
    run_.report.problem = "?";
  }
  return finish_run(cleanup_result::failed);
}

bool cleaner::step_or_throw() {
  auto& report = run_.report;
  if (closing()) return finish_run(cleanup_result::stopped);
  if (parts_.lease && report.fence == 0) return acquire_lease();
  if (parts_.lease && !renew_lease()) return finish_run(cleanup_result::lost);
  const auto removed = parts_.target->expire(
      run_.expired_before, std::min(options_.batch, options_.limit - report.removed));
  report.removed += removed;
  removed_total_->add(removed);
  if (removed == 0) return finish_run(cleanup_result::cleaned);
  if (report.removed >= options_.limit) return finish_run(cleanup_result::limited);
  return true;
}

bool cleaner::acquire_lease() {
  // Taken before the request: the server starts counting later, so we never believe in the lease
  // longer than the server does.
  const auto requested = parts_.clock->steady();
  auto attempt = parts_.lease->acquire(owner_, options_.lease);
  run_.report.holder = std::move(attempt.holder);
  if (!attempt.fence) return finish_run(cleanup_result::held_elsewhere);
  run_.report.fence = *attempt.fence;
  run_.lease_renewed = requested;
  return true;
}

/// Renews the lease after a third of its time. Returns false if another process holds it now.
bool cleaner::renew_lease() {
  const auto requested = parts_.clock->steady();
  if (requested - run_.lease_renewed <= options_.lease / 3) return true;
  if (!parts_.lease->renew(owner_, run_.report.fence, options_.lease)) return false;
  run_.lease_renewed = requested;
  return true;
}

/// Returns false, as step() does when a run has ended.
bool cleaner::finish_run(cleanup_result result) {
  auto& report = run_.report;
  report.result = result;
  report.duration =
      std::chrono::duration_cast<std::chrono::microseconds>(parts_.clock->steady() - run_.started);
  if (result != cleanup_result::lost) release_lease();
  record_run();
  return false;
}

void cleaner::release_lease() noexcept {
  if (!parts_.lease || run_.report.fence == 0) return;
  try {
    parts_.lease->release(owner_, run_.report.fence);
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // Other processes wait until the lease expires.
  }
}

void cleaner::record_run() {
  const auto& report = run_.report;
  {
    const std::scoped_lock lock(mutex_);
    state_.last = report;
    ++state_.runs;
    state_.removed += report.removed;
    if (report.result == cleanup_result::held_elsewhere) ++state_.skipped;
    if (is_failure(report.result)) ++state_.failures;
  }
  runs_total_.at(report.result)->add();
  seconds_->observe(std::chrono::duration<double>(report.duration).count());
  if (report.result == cleanup_result::cleaned || report.result == cleanup_result::limited)
    last_success_->set(
        std::chrono::duration<double>(parts_.clock->now().time_since_epoch()).count());
  try {
    if (options_.on_run) options_.on_run(report);
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // An exception of the listener must not end the schedule.
  }
  log_run();
}

void cleaner::log_run() const {
  const auto& report = run_.report;
  const bool failure = is_failure(report.result);
  if (!parts_.log->listened() || (!failure && report.removed == 0)) return;
  const auto removed = std::to_string(report.removed);
  const auto duration_ms = std::to_string(
      std::chrono::duration_cast<std::chrono::milliseconds>(report.duration).count());
  const std::array<log_field, 5> fields{{{.name = "result", .value = to_string(report.result)},
                                         {.name = "removed", .value = removed},
                                         {.name = "duration_ms", .value = duration_ms},
                                         {.name = "holder", .value = report.holder},
                                         {.name = "problem", .value = report.problem}}};
  if (failure)
    parts_.log->write(log_level::warning, "the cleanup of the store failed; the next run continues",
                      fields);
  else
    parts_.log->write(log_level::info, "the cleanup of the store removed expired entries",
                      std::span(fields).first(4));
}

bool cleaner::closing() const {
  const std::scoped_lock lock(mutex_);
  return closing_;
}

cleanup_state cleaner::state() {
  const std::scoped_lock lock(mutex_);
  rearm_refused_timer();
  cleanup_state result = state_;
  result.running = phase_ != phase::idle;
  return result;
}

bool cleaner::close(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  closing_ = true;
  state_.next.reset();
  if (!phase_changed_.wait_until(lock, deadline, [&] { return phase_ != phase::stepping; }))
    return false;
  if (phase_ == phase::idle) return true;
  // Between two steps. The task of the next step may never run, so the run ends here. A separate
  // thread does it, because the database may hang while the lease is released.
  phase_ = phase::stepping;
  lock.unlock();
  const auto finish = [self = shared_from_this()] {
    while (self->step()) {
    }
    self->end_stepping(phase::idle);
  };
  try {
    start_quiet_thread("cleanup", finish).detach();
  } catch (const std::exception&) {
    finish();  // no thread could be started
  }
  lock.lock();
  return phase_changed_.wait_until(lock, deadline, [&] { return phase_ == phase::idle; });
}

void cleaner::abandon() noexcept {
  const std::scoped_lock lock(mutex_);
  closing_ = true;
  state_.next.reset();
}

}  // namespace HOLDFAST_NAMESPACE::detail::store
