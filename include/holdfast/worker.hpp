#pragma once

/// \file
/// Delivers what an outbox promised: claims events, calls handlers, and tells the outbox how it went.
///
///     holdfast::worker worker{outbox, [](const holdfast::delivery& d) -> holdfast::outcome { return deliver(d.event(), d.fence()); }};
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
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE {

/// An event in the hands of a handler. It is delivered at least once: a handler must bear to get it again.
/// Thread-safety: for the thread that the handler runs on; a copy of its stop token may go anywhere. Gone when the handler returns.
class HOLDFAST_API delivery {
 public:
  delivery(const holdfast::outbox& from, const claimed_event& what, holdfast::fence token, std::stop_token lost)
      : from_(&from), what_(&what), token_(token), lost_(std::move(lost)) {}
  delivery(const delivery&) = delete;
  delivery& operator=(const delivery&) = delete;

  [[nodiscard]] const holdfast::event& event() const noexcept { return what_->event; }
  /// Grows with every claim: hand it to what the event changes, so that a worker that is late can be refused there.
  [[nodiscard]] holdfast::fence fence() const noexcept { return token_; }
  /// Failures that handlers reported before.
  [[nodiscard]] std::uint32_t attempts() const noexcept { return what_->attempts; }
  /// Times that it was handed out, this one included: more than `attempts() + 1` when a worker died with it.
  [[nodiscard]] std::uint32_t deliveries() const noexcept { return what_->deliveries; }
  /// Told when the lease is lost, or when the worker cannot wait any longer for its handlers to end: what is done from then on, another may
  /// do, too.
  [[nodiscard]] const std::stop_token& lost() const noexcept { return lost_; }
  /// Everything that is known about it.
  [[nodiscard]] const claimed_event& claimed() const noexcept { return *what_; }
  [[nodiscard]] const holdfast::outbox& from() const noexcept { return *from_; }

 private:
  const holdfast::outbox* from_;
  const claimed_event* what_;
  holdfast::fence token_;
  std::stop_token lost_;
};

/// Called from several threads at once. What it throws is a failure: a holdfast::error that is in doubt is `ambiguous`, anything else `retry`.
using event_handler = std::function<outcome(const delivery&)>;

/// When a failed event is tried again: after `first`, then `factor` times as long each time, up to `longest`; with full jitter, so that
/// those that failed together do not come back together.
struct backoff_options {
  std::chrono::milliseconds first = std::chrono::seconds(1);    ///< after the first failure
  double factor = 2;                                            ///< how much longer each pause is
  std::chrono::milliseconds longest = std::chrono::minutes(5);  ///< no pause is longer
  double jitter = 1;                                            ///< which part of a pause is random: 0 none, 1 all
};

/// How events of one type are treated.
struct handler_options {
  backoff_options backoff{};
  std::uint32_t max_attempts = 12;           ///< failures until it is parked; 0: no limit
  std::chrono::milliseconds max_age{};       ///< one that fails when it is older is parked; 0: no limit
  park_policy parked = park_policy::skip;    ///< what its key does then
  std::optional<breaker_options> breaker{};  ///< when most of them fail, events of this type wait, without counting; none unless given
};

struct worker_options {
  std::size_t concurrency = 4;                                     ///< handlers at the same time
  std::chrono::milliseconds lease = std::chrono::seconds(30);      ///< how long a worker that died keeps its events; renewed meanwhile
  std::chrono::milliseconds lock_time = std::chrono::seconds(10);  ///< the same for a lane
  bool compete = false;                                            ///< without the lock of a lane: several workers share it
  std::size_t batch = 200;                                         ///< events in one claim, at most; fewer where handlers are slow
  std::size_t run = 50;                                            ///< events of one key in one claim; all of them come again after a crash
  std::chrono::milliseconds batch_time = std::chrono::milliseconds(250);  ///< handlers should need so long for one claim
  std::chrono::milliseconds idle = std::chrono::seconds(1);               ///< the longest sleep: what a lost wake-up can cost
  std::size_t pollers = 4;                                                ///< threads that wait for events, at most one for each lane
  bool drain_tickets = true;                                              ///< turn expired tickets into their events
  std::chrono::milliseconds stop_within = std::chrono::seconds(20);       ///< how long `run` waits for handlers when it ends
  handler_options handling{};                                             ///< of types that have none of their own
  std::shared_ptr<const holdfast::clock> clock{};                         ///< the machine's unless given
  log_sink log{};                                                         ///< for an operator, without payloads
  std::shared_ptr<metrics_sink> metrics{};                                ///< for the numbers; the outbox's unless given
  std::shared_ptr<holdfast::executor> executor{};  ///< where handlers run; `concurrency` threads of its own unless given
};

/// What a worker did since it was made.
struct worker_numbers {
  std::uint64_t claims = 0;      ///< calls that gave events
  std::uint64_t deliveries = 0;  ///< handlers called
  std::uint64_t done = 0;        ///< acknowledged
  std::uint64_t retried = 0;     ///< to be tried again: failed or ambiguous
  std::uint64_t throttled = 0;   ///< to be tried again: not their fault; an open breaker's included
  std::uint64_t parked = 0;
  std::uint64_t released = 0;   ///< given back untried
  std::uint64_t fenced = 0;     ///< leases and locks that were lost, and outcomes refused for it
  std::uint64_t in_doubt = 0;   ///< outcomes whose arrival nobody knows: those events may come again
  std::uint64_t tickets = 0;    ///< that became events
  std::uint64_t wakes = 0;      ///< times that it was woken by a new event
  std::uint64_t errors = 0;     ///< calls of the outbox that failed
  std::uint64_t in_flight = 0;  ///< events that it holds now
};

/// How a worker is.
struct worker_health {
  bool available = true;    ///< the outbox answered when it was asked last
  std::string problem{};    ///< otherwise why not
  std::size_t locks = 0;    ///< lanes that it may claim from; with `compete`: all
  std::uint64_t depth = 0;  ///< events kept but parked ones, when it was looked last
  std::uint64_t parked = 0;
  std::chrono::milliseconds overdue{};  ///< how long the longest waiting event or ticket has been due
  std::vector<std::string> open{};      ///< types whose breaker is open
};

/// What came of a run.
struct worker_report {
  std::uint64_t still_running = 0;  ///< handlers that had not returned at the deadline: their events come again when the leases end
  worker_numbers did{};             ///< since the worker was made
};

/// Delivers events of an outbox to handlers.
///
/// Events without a key are handled side by side, those of one key one after the other, in their order. An event is acknowledged after its
/// handler said so, never before: it is lost by no crash, and may come twice. Leases are renewed on a thread of their own while handlers
/// run; when one is lost, the delivery's stop token is told, and its outcome is refused by the outbox.
///
/// Threads: those of `concurrency`, one for each poller, one for the leases; the last ends with `run`, the others with the worker.
/// Thread-safety: `run` is called once at a time; everything else from any thread. After fork the child must not use it.
class HOLDFAST_API worker {
 public:
  /// Of all types. Throws errc::invalid_argument for options that cannot hold.
  worker(holdfast::outbox from, event_handler handler, worker_options options = {});
  /// Of the types that are said with `on`. Others are left for other workers, which costs each of them a claim now and then.
  explicit worker(holdfast::outbox from, worker_options options = {});
  worker(const worker&) = delete;
  worker& operator=(const worker&) = delete;
  ~worker();

  /// Events of this type go to that handler. Throws errc::invalid_argument while it runs, and errc::duplicate.
  worker& on(const std::string& type, event_handler handler);
  worker& on(const std::string& type, event_handler handler, const handler_options& how);

  /// Delivers until it is told to stop. Then it claims nothing more, gives back what no handler has seen, and waits for the others. Faults of
  /// the outbox are logged, counted and waited out. Throws only what a thread cannot be started with.
  worker_report run(const std::stop_token& stop);
  /// The same, but ends when nothing is due any more. What is to be tried again later is left for later.
  worker_report run_until_empty(const std::stop_token& stop = {});

  [[nodiscard]] worker_numbers count() const;
  [[nodiscard]] worker_health health() const;

  class core;  ///< private to the library

 private:
  std::shared_ptr<core> core_;
};

}  // namespace HOLDFAST_NAMESPACE
