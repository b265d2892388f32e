#pragma once

#include <holdfast/metrics.hpp>
#include <holdfast/version.hpp>

#include <memory>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::sequence {

/// The metrics of one sequence.
struct instruments {
  instruments(metrics_sink& sink, std::string_view sequence_name);

  std::shared_ptr<metrics::counter> ids;
  std::shared_ptr<metrics::counter> refills;
  std::shared_ptr<metrics::counter> failures;
  std::shared_ptr<metrics::counter> stalls;
  std::shared_ptr<metrics::counter> redraws;
  std::shared_ptr<metrics::histogram> refill_seconds;
  std::shared_ptr<metrics::gauge> at_risk;
  std::shared_ptr<metrics::gauge> remaining;
};

}  // namespace HOLDFAST_NAMESPACE::detail::sequence
