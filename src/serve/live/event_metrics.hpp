#pragma once

/// \file
/// The metrics `holdfast_sse_*`.

#include <holdfast/metrics.hpp>
#include <holdfast/version.hpp>

#include "serve/followed_counter.hpp"
#include "serve/live/event_hub.hpp"

#include <memory>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// Thread-safety: none.
class event_metrics {
 public:
  explicit event_metrics(metrics_sink& sink);

  /// Brings the metrics up to date.
  void update(const event_hub_counts& counts);

 private:
  std::shared_ptr<metrics::gauge> streams_;
  followed_counter refused_;
  followed_counter published_;
  followed_counter too_large_;
  followed_counter resumed_;
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve
