#pragma once

/// \file
/// Delivers the events of an outbox: claims them, calls handlers, and settles them.
///
///     holdfast::worker worker{outbox, [](const holdfast::delivery& d) {
///       send_mail(d.event().payload);
///       return holdfast::outcome::done();
///     }};
///     worker.run(stop_token);

#include <holdfast/breaker.hpp>
#include <holdfast/clock.hpp>
#include <holdfast/executor.hpp>
#include <holdfast/log.hpp>
#include <holdfast/metrics.hpp>
#include <holdfast/outbox.hpp>
#include <holdfast/outbox/outcome.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE {

namespace detail::outbox {
class worker_core;
}  // namespace detail::outbox

/// An event as a handler gets it. Delivery is at least once: a handler must be able to get the same
/// event again.
///
/// Lifetime: until the handler returns. Thread-safety: for the thread of the handler; a copy of its
/// stop token may be used anywhere.
class HOLDFAST_API delivery {
 public:
  delivery(const holdfast::outbox& source, const claimed_event& claimed, holdfast::fence token,
           std::stop_token lost)
      : source_(&source), claimed_(&claimed), token_(token), lost_(std::move(lost)) {}
  delivery(const delivery&) = delete;
  delivery& operator=(const delivery&) = delete;

  [[nodiscard]] const holdfast::event& event() const noexcept { return claimed_->event; }
  /// Grows with every claim. Pass it to the receiver, so that it can refuse a worker that is late.
  [[nodiscard]] holdfast::fence fence() const noexcept { return token_; }
  /// How often handlers reported a failure before.
  [[nodiscard]] std::uint32_t attempts() const noexcept { return claimed_->attempts; }
  /// How often the event was claimed, this time included. More than `attempts() + 1` means that a
  /// worker ended without settling it.
  [[nodiscard]] std::uint32_t deliveries() const noexcept { return claimed_->deliveries; }
  /// Stop is requested when the lease is lost, when the time limit of the handler is over, or when
  /// the worker stops and cannot wait any longer. From then on another worker may handle the same
  /// event: a handler should return as soon as it can.
  [[nodiscard]] const std::stop_token& lost() const noexcept { return lost_; }
  /// The event with all its counters.
  [[nodiscard]] const claimed_event& claimed() const noexcept { return *claimed_; }
  /// The outbox of the event.
  [[nodiscard]] const holdfast::outbox& outbox() const noexcept { return *source_; }

 private:
  const holdfast::outbox* source_;
  const claimed_event* claimed_;
  holdfast::fence token_;
  std::stop_token lost_;
};

/// Called from several threads at the same time. An exception is a failure: a holdfast::error that
/// is in doubt becomes `ambiguous`, any other exception `retry`.
using event_handler = std::function<outcome(const delivery&)>;

/// Handles several events of one type with one call, and returns one outcome per event, in the same
/// order. Events of one key are adjacent and in order. After an event that is not done, the
/// outcomes of later events of its key are ignored: these events are delivered again. An exception
/// is the outcome of all events. Called from several threads at the same time.
using batch_handler = std::function<std::vector<outcome>(std::span<const delivery* const>)>;

/// Called when an event failed for good, before it is parked, with the reason. May be called again
/// for the same event if the worker ends before the event is parked. Its exceptions are logged; the
/// event is parked in any case. Called from several threads at the same time.
using parked_handler = std::function<void(const claimed_event& event, std::string_view reason)>;

/// The pause before a failed event is delivered again. It begins with `first` and is multiplied by
/// `factor` after each failure, up to `longest`. Jitter spreads events that failed together.
struct backoff_options {
  /// After the first failure.
  std::chrono::milliseconds first = std::chrono::seconds(1);
  double factor = 2;
  std::chrono::milliseconds longest = std::chrono::minutes(5);
  /// The random part of each pause, from 0 (fixed pauses) to 1 (any pause up to the full one).
  double jitter = 1;
};

/// How events of one type are handled.
struct handler_options {
  backoff_options backoff{};
  /// Park an event after this many failures. 0: no limit.
  std::uint32_t max_attempts = 12;
  /// Park an event that fails when it is older than this. 0: no limit.
  std::chrono::milliseconds max_age{};
  /// What the key of a parked event does.
  park_policy parked = park_policy::skip;
  /// If set: when most events of this type fail, the others wait, and their attempts are not
  /// counted.
  std::optional<breaker_options> breaker{};
  /// How long one call of the handler may take. Then stop is requested on delivery::lost. A handler
  /// that does not return soon after that (a quarter of the limit, at most 5 seconds) is given up:
  /// its event counts as failed (`ambiguous`), and the worker continues on another thread. Set a
  /// longer one for handlers that take longer. 0: no limit.
  std::chrono::milliseconds time_limit = std::chrono::minutes(5);
  /// Maximum number of handlers of this type that run at the same time in this worker, for a
  /// receiver that accepts fewer calls than others. 0: only worker_options::concurrency counts.
  std::size_t concurrency = 0;
  /// Called when an event failed for good, for example to raise an alarm or to undo earlier steps.
  parked_handler on_parked{};
};

struct worker_options {
  /// Number of handlers that run at the same time.
  std::size_t concurrency = 4;
  /// How long events stay reserved after a worker died. Renewed while the worker lives.
  std::chrono::milliseconds lease = std::chrono::seconds(30);
  /// The same for the lock of a lane.
  std::chrono::milliseconds lock_time = std::chrono::seconds(10);
  /// Claim without the locks of lanes, so that several workers share a lane.
  bool compete = false;
  /// Maximum number of events in one claim. The worker claims fewer if handlers are slow.
  std::size_t batch = 500;
  /// Maximum number of events of one key in one claim. After a crash all of them are delivered
  /// again.
  std::size_t run = 50;
  /// How long the handlers should be busy with one claim.
  std::chrono::milliseconds batch_time = std::chrono::milliseconds(250);
  /// The longest sleep: the delay that a lost wake-up can cause.
  std::chrono::milliseconds idle = std::chrono::seconds(1);
  /// Number of threads that wait for events. At most one per lane is used.
  std::size_t pollers = 4;
  /// Turn expired tickets into events, and publish recurring events that are due.
  bool drain_tickets = true;
  /// How long `run` waits for handlers when it stops.
  std::chrono::milliseconds stop_within = std::chrono::seconds(20);
  /// For types without options of their own.
  handler_options handling{};
  /// The system clock if null.
  std::shared_ptr<const holdfast::clock> clock{};
  /// For operators. Payloads are never logged.
  log_sink log{};
  /// The metrics of the outbox if null.
  std::shared_ptr<metrics_sink> metrics{};
  /// Runs the handlers. If null, the worker creates a thread pool for them.
  std::shared_ptr<holdfast::executor> executor{};
};

/// Totals since the worker was created.
struct worker_numbers {
  /// Claims that returned events.
  std::uint64_t claims = 0;
  /// Calls of handlers.
  std::uint64_t deliveries = 0;
  /// Acknowledged events.
  std::uint64_t done = 0;
  /// Events to be retried: failed or ambiguous.
  std::uint64_t retried = 0;
  /// Events to be retried that did not fail: throttled, or their breaker is open.
  std::uint64_t throttled = 0;
  std::uint64_t parked = 0;
  /// Events that were released without calling a handler.
  std::uint64_t released = 0;
  /// Lost leases and locks, and settlements that were refused because of them.
  std::uint64_t fenced = 0;
  /// Settlements in doubt: these events may be delivered again.
  std::uint64_t in_doubt = 0;
  /// Handlers that were given up because they exceeded their time limit.
  std::uint64_t timed_out = 0;
  /// Events that were claimed although this worker has no handler for their type.
  std::uint64_t unhandled = 0;
  /// Tickets that became events.
  std::uint64_t tickets = 0;
  /// Wake-ups by a new event.
  std::uint64_t wakes = 0;
  /// Calls of the outbox that failed.
  std::uint64_t errors = 0;
  /// Events that the worker holds now.
  std::uint64_t in_flight = 0;
};

struct worker_health {
  /// The last call of the outbox succeeded.
  bool available = true;
  /// Otherwise: the error.
  std::string problem{};
  /// Number of lanes that the worker may claim from. With `compete`: all.
  std::size_t locks = 0;
  /// Number of events that are not parked. Sampled every few seconds, like the next two.
  std::uint64_t depth = 0;
  std::uint64_t parked = 0;
  /// How long the oldest due event or ticket has been due.
  std::chrono::milliseconds overdue{};
  /// Types whose breaker is open. `*` is the default handler.
  std::vector<std::string> open{};
};

/// The result of a run.
struct worker_report {
  /// Handlers that did not return in time. Their events are delivered again when the leases end, or
  /// were counted as failed if their time limit was over.
  std::uint64_t still_running = 0;
  /// Totals since the worker was created.
  worker_numbers did{};
};

/// Delivers the events of an outbox to handlers.
///
/// Events without a key are handled in parallel, events of one key one after the other and in
/// order. An event is acknowledged only after its handler returned `done`: a crash does not lose
/// it, but it may be delivered twice. Leases are renewed by a separate thread while handlers run.
/// If one is lost, stop is requested on delivery::lost, and the outbox refuses the outcome.
///
/// Log: a warning at the first failure of a type, then one a minute with the number of failures,
/// and an info when deliveries of the type succeed again.
///
/// Threads: `concurrency` for handlers, one per poller, one for leases. The last one ends with
/// `run`, the others end with the worker. Up to `concurrency` more replace those whose handlers
/// exceed their time limit and do not return; after that the worker delivers with fewer threads.
/// Thread-safety: `run` and `run_until_empty` one at a time; everything else from any thread. After
/// fork the child must not use it.
class HOLDFAST_API worker {
 public:
  /// Handles events of all types. Throws errc::invalid_argument if the options are invalid.
  worker(holdfast::outbox outbox, event_handler handler, worker_options options = {});
  /// Handles the types added with `handle`. Events of other types are left for other workers;
  /// each of them costs a claim now and then.
  explicit worker(holdfast::outbox outbox, worker_options options = {});
  worker(const worker&) = delete;
  worker& operator=(const worker&) = delete;
  ~worker();

  /// Adds a handler for a type of events. Throws errc::invalid_argument while the worker runs, and
  /// errc::duplicate if the type has a handler.
  worker& handle(const std::string& type, event_handler handler);
  worker& handle(const std::string& type, event_handler handler, const handler_options& options);
  /// Adds a handler that gets up to `most` events of a type with one call, from 1 to 1000. Throws
  /// as `handle`.
  worker& handle_batch(const std::string& type, batch_handler handler, std::size_t most = 100);
  worker& handle_batch(const std::string& type, batch_handler handler, std::size_t most,
                       const handler_options& options);
  /// Adds a handler that gets up to `most` events of all types without a handler of their own, with
  /// one call. Each call may have events of several types. Uses worker_options::handling. Throws as
  /// `handle`.
  worker& handle_other_types(batch_handler handler, std::size_t most = 100);

  /// Delivers events until stop is requested. Then it stops claiming, releases the events that no
  /// handler has started, and waits for the others. Errors of the outbox are logged, counted and
  /// retried. Throws errc::invalid_argument if the worker has no handler, and if a thread cannot be
  /// started.
  worker_report run(const std::stop_token& stop);
  /// As `run`, but also ends when no event is due. Events to be retried later stay in the outbox.
  worker_report run_until_empty(const std::stop_token& stop = {});

  [[nodiscard]] worker_numbers count() const;
  [[nodiscard]] worker_health health() const;

 private:
  std::shared_ptr<detail::outbox::worker_core> core_;
};

}  // namespace HOLDFAST_NAMESPACE
