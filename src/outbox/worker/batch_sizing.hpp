#pragma once

#include <holdfast/version.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <mutex>

namespace HOLDFAST_NAMESPACE::detail::outbox {

/// Decides how many events to claim, from the measured duration of handlers and settlements: enough
/// to keep all handlers busy for `claim_time`, but not so many that the last one waits long.
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

  /// A claim must be able to fill one call of a handler that gets so many events.
  void set_minimum(std::size_t events) { minimum_ = std::max(minimum_, events); }

  [[nodiscard]] std::size_t minimum() const noexcept { return minimum_; }

  /// Records that one thread handled `events` events, and then settled them together.
  void record(std::size_t events, std::chrono::nanoseconds handling,
              std::chrono::nanoseconds settling) {
    if (events == 0) return;
    const double sample = static_cast<double>(handling.count()) / static_cast<double>(events);
    const std::scoped_lock lock(mutex_);
    // The mean of many events is worth more than a single one.
    const double weight = !measured_ ? 1 : events >= 8 ? 0.5 : 0.2;
    handling_ns_ += weight * (sample - handling_ns_);
    settling_ns_ += weight * (static_cast<double>(settling.count()) - settling_ns_);
    measured_ = true;
  }

  /// Maximum number of events in flight: the claim that is being handled, and the next one, so that
  /// handlers do not wait for it. Before the first measurement: one for each handler.
  [[nodiscard]] std::size_t in_flight_limit() const {
    const std::scoped_lock lock(mutex_);
    const std::size_t most = 2 * limits_.most;
    if (!measured_) return std::max(std::min(limits_.concurrency, most), minimum_);
    // Each thread handles and settles one batch after the other.
    const auto batch = static_cast<double>(measured_batch_size());
    const double batch_ns = std::max(batch * handling_ns_ + settling_ns_, 1.0);
    const double rounds = static_cast<double>(limits_.claim_time.count()) * 1000 / batch_ns;
    const double events = batch * std::max(rounds, 1.0) * static_cast<double>(limits_.concurrency);
    if (events >= static_cast<double>(most)) return std::max(most, minimum_);
    return std::max(static_cast<std::size_t>(events), minimum_);
  }
  /// Number of events that one thread handles before it settles them together.
  [[nodiscard]] std::size_t batch_size() const {
    const std::scoped_lock lock(mutex_);
    return measured_ ? measured_batch_size() : 1;
  }

 private:
  static constexpr std::chrono::nanoseconds settle_interval = std::chrono::milliseconds(5);

  /// How many events one handler finishes in `settle_interval`.
  [[nodiscard]] std::size_t measured_batch_size() const {
    const std::size_t most = (limits_.most + limits_.concurrency - 1) / limits_.concurrency;
    const double events =
        static_cast<double>(settle_interval.count()) / std::max(handling_ns_, 1.0);
    if (events >= static_cast<double>(most)) return most;
    return std::max<std::size_t>(static_cast<std::size_t>(events), 1);
  }

  const limits limits_;
  mutable std::mutex mutex_{};
  double handling_ns_ = 0;   // of one event
  double settling_ns_ = 0;   // of one batch
  std::size_t minimum_ = 1;  // set before the worker runs
  bool measured_ = false;
};

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
