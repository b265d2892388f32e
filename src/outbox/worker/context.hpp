#pragma once

/// \file
/// What the parts of a worker share:
///
///     worker_core          composes the parts; the public class `worker` owns it
///       run_loop           threads: pollers and the renewal of leases
///         lane_polling     claims events of one lane
///           lane_locks     locks of lanes
///       event_handling     calls handlers on the executor
///         handler_routes   handlers and breakers by type of event
///         event_settling   turns outcomes into settlements and sends them
///       event_leases       batches in flight, and their leases
///       backlog_sampling   statistics of the outbox, for health and metrics
///
/// All parts use one mutex. Lock it before the mutex of an event_batch, never after. Handlers and
/// the outbox are called without any lock.

#include <holdfast/worker.hpp>

#include "outbox/worker/batch_sizing.hpp"
#include "outbox/worker/metrics.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::outbox {

using steady_time = std::chrono::steady_clock::time_point;

struct worker_context {
  /// Throws errc::invalid_argument if the options are invalid.
  worker_context(holdfast::outbox source, worker_options unchecked_options);

  [[nodiscard]] steady_time now() const { return clock->steady(); }
  /// Owner of the lane lock in claims. Empty if workers compete.
  [[nodiscard]] std::string claim_owner() const { return options.compete ? std::string() : owner; }
  /// Number of events of one key to claim.
  [[nodiscard]] std::size_t run_length() const;
  /// The first lease of a run that is claimed by the step that settles the run before it. It is
  /// short: if the answer of that step is lost, the run waits for the end of this lease, because
  /// the worker does not know that it has it.
  [[nodiscard]] std::chrono::milliseconds continued_lease() const;
  /// Time after which a lease of this duration is extended. It becomes `options.lease` then.
  [[nodiscard]] std::chrono::milliseconds time_to_renewal(std::chrono::milliseconds lease) const;
  /// Stops all parts: no more claims, and events that no handler has started are released.
  void stop();
  /// Logs that an event is parked, and calls the handler for it, if the options have one.
  void announce_parking(const handler_options& handling, const claimed_event& event,
                        std::string_view reason) const;
  /// Remembers an error of the outbox for `health`, until the next claim succeeds.
  void set_problem(const error& cause);
  void clear_problem();

  /// A pointer to the worker_core. Tasks and threads that may outlive the public `worker`, because
  /// a handler hangs, hold it.
  [[nodiscard]] std::shared_ptr<void> keep_alive() const { return core.lock(); }

  const holdfast::outbox outbox;
  const worker_options options;
  const std::shared_ptr<const holdfast::clock> clock;
  /// Unique name of this worker, for the locks of lanes.
  const std::string owner;
  const logger log;
  worker_metrics metrics;
  const std::shared_ptr<holdfast::executor> executor;
  batch_sizing sizing;
  std::weak_ptr<void> core{};

  /// Guards the state of all parts.
  mutable std::mutex mutex{};
  /// Notified when a batch or a poller ends, and when the worker stops.
  std::condition_variable changed{};
  std::atomic<bool> stopping{false};
  std::optional<error> problem{};
};

/// Throws errc::invalid_argument if the options are invalid.
void check_handler_options(const handler_options& options);

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
