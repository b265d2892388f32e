#pragma once

#include <holdfast/version.hpp>

namespace HOLDFAST_NAMESPACE::detail::failover {

/// While it exists, `pending::rehearse` on this thread only tells whether the point has an active
/// drill: an event loop must not wait for the store. Another thread then rehearses the call.
/// Thread-safety: used on the thread that made it. Does not nest.
class HOLDFAST_API drill_probe {
 public:
  drill_probe() noexcept;
  drill_probe(const drill_probe&) = delete;
  drill_probe& operator=(const drill_probe&) = delete;
  ~drill_probe();

  /// Whether a call met an active drill.
  [[nodiscard]] bool is_active() const noexcept { return active_; }
  /// For a call of a point with an active drill: tells the probe of this thread. Returns false if
  /// this thread has no probe.
  static bool note_active() noexcept;

 private:
  bool active_ = false;
};

}  // namespace HOLDFAST_NAMESPACE::detail::failover
