#include "serve/readiness_metrics.hpp"

#include <algorithm>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve {

readiness_metrics::readiness_metrics(std::shared_ptr<metrics_sink> sink)
    : sink_(std::move(sink)),
      ready_(sink_->gauge("holdfast_ready", {}, "1 if /readyz says that nothing is missing")) {}

void readiness_metrics::update(const std::vector<std::string>& missing) {
  const std::scoped_lock lock(mutex_);
  for (const auto& name : missing) {
    if (missing_.contains(name)) continue;
    missing_[name] = sink_->gauge("holdfast_missing", {{.name = "name", .value = name}},
                                  "1 if /readyz names this as missing");
  }
  for (const auto& [name, series] : missing_)
    series->set(std::ranges::find(missing, name) != missing.end() ? 1 : 0);
  ready_->set(missing.empty() ? 1 : 0);
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
