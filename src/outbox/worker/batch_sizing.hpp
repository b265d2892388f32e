#pragma once

#include <holdfast/version.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <mutex>

namespace HOLDFAST_NAMESPACE::detail::outbox {

/// Decides how many events to claim, from the measured duration of handlers: enough to keep all
/// handlers busy for `claim_time`, but not so many that the last one waits long.
/// Thread-safety: every function may be called from any thread.
class batch_sizing {
 public:
  struct limits {
    /// Number of handlers that run at the same time.
    std::size_t concurrency = 4;
    /// Maximum number of events in one claim.
    std::size_t most = 1000;
    /// How long one claim should keep the handlers busy.
    std::chrono::microseconds claim_time = std::chrono::milliseconds(250);
  };
  explicit batch_sizing(limits configured) : limits_(configured) {}

  /// Records that one thread handled `events` events in `duration`.
  void record(std::size_t events, std::chrono::nanoseconds duration) {
    if (events == 0) return;
    const double sample = static_cast<double>(duration.count()) / static_cast<double>(events);
    const std::scoped_lock lock(mutex_);
    // The mean of many events is worth more than a single one.
    const double weight = events >= 8 ? 0.5 : 0.2;
    mean_ns_ = measured_ ? mean_ns_ + weight * (sample - mean_ns_) : sample;
    measured_ = true;
  }

  /// Maximum number of events in flight: the claim that is being handled, and the next one, so that
  /// handlers do not wait for it. Before the first measurement: one for each handler.
  [[nodiscard]] std::size_t in_flight_limit() const {
    return events_in(limits_.claim_time, limits_.concurrency, 2 * limits_.most);
  }
  /// Number of events that one thread handles before it settles them together.
  [[nodiscard]] std::size_t batch_size() const {
    return events_in(settle_interval, 1,
                     (limits_.most + limits_.concurrency - 1) / limits_.concurrency);
  }

 private:
  static constexpr std::chrono::milliseconds settle_interval{5};

  /// How many events this many handlers finish in that time: at least one each, at most `most`.
  [[nodiscard]] std::size_t events_in(std::chrono::nanoseconds time, std::size_t handlers,
                                      std::size_t most) const {
    const std::scoped_lock lock(mutex_);
    if (!measured_) return std::min(handlers, most);
    const double events =
        static_cast<double>(time.count()) / std::max(mean_ns_, 1.0) * static_cast<double>(handlers);
    if (events >= static_cast<double>(most)) return most;
    return std::max(static_cast<std::size_t>(events), handlers);
  }

  const limits limits_;
  mutable std::mutex mutex_{};
  double mean_ns_ = 0;  // per event
  bool measured_ = false;
};

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
