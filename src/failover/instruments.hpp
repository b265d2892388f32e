#pragma once

#include <holdfast/failover/status.hpp>
#include <holdfast/metrics.hpp>
#include <holdfast/version.hpp>

#include "failover/tallies.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE {

/// A point's series, asked for once. Everything here is behind `isolate`: a sink that throws costs a count.
/// Thread-safety: every function may be called from any thread.
class instruments {
 public:
  instruments(std::shared_ptr<metrics_sink> sink, std::string_view name, std::string_view domain, double expiry_seconds);

  /// Adds to the series of a tally, if it has one.
  void add(tally which);
  void upstream(std::chrono::steady_clock::duration took, bool succeeded);
  void store(std::chrono::steady_clock::duration took) { store_seconds_->observe(seconds(took)); }
  void recover(std::chrono::steady_clock::duration took) { recover_seconds_->observe(seconds(took)); }
  void payload(std::size_t bytes) { payload_bytes_->observe(static_cast<double>(bytes)); }
  void served(std::chrono::microseconds age) { age_seconds_->observe(std::chrono::duration<double>(age).count()); }
  /// Types only, never messages; a point has so many, the others are one.
  void exception(const std::string& type);
  void gauges(breaker_state breaker, const point_numbers& numbers, std::uint64_t running);
  /// Of the point's effective name. A point whose entries are never counted has no such series.
  void entries(std::uint64_t counted);

 private:
  static double seconds(std::chrono::steady_clock::duration took) { return std::chrono::duration<double>(took).count(); }

  std::shared_ptr<metrics_sink> sink_;
  const std::string name_;
  const std::string domain_;
  std::array<std::shared_ptr<metrics::counter>, tally_count> counters_{};
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
  point_numbers before_{};  // of the last gauges
};

}  // namespace HOLDFAST_NAMESPACE
