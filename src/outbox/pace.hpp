#pragma once

#include <holdfast/version.hpp>

#include <chrono>
#include <cstddef>
#include <mutex>

namespace HOLDFAST_NAMESPACE {

/// How many events to claim at once, by the time that handlers really take: enough to keep all of them busy for a moment, never so many that
/// the last of a batch waits long for its turn.
/// Thread-safety: every function may be called from any thread.
class pace {
 public:
  struct limits {
    std::size_t concurrency = 4;                                        ///< handlers at the same time
    std::size_t most = 1000;                                            ///< events in one claim
    std::chrono::microseconds target = std::chrono::milliseconds(250);  ///< how long one claim should keep the handlers busy
    std::chrono::microseconds turn = std::chrono::milliseconds(5);      ///< how long one handler may go on before it reports
  };
  explicit pace(limits how) : how_(how) {}

  /// So many events took so long, one after the other.
  void handled(std::size_t events, std::chrono::nanoseconds took) {
    if (events == 0) return;
    const double each = static_cast<double>(took.count()) / static_cast<double>(events);
    const std::scoped_lock lock(mutex_);
    // A batch of many tells more than one event does.
    const double weight = events >= 8 ? 0.5 : 0.2;
    mean_ = known_ ? mean_ + weight * (each - mean_) : each;
    known_ = true;
  }

  /// How many may be in flight: the claim that is being handled, and the next one, so that handlers do not wait for it. Before anything was
  /// measured: one for each handler.
  [[nodiscard]] std::size_t claim() const { return bounded(how_.target, 2 * how_.most, how_.concurrency); }
  /// How many one handler takes before it reports: its events share one round trip.
  [[nodiscard]] std::size_t turn() const { return bounded(how_.turn, (how_.most + how_.concurrency - 1) / how_.concurrency, 1); }

 private:
  [[nodiscard]] std::size_t bounded(std::chrono::nanoseconds target, std::size_t most, std::size_t handlers) const {
    const std::scoped_lock lock(mutex_);
    if (!known_) return handlers < most ? handlers : most;
    const double wanted = static_cast<double>(target.count()) / (mean_ > 1 ? mean_ : 1) * static_cast<double>(handlers);
    if (wanted >= static_cast<double>(most)) return most;
    const auto whole = static_cast<std::size_t>(wanted);
    return whole < handlers ? handlers : whole;
  }

  const limits how_;
  mutable std::mutex mutex_{};
  double mean_ = 0;  // nanoseconds
  bool known_ = false;
};

}  // namespace HOLDFAST_NAMESPACE
