#pragma once

#include <holdfast/metrics.hpp>
#include <holdfast/worker.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string_view>

namespace HOLDFAST_NAMESPACE {

/// A number that is kept here, for `worker::count`, and told to the metrics.
class tally {
 public:
  explicit tally(std::shared_ptr<metrics::counter> out) : out_(std::move(out)) {}
  void add(std::uint64_t more = 1) {
    if (more == 0) return;
    kept_.fetch_add(more, std::memory_order_relaxed);
    out_->add(more);
  }
  [[nodiscard]] std::uint64_t get() const noexcept { return kept_.load(std::memory_order_relaxed); }

 private:
  std::shared_ptr<metrics::counter> out_;
  std::atomic<std::uint64_t> kept_{0};
};

/// Everything that a worker counts.
/// Thread-safety: every function may be called from any thread.
struct worker_instruments {
  explicit worker_instruments(metrics_sink& into);

  [[nodiscard]] worker_numbers count() const;
  void looked(const outbox_stats& what);

  tally claims, deliveries, done, retried, throttled, parked, released, fenced, in_doubt, tickets, wakes, errors;
  std::shared_ptr<metrics::histogram> handle_seconds;  ///< of a handler
  std::shared_ptr<metrics::histogram> lag_seconds;     ///< from the moment an event was due to its claim
  std::shared_ptr<metrics::histogram> wake_seconds;    ///< from a wake-up to the claimed events
  std::shared_ptr<metrics::gauge> in_flight, depth, parked_now, overdue, tickets_waiting;
};

}  // namespace HOLDFAST_NAMESPACE
