#pragma once

/// \file
/// The metrics `holdfast_ready` and `holdfast_missing`: what /readyz says, for a Prometheus.

#include <holdfast/metrics.hpp>
#include <holdfast/version.hpp>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// Thread-safety: may be called from any thread.
class readiness_metrics {
 public:
  explicit readiness_metrics(std::shared_ptr<metrics_sink> sink);

  /// Brings the metrics up to date: `missing` is that of `readiness`.
  void update(const std::vector<std::string>& missing);

 private:
  const std::shared_ptr<metrics_sink> sink_;
  const std::shared_ptr<metrics::gauge> ready_;
  std::mutex mutex_{};
  /// Of every name that was missing once: 1 if it is missing now.
  std::map<std::string, std::shared_ptr<metrics::gauge>> missing_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve
