#include "outbox/worker/run_loop.hpp"

#include <holdfast/error.hpp>

#include "base/backoff.hpp"
#include "base/thread.hpp"

#include <algorithm>
#include <exception>
#include <functional>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::outbox {

namespace {

using std::chrono::milliseconds;

/// A poller with several lanes cannot wait for all of them at once. It waits for one after the
/// other, for a time that doubles.
constexpr milliseconds shortest_slice{5};
constexpr milliseconds longest_slice{200};
constexpr milliseconds first_error_pause{20};
constexpr milliseconds longest_error_pause{2000};
constexpr milliseconds foreign_check_interval{1000};
/// For all lanes together, if the outbox fails.
constexpr milliseconds longest_wake{1000};
/// After all handlers were asked to stop.
constexpr milliseconds last_wait_for_handlers{100};

/// Returns whether no event of a lane is due or claimed. Events that wait for a later time do not
/// count.
bool is_lane_quiet(outbox_backend& backend, std::size_t lane) {
  const auto stats = backend.stats(lane);
  if (stats.paused) return true;
  if (stats.overdue.count() > 0) return false;
  if (stats.pending == 0) return true;
  const auto is_active = [](const outbox_record& record) {
    return record.state == event_state::due || record.state == event_state::claimed;
  };
  // This runs every second, so it does not read everything.
  constexpr int most_pages = 4;
  std::string after;
  for (int page_count = 0; page_count < most_pages; ++page_count) {
    auto page = backend.scan(lane, scan_what::all, after, 500);
    if (std::ranges::any_of(page.records, is_active)) return false;
    after = std::move(page.after);
    if (after.empty()) return true;
  }
  return false;
}

}  // namespace

run_loop::run_loop(worker_context& context, lane_locks& locks, event_leases& leases,
                   event_handling& handling, lane_polling& polling, backlog_sampling& backlog)
    : context_(context),
      locks_(locks),
      leases_(leases),
      handling_(handling),
      polling_(polling),
      backlog_(backlog),
      quiet_lanes_(context.outbox.lanes(), false),
      next_checks_(context.outbox.lanes(), steady_time::min()) {}

// ---- the life of a run ----

worker_report run_loop::run(const std::stop_token& stop, bool until_empty) {
  if (running_.exchange(true))
    throw error(errc::invalid_argument, "the worker is running; create another one to run two");
  struct running_guard {
    std::atomic<bool>& running;
    ~running_guard() { running = false; }
  } const guard{running_};
  begin_run();
  std::jthread renewal_thread;
  std::vector<std::jthread> poller_threads;
  const std::stop_callback on_stop(stop, [this] { stop_and_wake(); });
  try {
    renewal_thread = start_quiet_thread("holdfast-lease", [this] { renew_until_ended(); });
    start_pollers(until_empty, poller_threads);
    wait_until_stopping();
  } catch (...) {
    end_pollers(poller_threads);
    end_renewal();
    throw;
  }
  end_pollers(poller_threads);
  worker_report report{.still_running = end_handlers()};
  end_renewal();
  renewal_thread.join();
  locks_.release_all();
  try {
    backlog_.sample(true);
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
  }
  if (report.still_running > 0) {
    context_.log.write(
        log_level::warning,
        "handlers did not return in time; their events are delivered again when their leases end",
        {{"handlers", std::to_string(report.still_running)}});
  }
  return report;
}

void run_loop::begin_run() {
  context_.stopping = false;
  ended_ = false;
  const std::scoped_lock lock(context_.mutex);
  quiet_lanes_.assign(quiet_lanes_.size(), false);
  pollers_ = 0;
  ++run_;
}

void run_loop::start_pollers(bool until_empty, std::vector<std::jthread>& threads) {
  const std::size_t lanes = quiet_lanes_.size();
  const std::size_t pollers = std::min(context_.options.pollers, lanes);
  const bool own_executor = !context_.options.executor;
  for (std::size_t i = 0; i < pollers; ++i) {
    auto poller = std::make_shared<poller_state>();
    for (std::size_t lane = i; lane < lanes; lane += pollers) poller->lanes.push_back(lane);
    poller->run = run_;
    poller->alone = pollers == 1;
    poller->until_empty = until_empty;
    poller->handles_first_batch = own_executor;
    poller->slice = shortest_slice;
    {
      const std::scoped_lock lock(context_.mutex);
      ++pollers_;
    }
    auto task = [alive = context_.keep_alive(), this, poller] { poll(poller); };
    if (!own_executor) {
      threads.push_back(start_quiet_thread("holdfast-outbox", std::move(task)));
    } else if (!context_.executor->post(std::move(task))) {
      throw error(errc::unavailable, "no thread can be started for the worker; try again later",
                  {.transient = true});
    }
  }
}

void run_loop::wait_until_stopping() {
  std::unique_lock lock(context_.mutex);
  context_.changed.wait(lock, [this] { return context_.stopping.load(); });
}

void run_loop::end_pollers(std::vector<std::jthread>& threads) {
  const auto stop_within = context_.options.stop_within;
  context_.stop();
  handling_.release_waiting(std::chrono::steady_clock::now() + stop_within);
  const auto deadline = std::chrono::steady_clock::now() + stop_within;
  bool all_ended = wait_for_pollers(deadline);
  // If the executor of the user was full, a poller handles events on its own thread.
  if (!all_ended && !threads.empty()) leases_.abandon();
  // A poller that waits in the outbox returns after `idle` at the latest.
  all_ended = all_ended || wait_for_pollers(deadline + context_.options.idle);
  for (auto& thread : threads) all_ended ? thread.join() : thread.detach();
  threads.clear();
}

bool run_loop::wait_for_pollers(steady_time deadline) {
  std::unique_lock lock(context_.mutex);
  return context_.changed.wait_until(lock, deadline, [this] { return pollers_ == 0; });
}

/// Waits for the handlers. Returns how many did not return in time.
std::uint64_t run_loop::end_handlers() {
  if (!leases_.wait_until_empty(std::chrono::steady_clock::now() + context_.options.stop_within)) {
    leases_.abandon();
    leases_.wait_until_empty(std::chrono::steady_clock::now() + last_wait_for_handlers);
  }
  return leases_.batch_count() + handling_.given_up();
}

void run_loop::end_renewal() {
  {
    const std::scoped_lock lock(context_.mutex);
    ended_ = true;
  }
  context_.changed.notify_all();
}

/// Runs on the thread that requests the stop.
void run_loop::stop_and_wake() {
  context_.stop();
  // Pollers that wait in the outbox are woken there; otherwise they return after `idle`. If the
  // server does not answer, it is not asked for every lane: the caller waits.
  const auto deadline = std::chrono::steady_clock::now() + longest_wake;
  for (std::size_t lane = 0; lane < context_.outbox.lanes(); ++lane) {
    try {
      context_.outbox.wake(lane);
    } catch (const std::exception&) {
      if (std::chrono::steady_clock::now() >= deadline) break;
    }
  }
}

void run_loop::renew_leases() {
  // Time limits first: they need no call of the outbox, which may take long. Then the leases of
  // events: handlers depend on them.
  handling_.check_time_limits(context_.now());
  leases_.renew(context_.now());
  locks_.renew(context_.now());
  locks_.balance(context_.now());
  locks_.report(context_.now());
}

void run_loop::renew_until_ended() {
  const auto& options = context_.options;
  const auto interval = std::clamp<milliseconds>(std::min(options.lease, options.lock_time) / 9,
                                                 milliseconds(2), milliseconds(250));
  while (!ended_) {
    try {
      renew_leases();
    } catch (const std::exception& problem) {
      context_.metrics.errors.add();
      context_.log.write_limited("outbox.renew", log_level::error, "leases cannot be renewed",
                                 {{"why", problem.what()}});
    }
    std::unique_lock lock(context_.mutex);
    context_.changed.wait_for(lock, interval, [this] { return ended_.load(); });
  }
}

// ---- polling ----

void run_loop::poll(const std::shared_ptr<poller_state>& shared_poller) {
  while (!context_.stopping && shared_poller->run == run_) {
    if (!poll_once(shared_poller)) return;
  }
  {
    const std::scoped_lock lock(context_.mutex);
    if (shared_poller->run == run_) --pollers_;
  }
  context_.changed.notify_all();
}

bool run_loop::poll_once(const std::shared_ptr<poller_state>& shared_poller) {
  auto& poller = *shared_poller;
  const std::size_t lane_count = poller.lanes.size();
  const std::size_t first = poller.first;
  poll_round round{};
  round.wait = context_.options.idle;
  for (std::size_t i = 0; i < lane_count && !context_.stopping; ++i) {
    const std::size_t position = (first + i) % lane_count;
    const std::size_t lane = poller.lanes[position];
    auto result = poll_lane(lane, poller);
    const bool has_events = result.status == poll_status::events;
    round.any_events = round.any_events || has_events;
    round.no_room = round.no_room || result.status == poll_status::no_room;
    if (result.status == poll_status::nothing) round.idle_lanes.push_back(lane);
    else if (result.status != poll_status::locked_out) round.all_nothing = false;
    round.wait = std::min(round.wait, std::max(result.wait, milliseconds(1)));
    if (poller.until_empty) record_quiet(lane, result);
    if (!has_events) continue;
    poller.first = (position + 1) % lane_count;
    if (const auto signalled_at = std::exchange(poller.signalled_at, std::nullopt)) {
      const std::chrono::duration<double> latency = context_.now() - *signalled_at;
      context_.metrics.wake_seconds->observe(latency.count());
    }
    if (!result.first_batch) continue;
    poller.slice = shortest_slice;
    const bool passed_on = context_.executor->post(
        [alive = context_.keep_alive(), this, shared_poller] { poll(shared_poller); });
    handling_.handle(std::move(result.first_batch));
    if (passed_on) return false;
  }
  wait_after(round, poller);
  return true;
}

poll_result run_loop::poll_lane(std::size_t lane, poller_state& poller) {
  try {
    auto result = polling_.poll_lane(lane, poller.handles_first_batch);
    if (poller.until_empty && result.status == poll_status::locked_out)
      check_foreign_lane(lane, result);
    if (lane == 0) sample_backlog();
    poller.failures = 0;
    return result;
  } catch (const std::exception& problem) {
    return poll_failed(problem, poller);
  }
}

poll_result run_loop::poll_failed(const std::exception& problem, poller_state& poller) {
  context_.metrics.errors.add();
  context_.log.write_limited("outbox.step", log_level::warning,
                             "the outbox cannot be read; trying again", {{"why", problem.what()}});
  const auto* const outbox_error = dynamic_cast<const error*>(&problem);
  context_.set_problem(outbox_error != nullptr ? *outbox_error
                                               : error(errc::internal, problem.what()));
  poller.failures = std::min(poller.failures + 1, 8U);
  const auto pause = doubled_pause(first_error_pause, poller.failures, longest_error_pause);
  return {.status = poll_status::paused, .wait = with_jitter(pause, thread_random())};
}

/// run_until_empty does not wait for a worker that holds a lane with nothing to do.
void run_loop::check_foreign_lane(std::size_t lane, poll_result& result) {
  if (leases_.in_flight() != 0 || !is_check_due(lane)) return;
  result.quiet = is_lane_quiet(*context_.outbox.backend(), lane);
  if (result.quiet) return;
  context_.log.write_limited(
      "outbox.held." + std::to_string(lane), log_level::warning,
      "a lane is held by another worker; waiting for it (or let workers compete)",
      {{"lane", std::to_string(lane)}});
}

bool run_loop::is_check_due(std::size_t lane) {
  const std::scoped_lock lock(context_.mutex);
  if (context_.now() < next_checks_[lane]) return false;
  next_checks_[lane] = context_.now() + foreign_check_interval;
  return true;
}

/// Stops the worker when all lanes were quiet since the last events.
void run_loop::record_quiet(std::size_t lane, const poll_result& result) {
  const std::scoped_lock lock(context_.mutex);
  if (result.status == poll_status::events) quiet_lanes_.assign(quiet_lanes_.size(), false);
  else if (result.quiet) quiet_lanes_[lane] = true;
  if (std::ranges::all_of(quiet_lanes_, std::identity{})) context_.stopping = true;
}

/// A failure here must not lose the batch that was claimed just before.
void run_loop::sample_backlog() {
  try {
    backlog_.sample();
  } catch (const std::exception& problem) {
    context_.metrics.errors.add();
    context_.log.write_limited("outbox.sample", log_level::warning,
                               "the statistics of the outbox cannot be read",
                               {{"why", problem.what()}});
  }
}

void run_loop::wait_after(const poll_round& round, poller_state& poller) {
  if (round.any_events) {
    poller.slice = shortest_slice;
    return;
  }
  if (context_.stopping) return;
  if (poller.until_empty && (round.no_room || leases_.in_flight() > 0))
    return leases_.wait_for_progress(round.wait);
  if (round.no_room) return leases_.wait_for_room(round.wait);
  // A poller that waits for a signal does not see that others made all lanes quiet.
  const bool may_wait_long = !poller.until_empty || poller.alone;
  if (round.all_nothing && !round.idle_lanes.empty() && may_wait_long)
    return wait_for_signal(poller, round);
  sleep(poller.until_empty ? std::min(round.wait, longest_slice) : round.wait);
}

void run_loop::wait_for_signal(poller_state& poller, const poll_round& round) {
  const std::size_t lane = round.idle_lanes[poller.waits++ % round.idle_lanes.size()];
  const auto longest =
      round.idle_lanes.size() > 1 ? std::min(round.wait, poller.slice) : round.wait;
  poller.slice = std::min(2 * poller.slice, longest_slice);
  try {
    if (!context_.outbox.wait(lane, longest)) return;
    // The lane was released meanwhile: the signal is for the worker that holds it now.
    if (!locks_.may_claim(lane)) return context_.outbox.wake(lane);
    context_.metrics.wakes.add();
    polling_.set_signalled(lane);
    poller.signalled_at = context_.now();
  } catch (const std::exception&) {
    context_.metrics.errors.add();
    sleep(longest);  // the next poll reports the error
  }
}

void run_loop::sleep(milliseconds longest) {
  std::unique_lock lock(context_.mutex);
  context_.changed.wait_for(lock, longest, [this] { return context_.stopping.load(); });
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
