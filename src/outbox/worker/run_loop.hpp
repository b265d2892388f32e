#pragma once

#include "outbox/worker/backlog_sampling.hpp"
#include "outbox/worker/context.hpp"
#include "outbox/worker/event_handling.hpp"
#include "outbox/worker/event_leases.hpp"
#include "outbox/worker/lane_locks.hpp"
#include "outbox/worker/lane_polling.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::outbox {

/// The threads of a running worker.
///
/// - Pollers share the lanes. Each polls its lanes in turn and waits when they are empty. On the
///   thread pool of the worker, a poller that claimed events handles the first batch on its thread,
///   without the latency of a task, and a posted task continues to poll. An executor of the user is
///   only for handlers; then pollers have threads of their own.
/// - One thread renews leases and locks.
///
/// Thread-safety: `run` one at a time; everything else from any thread.
class run_loop {
 public:
  run_loop(worker_context& context, lane_locks& locks, event_leases& leases,
           event_handling& handling, lane_polling& polling, backlog_sampling& backlog);

  /// Throws errc::invalid_argument if it is running, and if a thread cannot be started. The report
  /// does not have the totals.
  worker_report run(const std::stop_token& stop, bool until_empty);
  [[nodiscard]] bool running() const noexcept { return running_; }
  /// Checks the time limits of handlers, renews the leases and locks that are due for it, and
  /// shares the lanes with other workers.
  void renew_leases();

 private:
  struct poller_state {
    std::vector<std::size_t> lanes{};
    /// Number of its run. A poller whose handler hangs does not continue in a later run.
    std::uint64_t run = 0;
    /// The only poller of its run.
    bool alone = true;
    bool until_empty = false;
    /// Handles the first batch of a claim itself, while another thread continues to poll.
    bool handles_first_batch = false;
    /// Consecutive errors.
    unsigned failures = 0;
    /// Counts the waits, to wait for each lane in turn.
    std::size_t waits = 0;
    /// Position in `lanes` to begin with: after the one that had events last, so that a busy lane
    /// does not starve the others.
    std::size_t first = 0;
    /// How long to wait for one of several lanes.
    std::chrono::milliseconds slice{};
    /// When it was signalled, until it claims.
    std::optional<steady_time> signalled_at{};
  };
  /// What polling all lanes of a poller found.
  struct poll_round {
    bool any_events = false;
    bool no_room = false;
    /// No lane of this worker has an event. Lanes of other workers do not count.
    bool all_nothing = true;
    /// The lanes without an event that this worker may claim from.
    std::vector<std::size_t> idle_lanes{};
    std::chrono::milliseconds wait{};
  };

  // the life of a run
  void begin_run();
  void start_pollers(bool until_empty, std::vector<std::jthread>& threads);
  void wait_until_stopping();
  void end_pollers(std::vector<std::jthread>& threads);
  bool wait_for_pollers(steady_time deadline);
  [[nodiscard]] std::uint64_t end_handlers();
  void end_renewal();
  void stop_and_wake();
  void renew_until_ended();

  // polling
  void poll(const std::shared_ptr<poller_state>& shared_poller);
  /// Polls each lane once, then waits if there was nothing. Returns false if another thread
  /// continues with this poller.
  [[nodiscard]] bool poll_once(const std::shared_ptr<poller_state>& shared_poller);
  [[nodiscard]] poll_result poll_lane(std::size_t lane, poller_state& poller);
  [[nodiscard]] poll_result poll_failed(const std::exception& problem, poller_state& poller);
  void record_quiet(std::size_t lane, const poll_result& result);
  void check_foreign_lane(std::size_t lane, poll_result& result);
  [[nodiscard]] bool is_check_due(std::size_t lane);
  void sample_backlog();
  void wait_after(const poll_round& round, poller_state& poller);
  void wait_for_signal(poller_state& poller, const poll_round& round);
  void sleep(std::chrono::milliseconds longest);

  worker_context& context_;
  lane_locks& locks_;
  event_leases& leases_;
  event_handling& handling_;
  lane_polling& polling_;
  backlog_sampling& backlog_;

  std::atomic<bool> running_{false};
  std::atomic<bool> ended_{false};        // all handlers of the run are done: stop the renewal
  std::atomic<std::uint64_t> run_ = 0;    // number of the current run
  std::size_t pollers_ = 0;               // of this run that have not ended; guarded
  std::vector<bool> quiet_lanes_;         // nothing is due, for run_until_empty; guarded
  std::vector<steady_time> next_checks_;  // of lanes that other workers hold; guarded
};

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
