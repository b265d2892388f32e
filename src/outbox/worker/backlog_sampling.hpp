#pragma once

#include "outbox/worker/context.hpp"

namespace HOLDFAST_NAMESPACE::detail::outbox {

/// Reads the statistics of the outbox every few seconds, for health and metrics.
/// Thread-safety: every function may be called from any thread.
class backlog_sampling {
 public:
  explicit backlog_sampling(worker_context& context) : context_(context) {}

  /// Reads the statistics, unless the last sample is recent and `force` is false. Throws what the
  /// outbox throws.
  void sample(bool force = false);
  [[nodiscard]] outbox_stats last() const;

 private:
  worker_context& context_;
  outbox_stats stats_{};                          // guarded by context_.mutex
  steady_time next_sample_ = steady_time::min();  // guarded by context_.mutex
};

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
