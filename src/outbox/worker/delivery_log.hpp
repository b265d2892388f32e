#pragma once

/// \file
/// Tells operators when deliveries of a type of events fail, and when they succeed again.

#include <holdfast/log.hpp>
#include <holdfast/outbox/outcome.hpp>

#include "outbox/worker/context.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>

namespace HOLDFAST_NAMESPACE::detail::outbox {

/// For each type: a warning at the first failure, then at most one a minute with the number of
/// failures, and one info after each warning when a delivery succeeds. A type that fails now and
/// then causes at most one of each in a minute.
///
/// `throttled` counts as a failure: otherwise a receiver that always asks for a pause would go
/// unnoticed. `permanent` does not: the receiver answered, and the worker reports the parked event.
///
/// Thread-safety: every function may be called from any thread.
class delivery_log {
 public:
  explicit delivery_log(worker_context& context) : context_(context) {}

  void record(const std::string& type, const outcome& outcome);

 private:
  struct type_state {
    /// Failures since the last warning.
    std::uint64_t failures = 0;
    /// Failures since the last success that was reported.
    std::uint64_t total = 0;
    steady_time next_warning = steady_time::min();
    bool warned = false;
  };
  void record_failure(const std::string& type, const outcome& outcome);
  void record_success(const std::string& type);

  worker_context& context_;
  std::mutex mutex_{};
  /// Types that failed. Guarded by the mutex.
  std::map<std::string, type_state, std::less<>> types_{};
  /// Size of `types_`, so that a worker without failures needs no lock.
  std::atomic<std::size_t> type_count_{0};
};

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
