#pragma once

#include "outbox/worker/context.hpp"
#include "outbox/worker/event_batch.hpp"
#include "outbox/worker/event_handling.hpp"
#include "outbox/worker/event_leases.hpp"
#include "outbox/worker/lane_locks.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::outbox {

enum class poll_status : std::uint8_t {
  events,      ///< events were claimed: poll again
  nothing,     ///< wait for a signal of the lane, or for `wait`
  no_room,     ///< enough events are in flight: wait for handlers
  locked_out,  ///< another worker holds the lock of the lane: wait
  paused,      ///< the outbox is paused, or failed: wait
};

struct poll_result {
  poll_status status = poll_status::nothing;
  std::chrono::milliseconds wait{};
  /// Nothing is due, and nothing was in flight before the claim.
  bool quiet = false;
  /// The batch that the caller handles, if it asked for one.
  std::shared_ptr<event_batch> first_batch{};
};

/// Claims the events of a lane and passes them to handlers.
/// Thread-safety: every function may be called from any thread, for different lanes.
class lane_polling {
 public:
  lane_polling(worker_context& context, lane_locks& locks, event_leases& leases,
               event_handling& handling, event_settling& settling);

  /// Acquires the lock of the lane, drains tickets, claims as many events as there is room for, and
  /// posts them to the executor. With `keep_first`, returns the first batch instead of posting it.
  /// Throws what the outbox throws.
  poll_result poll_lane(std::size_t lane, bool keep_first);
  /// The lane was signalled: there may be a new event, or a ticket that expires before all others.
  void set_signalled(std::size_t lane);

 private:
  struct lane_state {
    steady_time drain_at = steady_time::min();
    bool signalled = false;
    /// An expired ticket waits for a transaction; see drained::held_up.
    bool ticket_held_up = false;
  };

  /// Turns expired tickets into events if it is time. Returns how long to wait until the next time.
  [[nodiscard]] std::chrono::milliseconds drain_tickets(std::size_t lane);
  [[nodiscard]] bool take_signal(std::size_t lane);

  worker_context& context_;
  lane_locks& locks_;
  event_leases& leases_;
  event_handling& handling_;
  event_settling& settling_;
  std::vector<lane_state> lanes_;  // guarded by context_.mutex
};

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
