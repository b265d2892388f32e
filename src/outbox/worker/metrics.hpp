#pragma once

/// \file
/// The counters and metrics of a worker.

#include <holdfast/metrics.hpp>
#include <holdfast/worker.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::outbox {

/// A counter of the metrics that can also be read, for `worker::count`.
class readable_counter {
 public:
  explicit readable_counter(std::shared_ptr<metrics::counter> counter)
      : counter_(std::move(counter)) {}
  void add(std::uint64_t increment = 1) {
    if (increment == 0) return;
    total_.fetch_add(increment, std::memory_order_relaxed);
    counter_->add(increment);
  }
  [[nodiscard]] std::uint64_t total() const noexcept {
    return total_.load(std::memory_order_relaxed);
  }

 private:
  std::shared_ptr<metrics::counter> counter_;
  std::atomic<std::uint64_t> total_{0};
};

/// Thread-safety: every function may be called from any thread.
struct worker_metrics {
  explicit worker_metrics(metrics_sink& sink);

  /// All totals, without `in_flight`.
  [[nodiscard]] worker_numbers totals() const;
  void set_backlog(const outbox_stats& stats);

  readable_counter claims, deliveries, done, retried, throttled, parked, released, fenced, in_doubt,
      timed_out, unhandled, tickets, wakes, errors;
  std::shared_ptr<metrics::histogram> handle_seconds, lag_seconds, wake_seconds;
  std::shared_ptr<metrics::gauge> in_flight, depth, parked_now, overdue, tickets_waiting;
};

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
