#pragma once

#include "outbox/worker/context.hpp"

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::outbox {

/// The locks of lanes that a worker holds: at most one worker claims from a lane, unless workers
/// compete.
///
/// Workers announce themselves in the outbox, so that each knows its share of the lanes: of 8 lanes
/// and 3 workers, 3, 3 and 2. A worker takes free lanes up to its share, and releases lanes above
/// it. Order is kept: events of a released lane that are in flight stay leased, and a key waits for
/// the lease of its first event. A lane that stays free for `lock_time`, because the worker that
/// should take it does not, is taken by any worker (`adopted`).
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
  /// Announces this worker if it is time, and releases lanes above its share.
  void balance(steady_time now);
  /// Logs how many lanes the worker holds, when the number has changed.
  void report(steady_time now);
  /// Releases all locks, and tells the other workers that this one has ended.
  void release_all();
  [[nodiscard]] bool may_claim(std::size_t lane) const;
  /// Number of lanes that the worker may claim from.
  [[nodiscard]] std::size_t count() const;

 private:
  struct lane_lock {
    bool held = false;
    steady_time renew_at{};
    steady_time expires_at{};
    /// Taken although the worker had its share.
    bool adopted = false;
    /// While the worker has its share: when to check whether the lane is free, and whether it was
    /// free at the last check.
    steady_time next_check = steady_time::min();
    bool was_free = false;
  };
  [[nodiscard]] std::size_t held_count() const;  // needs the mutex
  [[nodiscard]] std::optional<std::chrono::milliseconds> wait_time(const lock_grant& grant) const;
  [[nodiscard]] bool stays_free(std::size_t lane);
  [[nodiscard]] std::vector<std::size_t> take_surplus(const std::vector<std::string>& workers);
  void unlock(const std::vector<std::size_t>& lanes);

  worker_context& context_;
  // guarded by context_.mutex
  std::vector<lane_lock> locks_;
  std::size_t share_;
  std::vector<std::string> workers_{};
  steady_time next_balance_ = steady_time::min();
  bool announced_ = false;
  std::string last_holder_{};
  std::optional<std::size_t> reported_count_{};
  std::optional<steady_time> changed_at_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
