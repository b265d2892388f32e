#pragma once

#include <holdfast/executor.hpp>
#include <holdfast/log.hpp>
#include <holdfast/metrics.hpp>
#include <holdfast/store/cleanup.hpp>

#include "base/cron.hpp"
#include "store/lease.hpp"

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>

namespace HOLDFAST_NAMESPACE {

/// What a cleaner works with: the seams, so that a test can hold them.
struct cleaner_parts {
  std::shared_ptr<store> what{};
  std::unique_ptr<lease> right{};  ///< null: nobody else cleans
  std::shared_ptr<executor> on{};
  std::shared_ptr<const holdfast::clock> clock{};
  std::shared_ptr<const logger> log{};
  std::shared_ptr<isolated_metrics> metrics{};
};

/// The works of holdfast::cleanup. A run is a row of steps: take the lease, remove a batch, and so on; each is a task of its own, and whoever
/// finds the run `waiting` may do the next one.
/// Thread-safety: every function may be called from any thread.
class HOLDFAST_API cleaner : public std::enable_shared_from_this<cleaner> {
 public:
  cleaner(cleaner_parts parts, cleanup_options how);

  /// Begins the schedule.
  void start();
  cleanup_report run_now();
  [[nodiscard]] cleanup_state state();
  bool close(std::chrono::steady_clock::time_point deadline);
  /// No more, and no waiting.
  void abandon() noexcept;

 private:
  enum class phase : std::uint8_t { idle, waiting, stepping };
  struct run_state {
    cleanup_report report{};
    timestamp before{};
    std::chrono::steady_clock::time_point began{};
    std::chrono::steady_clock::time_point renewed{};
  };

  void plan(timestamp now);
  void arm();
  void arm_again();
  void tick();
  void begin_run();
  void post_step();
  void run_posted_steps();
  bool step() noexcept;
  bool step_or_throw();
  void end(cleanup_result result);
  void give_back() noexcept;
  void record();
  [[nodiscard]] bool closing() const;

  const cleaner_parts parts_;
  const cleanup_options how_;
  const cron schedule_;
  const std::string owner_;
  std::map<cleanup_result, std::shared_ptr<metrics::counter>> runs_total_{};
  std::shared_ptr<metrics::counter> removed_total_;
  std::shared_ptr<metrics::histogram> seconds_;
  std::shared_ptr<metrics::gauge> last_success_;

  mutable std::mutex mutex_{};
  std::condition_variable changed_{};
  cleanup_state state_{};
  phase phase_ = phase::idle;
  bool closing_ = false;
  bool refused_ = false;  // the executor had no room for the timer
  timestamp ticked_{};    // to see the wall clock being set back
  std::minstd_rand random_{std::random_device{}()};
  run_state run_{};  // of whoever made the phase `stepping`
};

}  // namespace HOLDFAST_NAMESPACE
