#include "store/cleaner.hpp"

#include <holdfast/error.hpp>

#include "base/thread.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <exception>
#include <utility>

namespace HOLDFAST_NAMESPACE {
namespace {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

constexpr std::array<std::pair<cleanup_result, std::string_view>, 7> result_names{{{cleanup_result::cleaned, "cleaned"},
                                                                                   {cleanup_result::limited, "limited"},
                                                                                   {cleanup_result::held_elsewhere, "held_elsewhere"},
                                                                                   {cleanup_result::running, "running"},
                                                                                   {cleanup_result::lost, "lost"},
                                                                                   {cleanup_result::stopped, "stopped"},
                                                                                   {cleanup_result::failed, "failed"}}};

cleanup_options checked(cleanup_options how) {
  const auto refuse = [](const std::string& why) { throw error(errc::invalid_argument, "cleanup: " + why); };
  if (how.batch == 0) refuse("a batch must have at least 1 entry");
  if (how.limit == 0) refuse("the limit of a run must be at least 1 entry");
  if (how.jitter.count() < 0) refuse("the jitter cannot be negative");
  if (how.lease.count() != 0 && how.lease < 1s) refuse("a lease must be at least 1 s long, or 0 for none");
  return how;
}

/// Different for every cleaner, so that two with the same name never take each other for themselves; short enough for its column.
std::string unique_owner(const std::string& given) {
  std::string name = given;
  if (name.empty()) {
    std::array<char, 256> host{};
    if (::gethostname(host.data(), host.size() - 1) != 0) host = {'?'};
    name = std::string(host.data()) + ":" + std::to_string(::getpid());
  }
  std::random_device random;
  return name.substr(0, 150) + ":" + std::to_string(random()) + std::to_string(random());
}

}  // namespace

std::string_view to_string(cleanup_result result) noexcept {
  const auto* found = std::find_if(result_names.begin(), result_names.end(), [&](const auto& one) { return one.first == result; });
  return found == result_names.end() ? "unknown" : found->second;
}

cleaner::cleaner(cleaner_parts parts, cleanup_options how)
    : parts_(std::move(parts)), how_(checked(std::move(how))), schedule_(cron::parse(how_.cron)), owner_(unique_owner(how_.owner)) {
  for (const auto& [result, name] : result_names) {
    if (result == cleanup_result::running) continue;
    runs_total_[result] =
        parts_.metrics->counter("holdfast_cleanup_runs_total", {{"result", name}}, "Runs of the cleanup, by how they ended");
  }
  removed_total_ = parts_.metrics->counter("holdfast_cleanup_removed_total", {}, "Expired entries that the cleanup removed");
  seconds_ = parts_.metrics->histogram("holdfast_cleanup_seconds", {}, "How long runs of the cleanup took");
  last_success_ = parts_.metrics->gauge("holdfast_cleanup_last_success_timestamp_seconds", {},
                                        "When a run of the cleanup on this machine last ended well");
}

void cleaner::start() {
  const std::scoped_lock lock(mutex_);
  plan(parts_.clock->now());
  arm();
}

/// When the next run is due. Needs the lock, as arm() does.
void cleaner::plan(timestamp now) {
  ticked_ = now;
  const auto next = schedule_.next(std::chrono::floor<std::chrono::seconds>(now));
  if (!next) {
    state_.next.reset();
    return;
  }
  const auto most = std::chrono::microseconds(how_.jitter).count();
  state_.next = *next + std::chrono::microseconds(std::uniform_int_distribution<std::int64_t>(0, most)(random_));
}

void cleaner::arm() {
  if (!state_.next) return;
  const auto now = parts_.clock->now();
  const auto wait = std::clamp<std::chrono::microseconds>(*state_.next - now, 0us, longest_sleep_until_wall_time);
  const bool taken = parts_.on->post_after(wait, [self = weak_from_this()] {
    if (const auto alive = self.lock()) alive->tick();
  });
  const bool said = std::exchange(refused_, !taken);
  if (taken) return;
  state_.next.reset();
  if (said) return;
  parts_.log->write(
      log_level::error,
      "the executor has no room for the timer of the cleanup; it is tried again when somebody asks for its state or for a run");
}

/// Nothing else would: there is no timer that could. Needs the lock.
void cleaner::arm_again() {
  if (!refused_ || closing_) return;
  plan(parts_.clock->now());
  arm();
}

void cleaner::tick() {
  const auto now = parts_.clock->now();
  bool due = false;
  {
    const std::scoped_lock lock(mutex_);
    if (closing_ || !state_.next) return;
    due = now >= *state_.next;
    if (due || now < ticked_) plan(now);
    ticked_ = now;
    arm();
    // A run that takes longer than the schedule's period is not joined by another.
    if (!due || phase_ != phase::idle) return;
    phase_ = phase::waiting;
    begin_run();
  }
  post_step();
}

void cleaner::begin_run() {
  run_ = {};
  run_.report.started = run_.before = parts_.clock->now();
  run_.began = parts_.clock->steady();
}

/// The next step as a task of its own, so that others get their turn; where there is no room, at once.
void cleaner::post_step() {
  const bool taken = parts_.on->post([self = shared_from_this()] { self->run_posted_steps(); });
  if (!taken) run_posted_steps();
}

void cleaner::run_posted_steps() {
  for (;;) {
    {
      const std::scoped_lock lock(mutex_);
      if (phase_ != phase::waiting) return;  // close() did it
      phase_ = phase::stepping;
    }
    const bool more = step();
    {
      const std::scoped_lock lock(mutex_);
      phase_ = more ? phase::waiting : phase::idle;
    }
    changed_.notify_all();
    if (!more || parts_.on->post([self = shared_from_this()] { self->run_posted_steps(); })) return;
  }
}

cleanup_report cleaner::run_now() {
  {
    const std::scoped_lock lock(mutex_);
    if (closing_) return {.result = cleanup_result::stopped, .started = parts_.clock->now()};
    arm_again();
    if (phase_ != phase::idle) return {.result = cleanup_result::running, .started = run_.report.started};
    phase_ = phase::stepping;
    begin_run();
  }
  while (step()) {
  }
  cleanup_report report = run_.report;
  {
    const std::scoped_lock lock(mutex_);
    phase_ = phase::idle;
  }
  changed_.notify_all();
  return report;
}

/// True while there is more to do. What is thrown ends the run, not the program.
bool cleaner::step() noexcept {
  try {
    return step_or_throw();
  } catch (const std::exception& e) {
    try {
      run_.report.problem = e.what();
    } catch (...) {  // NOLINT(bugprone-empty-catch)
      // No memory for the reason: the result must do.
    }
  } catch (...) {
    run_.report.problem = "?";
  }
  end(cleanup_result::failed);
  return false;
}

bool cleaner::step_or_throw() {
  auto& report = run_.report;
  const auto ended = [this](cleanup_result result) {
    end(result);
    return false;
  };
  if (closing()) return ended(cleanup_result::stopped);
  if (parts_.right && report.fence == 0) {
    const auto asked = parts_.clock->steady();  // before asking: what the server counts begins later
    auto attempt = parts_.right->acquire(owner_, how_.lease);
    report.holder = std::move(attempt.holder);
    if (!attempt.fence) return ended(cleanup_result::held_elsewhere);
    report.fence = *attempt.fence;
    run_.renewed = asked;
    return true;
  }
  if (parts_.right && parts_.clock->steady() - run_.renewed > how_.lease / 3) {
    const auto asked = parts_.clock->steady();
    if (!parts_.right->renew(owner_, report.fence, how_.lease)) return ended(cleanup_result::lost);
    run_.renewed = asked;
  }
  const auto removed = parts_.what->expire(run_.before, std::min(how_.batch, how_.limit - report.removed));
  report.removed += removed;
  removed_total_->add(removed);
  if (removed == 0) return ended(cleanup_result::cleaned);
  if (report.removed >= how_.limit) return ended(cleanup_result::limited);
  return true;
}

void cleaner::end(cleanup_result result) {
  auto& report = run_.report;
  report.result = result;
  report.duration = std::chrono::duration_cast<std::chrono::microseconds>(parts_.clock->steady() - run_.began);
  if (result != cleanup_result::lost) give_back();
  record();
}

/// The lease ends by itself when this fails.
void cleaner::give_back() noexcept {
  if (!parts_.right || run_.report.fence == 0) return;
  try {
    parts_.right->release(owner_, run_.report.fence);
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // Others wait until it has ended.
  }
}

void cleaner::record() {
  const auto& report = run_.report;
  const bool bad = report.result == cleanup_result::failed || report.result == cleanup_result::lost;
  {
    const std::scoped_lock lock(mutex_);
    state_.last = report;
    ++state_.runs;
    state_.removed += report.removed;
    if (report.result == cleanup_result::held_elsewhere) ++state_.skipped;
    if (bad) ++state_.failures;
  }
  runs_total_.at(report.result)->add();
  seconds_->observe(std::chrono::duration<double>(report.duration).count());
  if (report.result == cleanup_result::cleaned || report.result == cleanup_result::limited)
    last_success_->set(std::chrono::duration<double>(parts_.clock->now().time_since_epoch()).count());
  try {
    if (how_.on_run) how_.on_run(report);
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // Whoever listens must not end the schedule.
  }

  if (!parts_.log->listened() || (!bad && report.removed == 0)) return;
  const auto removed = std::to_string(report.removed);
  const auto took = std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(report.duration).count());
  const std::array<log_field, 5> fields{{{.name = "result", .value = to_string(report.result)},
                                         {.name = "removed", .value = removed},
                                         {.name = "duration_ms", .value = took},
                                         {.name = "holder", .value = report.holder},
                                         {.name = "problem", .value = report.problem}}};
  if (bad) parts_.log->write(log_level::warning, "the cleanup of the store did not end well; the next run goes on", fields);
  else parts_.log->write(log_level::info, "the cleanup of the store removed expired entries", std::span(fields).first(4));
}

bool cleaner::closing() const {
  const std::scoped_lock lock(mutex_);
  return closing_;
}

cleanup_state cleaner::state() {
  const std::scoped_lock lock(mutex_);
  arm_again();
  cleanup_state result = state_;
  result.running = phase_ != phase::idle;
  return result;
}

bool cleaner::close(steady::time_point deadline) {
  std::unique_lock lock(mutex_);
  closing_ = true;
  state_.next.reset();
  if (!changed_.wait_until(lock, deadline, [&] { return phase_ != phase::stepping; })) return false;
  if (phase_ == phase::idle) return true;
  // Between two batches: the task that would do the next one may never run, so the run is ended now. On a thread of its own, since the
  // database may hang while the lease is given back.
  phase_ = phase::stepping;
  lock.unlock();
  const auto finish = [self = shared_from_this()] {
    while (self->step()) {
    }
    {
      const std::scoped_lock ended(self->mutex_);
      self->phase_ = phase::idle;
    }
    self->changed_.notify_all();
  };
  try {
    start_quiet_thread("cleanup", finish).detach();
  } catch (const std::exception&) {
    finish();  // no thread to be had
  }
  lock.lock();
  return changed_.wait_until(lock, deadline, [&] { return phase_ == phase::idle; });
}

void cleaner::abandon() noexcept {
  const std::scoped_lock lock(mutex_);
  closing_ = true;
  state_.next.reset();
}

}  // namespace HOLDFAST_NAMESPACE
