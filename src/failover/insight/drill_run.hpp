#pragma once

/// \file
/// The drill of a point.

#include <holdfast/failover/drill.hpp>

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::failover {

/// Durations, of which a sample of bounded size is kept.
/// Thread-safety: none.
class duration_sample {
 public:
  void add(std::chrono::microseconds duration);
  [[nodiscard]] duration_summary summary() const;

 private:
  static constexpr std::size_t largest_sample = 512;
  std::vector<std::chrono::microseconds> sample_{};
  std::uint64_t count_ = 0;
  std::chrono::microseconds longest_{};
};

/// One drill.
/// Thread-safety: every function may be called from any thread.
class drill_run {
 public:
  using steady_time = std::chrono::steady_clock::time_point;
  drill_run(drill_options options, timestamp now, steady_time steady_now, std::uint64_t calls);

  [[nodiscard]] const drill_options& options() const noexcept { return options_; }
  /// Ends the drill if its time has passed. Returns whether it runs.
  bool runs(steady_time now);
  void end(drill_end reason, timestamp now);

  void record_selected();
  void record_served(std::chrono::microseconds age, std::chrono::microseconds latency);
  void record_not_covered();
  /// `calls`: calls of the point so far.
  [[nodiscard]] drill_report report(steady_time now, std::uint64_t calls);

 private:
  const drill_options options_;
  const timestamp started_;
  const steady_time deadline_;
  const std::uint64_t calls_at_start_;

  std::mutex mutex_{};
  drill_end end_ = drill_end::running;
  timestamp ended_;
  std::optional<std::uint64_t> calls_at_end_{};
  std::uint64_t selected_ = 0;
  std::uint64_t served_ = 0;
  std::uint64_t not_covered_ = 0;
  duration_sample ages_{};
  duration_sample latency_{};
};

/// The current or last drill of a point.
/// Thread-safety: every function may be called from any thread.
class point_drill {
 public:
  /// Whether calls must ask `select`.
  [[nodiscard]] bool active() const noexcept {
    return threshold_.load(std::memory_order_relaxed) != 0;
  }
  /// Decides whether a call belongs to the drill. Returns null if it does not.
  [[nodiscard]] std::shared_ptr<drill_run> select(std::chrono::steady_clock::time_point now);

  /// Throws errc::duplicate if a drill runs.
  void start(std::shared_ptr<drill_run> run, std::chrono::steady_clock::time_point now);
  /// Returns null if there never was a drill.
  [[nodiscard]] std::shared_ptr<drill_run> last() const;
  /// Calls are not selected any more.
  void stop(const drill_run& run);

 private:
  std::atomic<std::uint64_t> threshold_{0};  // of a random number of 32 bits; 0: no drill
  mutable std::mutex mutex_{};
  std::shared_ptr<drill_run> run_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::failover
