#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/version.hpp>

#include "base/deadline.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

namespace HOLDFAST_NAMESPACE::detail::store {

/// A wait that ends at a deadline of the given clock. If that clock stands still, the wait ends
/// when the same time has passed on the system clock.
class bounded_wait {
 public:
  using time = std::chrono::steady_clock::time_point;

  bounded_wait(const clock& c, time deadline)
      : clock_(c),
        deadline_(deadline),
        system_deadline_(
            moment_after(std::chrono::steady_clock::now(), time_until(deadline, c.steady()))) {}

  /// Waits once, for a notification or a short time. Returns false, without waiting, after the
  /// deadline.
  bool wait_once(std::unique_lock<std::mutex>& lock, std::condition_variable& changed) const {
    // A test's clock advances without a notification, so it is read again after this time.
    constexpr std::chrono::milliseconds longest{50};
    const auto remaining = time_until(deadline_, clock_.steady());
    if (remaining == time::duration::zero() || std::chrono::steady_clock::now() >= system_deadline_)
      return false;
    changed.wait_for(lock, std::min<std::chrono::nanoseconds>(remaining, longest));
    return true;
  }

 private:
  const clock& clock_;
  time deadline_;
  time system_deadline_;
};

}  // namespace HOLDFAST_NAMESPACE::detail::store
