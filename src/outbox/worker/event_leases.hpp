#pragma once

#include "outbox/worker/context.hpp"
#include "outbox/worker/event_batch.hpp"
#include "outbox/worker/routes.hpp"

#include <chrono>
#include <cstddef>
#include <list>
#include <memory>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::outbox {

/// The batches in flight, and the leases of their events.
/// Thread-safety: every function may be called from any thread.
class event_leases {
 public:
  event_leases(worker_context& context, const handler_routes& routes)
      : context_(context), routes_(routes) {}

  /// Splits a claim into batches. Their leases are kept until `remove`.
  std::vector<std::shared_ptr<event_batch>> add(claimed claim, std::size_t lane,
                                                steady_time claimed_at,
                                                std::chrono::milliseconds lease);
  void remove(const std::shared_ptr<event_batch>& batch);

  /// Extends the leases that are due for it. Requests stop from handlers that lost theirs.
  void renew(steady_time now);
  /// Gives up all leases, and requests stop from all handlers.
  void abandon() { expire(steady_time::max()); }

  /// The batches in flight.
  [[nodiscard]] std::vector<std::shared_ptr<event_batch>> batches() const;
  /// A batch waits because of a limit of its type. Its events do not keep the worker from claiming
  /// events of other types. Returns false, and changes nothing, if too many wait.
  [[nodiscard]] bool suspend(const event_batch& batch);
  void resume(const event_batch& batch);

  /// Number of events in flight.
  [[nodiscard]] std::size_t in_flight() const;
  /// Of these, the events that are handled or wait for a thread.
  [[nodiscard]] std::size_t active() const;
  /// Number of batches in flight.
  [[nodiscard]] std::size_t batch_count() const;

  /// Waits until there is room for another claim, or the worker stops.
  void wait_for_room(std::chrono::milliseconds longest);
  /// Waits until an event is finished or none is in flight, or the worker stops.
  void wait_for_progress(std::chrono::milliseconds longest);
  /// Returns false if batches are still in flight at the deadline.
  bool wait_until_empty(steady_time deadline);

 private:
  struct lease_reference {
    event_batch* batch = nullptr;
    std::size_t index = 0;  // first event of a run, or an event without a key
  };

  [[nodiscard]] std::vector<std::shared_ptr<event_batch>> split(
      claimed claim, std::size_t lane, steady_time claimed_at,
      std::chrono::milliseconds lease) const;
  void extend(const std::vector<std::shared_ptr<event_batch>>& batches, steady_time now);
  void mark_lost(const std::vector<lease_reference>& leases);
  void expire(steady_time lease_ends_by);

  worker_context& context_;
  const handler_routes& routes_;
  std::list<std::shared_ptr<event_batch>> batches_{};  // guarded by context_.mutex
  std::size_t in_flight_ = 0;                          // guarded by context_.mutex
  std::size_t suspended_ = 0;                          // guarded by context_.mutex
};

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
