#pragma once

/// \file
/// The implementation of class `worker`. See context.hpp for its parts.

#include <holdfast/worker.hpp>

#include "outbox/worker/backlog_sampling.hpp"
#include "outbox/worker/context.hpp"
#include "outbox/worker/event_handling.hpp"
#include "outbox/worker/event_leases.hpp"
#include "outbox/worker/event_settling.hpp"
#include "outbox/worker/lane_locks.hpp"
#include "outbox/worker/lane_polling.hpp"
#include "outbox/worker/routes.hpp"
#include "outbox/worker/run_loop.hpp"

#include <cstddef>
#include <memory>
#include <stop_token>
#include <string>

namespace HOLDFAST_NAMESPACE::detail::outbox {

/// Composes the parts of a worker. Tests call poll_lane, renew_leases and sample_backlog
/// themselves; `run` calls them on threads.
///
/// Tasks of the executor own it, so that a handler that hangs may outlive the public `worker`.
class worker_core {
 public:
  /// An empty handler leaves events of types without a handler to other workers.
  static std::shared_ptr<worker_core> create(holdfast::outbox outbox, event_handler handler,
                                             worker_options options);
  worker_core(const worker_core&) = delete;
  worker_core& operator=(const worker_core&) = delete;

  void handle(const std::string& type, event_handler handler, const handler_options& options);
  void handle_batch(const std::string& type, batch_handler handler, std::size_t most,
                    const handler_options& options);
  void handle_other_types(batch_handler handler, std::size_t most);
  [[nodiscard]] const handler_options& default_options() const noexcept {
    return context_.options.handling;
  }

  worker_report run(const std::stop_token& stop, bool until_empty);
  /// Stops claiming, and releases events that no handler has started.
  void stop() { context_.stop(); }
  /// Requests stop from the handlers that still run: their events are lost.
  void abandon() { leases_.abandon(); }

  poll_result poll_lane(std::size_t lane) { return polling_.poll_lane(lane, false); }
  void renew_leases() { loop_.renew_leases(); }
  void sample_backlog() { backlog_.sample(); }
  void release_locks() { locks_.release_all(); }

  [[nodiscard]] std::size_t in_flight() const { return leases_.in_flight(); }
  [[nodiscard]] worker_numbers count() const;
  [[nodiscard]] worker_health health() const;

 private:
  worker_core(holdfast::outbox outbox, event_handler handler, worker_options options);

  void refuse_while_running() const;

  worker_context context_;
  handler_routes routes_;
  lane_locks locks_;
  event_leases leases_;
  event_settling settling_;
  event_handling handling_;
  lane_polling polling_;
  backlog_sampling backlog_;
  run_loop loop_;
};

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
