#pragma once

#include <holdfast/failover/status.hpp>
#include <holdfast/metrics.hpp>

#include "failover/counters.hpp"

#include <mutex>
#include <set>

namespace HOLDFAST_NAMESPACE::detail::failover {

/// The metrics of a point. The sink is isolated: an exception of the application's sink is counted
/// and does not reach a call.
/// Thread-safety: every function may be called from any thread.
class instruments {
 public:
  instruments(std::shared_ptr<metrics_sink> sink, std::string_view name, std::string_view domain,
              double expiry_seconds);

  /// Adds 1 to the series of a counter, if it has one.
  void add(counter index);
  void upstream(std::chrono::steady_clock::duration duration, bool succeeded);
  void store(std::chrono::steady_clock::duration duration) {
    store_seconds_->observe(seconds(duration));
  }
  void recover(std::chrono::steady_clock::duration duration) {
    recover_seconds_->observe(seconds(duration));
  }
  void payload(std::size_t bytes) { payload_bytes_->observe(static_cast<double>(bytes)); }
  void served(std::chrono::microseconds age) {
    age_seconds_->observe(std::chrono::duration<double>(age).count());
  }
  /// Types only, never messages; a point has so many, the others are one.
  void exception(const std::string& type);
  void gauges(breaker_state breaker, const point_numbers& numbers, std::uint64_t running);
  /// Sets the number of entries of the effective name. Creates the series on first use.
  struct outlook_seconds {
    double first;
    double half;
    double most;
  };
  /// Time until the first, half, and 90 % of the answers that cover calls have expired.
  void outlook(const outlook_seconds& seconds);
  /// The part of recent calls that kept answers could have served.
  void coverage(double part);
  void entries(std::uint64_t count);

 private:
  static double seconds(std::chrono::steady_clock::duration duration) {
    return std::chrono::duration<double>(duration).count();
  }

  std::shared_ptr<metrics_sink> sink_;
  const std::string name_;
  const std::string domain_;
  std::array<std::shared_ptr<metrics::counter>, counter_count> counters_{};
  std::array<std::shared_ptr<metrics::counter>, 2> impact_{};
  std::array<std::shared_ptr<metrics::histogram>, 2> upstream_seconds_{};
  std::shared_ptr<metrics::histogram> store_seconds_;
  std::shared_ptr<metrics::histogram> recover_seconds_;
  std::shared_ptr<metrics::histogram> payload_bytes_;
  std::shared_ptr<metrics::histogram> age_seconds_;
  std::shared_ptr<metrics::gauge> breaker_;
  std::shared_ptr<metrics::gauge> running_;
  std::shared_ptr<metrics::gauge> health_;
  std::shared_ptr<metrics::gauge> stale_ratio_;
  std::mutex mutex_{};
  std::set<std::string, std::less<>> exception_types_{};
  point_numbers last_numbers_{};  // of the last call of `gauges`
};

}  // namespace HOLDFAST_NAMESPACE::detail::failover
