#pragma once

#include "outbox/worker/context.hpp"

#include <chrono>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::outbox {

/// The locks of lanes that a worker holds: at most one worker claims from a lane, unless workers
/// compete.
/// Thread-safety: every function may be called from any thread.
class lane_locks {
 public:
  static constexpr std::chrono::milliseconds shortest_wait{20};

  explicit lane_locks(worker_context& context);

  /// Acquires the lock of a lane if the worker does not hold it. Returns nothing if the worker may
  /// claim from the lane; otherwise how long to wait before the next attempt.
  std::optional<std::chrono::milliseconds> acquire(std::size_t lane);
  /// Called when another worker holds the lock.
  void lose(std::size_t lane, std::string_view reason);
  /// Renews the locks that are due for it.
  void renew(steady_time now);
  void release_all();
  /// Number of lanes that the worker may claim from.
  [[nodiscard]] std::size_t count() const;

 private:
  struct lane_lock {
    bool held = false;
    steady_time renew_at{};
    steady_time expires_at{};
  };

  worker_context& context_;
  std::vector<lane_lock> locks_;  // guarded by context_.mutex
};

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
