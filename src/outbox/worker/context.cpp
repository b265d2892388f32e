#include "outbox/worker/context.hpp"

#include <holdfast/error.hpp>

#include "base/breaker.hpp"
#include "base/duration_limit.hpp"
#include "outbox/checks.hpp"

#include <algorithm>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::outbox {

namespace {

using std::chrono::milliseconds;

/// Longer than a short stall of the server or of this process.
constexpr milliseconds shortest_continued_lease{2000};
/// Most runs are settled before. The others get a full lease soon, to survive a failover.
constexpr milliseconds longest_wait_for_full_lease{250};

[[noreturn]] void refuse_option(const std::string& reason) {
  throw error(errc::invalid_argument, reason);
}

/// The limits of claims: otherwise every claim of the worker would fail.
bool is_claimable(milliseconds duration) {
  return duration >= milliseconds(10) && duration <= longest_time;
}

worker_options checked_worker_options(worker_options options) {
  if (options.concurrency == 0 || options.concurrency > 1024)
    refuse_option("worker.concurrency must be from 1 to 1024");
  if (!is_claimable(options.lease))
    refuse_option("worker.lease must be from 10 milliseconds to ten years");
  if (!is_claimable(options.lock_time))
    refuse_option("worker.lock_time must be from 10 milliseconds to ten years");
  if (options.batch == 0 || options.batch > 1000)
    refuse_option("worker.batch must be from 1 to 1000");
  if (options.run == 0 || options.run > 1000) refuse_option("worker.run must be from 1 to 1000");
  if (options.idle < milliseconds(1)) refuse_option("worker.idle must be at least a millisecond");
  if (options.pollers == 0) refuse_option("worker.pollers must be at least 1");
  if (options.stop_within.count() < 0) refuse_option("worker.stop_within must not be negative");
  if (options.batch_time.count() <= 0) refuse_option("worker.batch_time must be positive");
  check_handler_options(options.handling);
  for (auto* const duration : {&options.idle, &options.stop_within, &options.batch_time})
    *duration = limit_duration(*duration);
  return options;
}

std::shared_ptr<executor> worker_executor(const worker_options& options) {
  if (options.executor) return options.executor;
  // A thread for each handler, one for each poller (while some threads handle, one polls), and one
  // for each thread that may be given up because its handler hangs. The queue has room for all
  // batches in flight, including the continuations of runs.
  return make_thread_pool({.threads = 2 * options.concurrency + options.pollers,
                           .queue = 16 * options.batch + 1024,
                           .name = "holdfast-event",
                           .log = options.log});
}

}  // namespace

void check_handler_options(const handler_options& options) {
  const auto& backoff = options.backoff;
  if (backoff.first.count() < 0 || backoff.longest < backoff.first)
    refuse_option("backoff.longest must not be shorter than backoff.first");
  if (!(backoff.factor >= 1)) refuse_option("backoff.factor must be at least 1");
  if (!(backoff.jitter >= 0 && backoff.jitter <= 1))
    refuse_option("backoff.jitter must be from 0 to 1");
  if (options.max_age.count() < 0) refuse_option("max_age must not be negative");
  if (options.time_limit.count() < 0) refuse_option("time_limit must not be negative");
  if (options.breaker) {
    if (const auto problem = breaker::problem_of(*options.breaker); !problem.empty())
      refuse_option(problem);
  }
}

worker_context::worker_context(holdfast::outbox source, worker_options unchecked_options)
    : outbox(std::move(source)),
      options(checked_worker_options(std::move(unchecked_options))),
      clock(options.clock ? options.clock : system_clock()),
      owner(new_event_id()),
      log(options.log, {.clock = clock}),
      metrics(*(options.metrics ? isolate(options.metrics) : outbox.metrics())),
      executor(worker_executor(options)),
      sizing({.concurrency = options.concurrency,
              .most = options.batch,
              .claim_time = options.batch_time}) {}

std::size_t worker_context::run_length() const {
  return std::clamp<std::size_t>(std::max(sizing.batch_size(), sizing.minimum()), 1, options.run);
}

void worker_context::stop() {
  {
    const std::scoped_lock lock(mutex);
    stopping = true;
  }
  changed.notify_all();
}

milliseconds worker_context::continued_lease() const {
  return std::min(options.lease, std::max(shortest_continued_lease, options.lease / 6));
}

milliseconds worker_context::time_to_renewal(milliseconds lease) const {
  return lease < options.lease ? std::min(lease / 3, longest_wait_for_full_lease) : lease / 3;
}

void worker_context::announce_parking(const handler_options& handling, const claimed_event& event,
                                      std::string_view reason) const {
  log.write_limited("outbox.park", log_level::warning,
                    "an event is parked; see holdfast outbox parked",
                    {{"id", event.event.id}, {"type", event.event.type}, {"why", reason}});
  if (!handling.on_parked) return;
  std::string thrown_text = "it threw an exception that is not a std::exception";
  try {
    return handling.on_parked(event, reason);
  } catch (const std::exception& thrown) {
    thrown_text = thrown.what();
  } catch (...) {  // NOLINT(bugprone-empty-catch)
  }
  log.write_limited("outbox.on_parked", log_level::error,
                    "the handler of parked events failed; the event is parked nevertheless",
                    {{"id", event.event.id}, {"why", thrown_text}});
}

void worker_context::set_problem(const error& cause) {
  const std::scoped_lock lock(mutex);
  problem = cause;
}

void worker_context::clear_problem() {
  const std::scoped_lock lock(mutex);
  problem.reset();
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
