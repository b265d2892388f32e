#pragma once

#include "outbox/worker/context.hpp"
#include "outbox/worker/delivery_log.hpp"
#include "outbox/worker/event_batch.hpp"
#include "outbox/worker/event_leases.hpp"
#include "outbox/worker/event_settling.hpp"
#include "outbox/worker/routes.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::outbox {

/// Calls the handlers for batches of events, at most `concurrency` at the same time.
///
/// A batch is in the hands of one thread at a time:
///
///     waiting for a thread -> handled -> settled and removed
///                             |  ^
///                             |  +-- another thread continues: the handler exceeded its time
///                             |      limit and was given up
///                             +----> waiting for its type: too many handlers of it run
///
/// A thread whose handler was given up owns nothing any more. When the handler returns, it drops
/// the outcome. Until then the event may be delivered again: its new claim has a larger fence.
///
/// Thread-safety: every function may be called from any thread.
class event_handling {
 public:
  event_handling(worker_context& context, const handler_routes& routes, event_leases& leases,
                 event_settling& settling)
      : context_(context),
        routes_(routes),
        leases_(leases),
        settling_(settling),
        delivery_log_(context) {}

  /// Handles the batches from this index on, each in a task of the executor.
  void post(const std::vector<std::shared_ptr<event_batch>>& batches, std::size_t first);
  /// Handles a batch on this thread, and then batches that wait for a free thread. If enough
  /// handlers run, the batch waits for one of them, and this returns at once.
  void handle(std::shared_ptr<event_batch> batch);
  /// When the worker stops: releases the batches that wait for a handler, which may hang. After the
  /// deadline the rest is left to its leases.
  void release_waiting(steady_time deadline);
  /// Requests stop from handlers that exceeded their time limit. Gives up those that were requested
  /// a while ago: their events have failed, and another thread continues with their batches.
  void check_time_limits(steady_time now);
  /// Number of handlers that were given up and have not returned.
  [[nodiscard]] std::size_t given_up() const;

 private:
  enum class batch_status : std::uint8_t {
    finished,
    waiting,   ///< for its type
    given_up,  ///< another thread continues with it
  };
  enum class slot_status : std::uint8_t { acquired, waiting, refused };
  /// A handler that was given up, and the number of its events.
  struct late_call {
    std::shared_ptr<event_batch> batch{};
    std::shared_ptr<handler_call> call{};
    std::size_t count = 1;
  };
  /// Which batch a thread should handle next, if any.
  struct next_step {
    std::shared_ptr<event_batch> batch{};
    bool given_up = false;
  };

  /// Handles batches until none waits. This thread is one of `busy_threads_`.
  void handle_until_idle(std::shared_ptr<event_batch> batch);
  [[nodiscard]] next_step handle_batch(const std::shared_ptr<event_batch>& batch);
  [[nodiscard]] batch_status handle_events(const std::shared_ptr<event_batch>& batch,
                                           continued_claim& next);
  /// Delivers the next event, or several of them if the handler gets batches.
  [[nodiscard]] batch_status deliver_next(const std::shared_ptr<event_batch>& batch);
  /// Makes these events the current ones. Returns how many of them may be delivered: 0 if the lease
  /// of the first one is lost or over.
  [[nodiscard]] std::size_t begin_events(event_batch& batch, std::size_t first, std::size_t count);
  /// Number of adjacent events from this one on that one call of the handler gets.
  [[nodiscard]] std::size_t group_size(const event_batch& batch, std::size_t first,
                                       const handler_route& route) const;
  /// Returns nothing if the handler was given up meanwhile.
  [[nodiscard]] std::optional<std::vector<outcome>> call_handler(
      event_batch& batch, std::size_t count, const std::shared_ptr<handler_call>& call);
  [[nodiscard]] std::vector<outcome> call_route(const handler_route& route,
                                                std::span<const claimed_event> events,
                                                holdfast::fence token,
                                                const std::stop_token& lost) const;
  void record_outcomes(const event_batch& batch, const handler_call& call,
                       const std::vector<outcome>& outcomes, std::chrono::nanoseconds duration);
  /// Adds the settlements of the events from `state.next` on.
  void add_outcomes(event_batch& batch, const std::vector<outcome>& outcomes);
  void settle(event_batch& batch, bool claim_next_runs, continued_claim& next);
  [[nodiscard]] slot_status acquire_slot(handler_route& route,
                                         const std::shared_ptr<event_batch>& batch);
  void release_slot(handler_route& route);
  /// Continues with a batch that waits for a handler of this type, if one may run.
  void wake_waiting(handler_route& route);
  void replace_thread(const late_call& late);
  void continue_batch(const late_call& late);

  worker_context& context_;
  const handler_routes& routes_;
  event_leases& leases_;
  event_settling& settling_;
  delivery_log delivery_log_;
  std::size_t busy_threads_ = 0;                        // guarded by context_.mutex
  std::size_t given_up_ = 0;                            // guarded by context_.mutex
  std::deque<std::shared_ptr<event_batch>> waiting_{};  // guarded by context_.mutex
};

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
