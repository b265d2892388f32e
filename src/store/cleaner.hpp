#pragma once

/// \file
/// The implementation of holdfast::cleanup: a schedule, and runs that remove expired entries batch
/// by batch.
///
/// A run is a sequence of steps: acquire the lease, remove a batch, remove the next one, and so on.
/// Each step is a task of its own. The phase says who may do the next step:
///
///     idle       no run is active
///     waiting    between two steps; the thread that changes the phase to `stepping` does the next
///     stepping   one thread does a step and owns run_
///
///     idle -> waiting    tick(): the schedule starts a run
///     idle -> stepping   run_now(): the caller does all steps
///     waiting -> stepping -> waiting | idle   a posted task, or close()

#include <holdfast/executor.hpp>
#include <holdfast/log.hpp>
#include <holdfast/metrics.hpp>
#include <holdfast/store/cleanup.hpp>

#include "base/cron.hpp"
#include "store/sql/table_lease.hpp"

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>

namespace HOLDFAST_NAMESPACE {

namespace detail::store {

/// The collaborators of a cleaner. A test replaces them.
struct cleaner_parts {
  std::shared_ptr<holdfast::store> target{};
  std::unique_ptr<table_lease> lease{};  ///< null: no other process cleans
  std::shared_ptr<holdfast::executor> executor{};
  std::shared_ptr<const holdfast::clock> clock{};
  std::shared_ptr<const logger> log{};
  std::shared_ptr<isolated_metrics> metrics{};
};

/// Thread-safety: every function may be called from any thread.
class HOLDFAST_API cleaner : public std::enable_shared_from_this<cleaner> {
 public:
  cleaner(cleaner_parts parts, cleanup_options options);

  /// Starts the schedule.
  void start();
  cleanup_report run_now();
  [[nodiscard]] cleanup_state state();
  bool close(std::chrono::steady_clock::time_point deadline);
  /// Stops the schedule without waiting.
  void abandon() noexcept;

 private:
  enum class phase : std::uint8_t { idle, waiting, stepping };
  struct run_state {
    cleanup_report report{};
    timestamp expired_before{};
    std::chrono::steady_clock::time_point started{};
    std::chrono::steady_clock::time_point lease_renewed{};
  };

  // These require the lock.
  void schedule_next(timestamp now);
  void arm_timer();
  void rearm_refused_timer();
  void begin_run();

  void tick();
  void post_step();
  void run_posted_steps();
  bool step() noexcept;
  bool step_or_throw();
  bool acquire_lease();
  bool renew_lease();
  bool finish_run(cleanup_result result);
  void release_lease() noexcept;
  void record_run();
  void log_run() const;
  void end_stepping(phase next);
  [[nodiscard]] bool closing() const;

  const cleaner_parts parts_;
  const cleanup_options options_;
  const cron schedule_;
  const std::string owner_;
  std::map<cleanup_result, std::shared_ptr<metrics::counter>> runs_total_{};
  std::shared_ptr<metrics::counter> removed_total_;
  std::shared_ptr<metrics::histogram> seconds_;
  std::shared_ptr<metrics::gauge> last_success_;

  mutable std::mutex mutex_{};
  std::condition_variable phase_changed_{};
  cleanup_state state_{};
  phase phase_ = phase::idle;
  bool closing_ = false;
  bool timer_refused_ = false;  // the executor had no room for the timer
  timestamp last_tick_{};       // detects a wall clock that was set back
  std::minstd_rand random_{std::random_device{}()};
  run_state run_{};  // owned by the thread that set the phase to `stepping`
};

}  // namespace detail::store

/// Lets the public header refer to the cleaner without declaring namespace detail::store.
class cleanup::impl final : public detail::store::cleaner {
 public:
  using cleaner::cleaner;
};

}  // namespace HOLDFAST_NAMESPACE
