#pragma once

#include "outbox/worker/context.hpp"
#include "outbox/worker/event_batch.hpp"
#include "outbox/worker/event_leases.hpp"
#include "outbox/worker/event_settling.hpp"
#include "outbox/worker/routes.hpp"

#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::outbox {

/// Calls the handlers for batches of events, at most `concurrency` at the same time.
/// Thread-safety: every function may be called from any thread.
class event_handling {
 public:
  event_handling(worker_context& context, const handler_routes& routes, event_leases& leases,
                 event_settling& settling)
      : context_(context), routes_(routes), leases_(leases), settling_(settling) {}

  /// Handles the batches from this index on, each in a task of the executor.
  void post(const std::vector<std::shared_ptr<event_batch>>& batches, std::size_t first);
  /// Handles a batch on this thread, and then batches that wait for a free thread. If enough
  /// handlers run, the batch waits for one of them, and this returns at once.
  void handle(std::shared_ptr<event_batch> batch);
  /// When the worker stops: releases the batches that wait for a handler, which may hang. After the
  /// deadline the rest is left to its leases.
  void release_waiting(steady_time deadline);

 private:
  /// Returns a batch that this thread should handle next: the next run of a key.
  std::shared_ptr<event_batch> handle_batch(const std::shared_ptr<event_batch>& batch);
  void handle_events(event_batch& batch, continued_claim& next);
  /// Makes an event the current one. Returns false if its lease is lost.
  [[nodiscard]] static bool begin_event(event_batch& batch, std::size_t index);
  [[nodiscard]] outcome deliver(event_batch& batch, std::size_t index);

  worker_context& context_;
  const handler_routes& routes_;
  event_leases& leases_;
  event_settling& settling_;
  std::size_t busy_threads_ = 0;                        // guarded by context_.mutex
  std::deque<std::shared_ptr<event_batch>> waiting_{};  // guarded by context_.mutex
};

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
