#include "failover/engine_core.hpp"

#include <holdfast/store/compose.hpp>

#include "base/cron.hpp"
#include "base/duration_limit.hpp"
#include "failover/point_core.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <random>
#include <ranges>
#include <thread>

namespace HOLDFAST_NAMESPACE::detail::failover {

std::string join_problems(std::string start, const std::vector<std::string>& problems) {
  for (const auto& problem : problems) {
    if (&problem != &problems.front()) start.append("; ");
    start.append(problem);
  }
  return start;
}

namespace {

/// Returns options that can be used with this store, with bounded durations. Throws
/// errc::invalid_argument with all problems.
engine_options checked(const std::shared_ptr<holdfast::store>& store, engine_options options) {
  std::vector<std::string> problems;
  const auto require = [&](bool valid, const char* problem) {
    if (!valid) problems.emplace_back(problem);
  };
  require(store != nullptr, "it needs a store");
  require(options.threads.count != 0, "threads.count must be at least 1");
  require(options.threads.queue != 0, "threads.queue must be at least 1");
  require(options.storage.read_deadline.count() > 0, "storage.read_deadline must be positive");
  require(options.storage.max_payload != 0, "storage.max_payload must be at least 1");
  require(options.max_points != 0, "max_points must be at least 1");
  require(options.storage.max_skew.count() >= 0, "storage.max_skew must not be negative");
  require(options.reports.every.count() >= 0, "reports.every must not be negative");
  require(options.linger.count() >= 0, "linger must not be negative");
  if (!options.reports.cron.empty()) {
    try {
      (void)cron::parse(options.reports.cron);
    } catch (const error& e) {
      problems.emplace_back("reports.cron: " + e.message());
    }
  }
  for (const auto& [name, policy] : options.expiry_policies)
    require(!name.empty() && policy, "an expiry policy has no name or is empty");
  for (const auto& propagator : options.threads.propagate)
    require(propagator != nullptr, "a context propagator is empty");
  if (store && store->peer() == peer::java) {
    options.keys.style = holdfast::key::style::exact;
    require(
        options.keys.hash == holdfast::key::row_hash::md5,
        "the store is shared with the Java library, which finds rows by MD5; do not set keys.hash");
  }
  try {
    (void)holdfast::key::failover_keys(
        {.name = "any"},
        {.style = options.keys.style, .hash = options.keys.hash, .secret = options.keys.secret});
  } catch (const error& e) {
    problems.emplace_back(e.message());
  }
  if (!problems.empty())
    throw error(errc::invalid_argument, join_problems("the engine cannot be made: ", problems),
                {.path = "engine"});
  options.storage.read_deadline = limit_duration(options.storage.read_deadline);
  options.reports.every = limit_duration(options.reports.every);
  options.linger = limit_duration(options.linger);
  return options;
}

/// Puts a gate in front of the log sink of the application. Pools and queues may outlive the engine
/// together with a hung call; the sink may not.
engine_options gated(engine_options options, const std::shared_ptr<log_gate>& gate) {
  if (options.log) {
    options.log = [gate, sink = std::move(options.log)](const log_record& record) {
      const std::shared_lock lock(gate->mutex);
      if (gate->open) sink(record);
    };
  }
  return options;
}

/// The write-behind queue that a store contains, or null.
std::shared_ptr<write_behind> queue_of(const std::shared_ptr<holdfast::store>& store) {
  if (const auto composed = std::dynamic_pointer_cast<composed_store>(store)) {
    const auto& parts = composed->parts();
    return parts.write_behind ? parts.write_behind : queue_of(parts.base);
  }
  return std::dynamic_pointer_cast<write_behind>(store);
}

std::shared_ptr<write_behind> queue_for(const std::shared_ptr<holdfast::store>& store,
                                        const engine_options& options,
                                        const std::shared_ptr<served_versions>& served) {
  auto existing = queue_of(store);
  // A store that does not block is in memory: writing to it is cheaper than queueing.
  if (existing || !options.storage.write_behind || !store->waits()) return existing;
  auto queue = *options.storage.write_behind;
  queue.max_skew = options.storage.max_skew;
  queue.linger = {};  // engine_core::close waits
  queue.clock = options.clock;
  queue.log = options.log;
  queue.metrics = options.metrics;
  // An answer that the store refuses does not forbid the older one that the store still has.
  queue.on_failed = [served, forward = std::move(queue.on_failed)](const entry& row,
                                                                   const error& reason) {
    served->forget(row_id(std::hash<std::string>{}(row.name), row.key, row.realm), row.as_of);
    if (forward) forward(row, reason);
  };
  return make_write_behind(store, std::move(queue));
}

}  // namespace

engine_core::engine_core(std::shared_ptr<holdfast::store> store, engine_options unchecked_options)
    : options(checked(store, gated(std::move(unchecked_options), gate))),
      uses_system_clock(!options.clock),
      clock(options.clock ? options.clock : system_clock()),
      log(options.log, {.clock = clock}),
      metrics(isolate(options.metrics)),
      served(std::make_shared<served_versions>(options.storage.remembered)),
      base_store(std::move(store)),
      write_queue(queue_for(base_store, options, served)),
      owns_queue(write_queue && !queue_of(base_store)),
      front_store(owns_queue ? write_queue : base_store),
      reads_block(front_store->waits()),
      // The references have 40 bits.
      decisions_((std::uint64_t{std::random_device{}()} << 7U) + 1),
      // The clock of a test may be set back by a microsecond.
      stamps_(options.storage.max_skew,
              uses_system_clock ? std::chrono::microseconds(64) : std::chrono::microseconds(0)) {
  metrics->gauge("holdfast_failover_points", {}, "points that are registered")->set(0);
}

engine_core::~engine_core() = default;

timestamp engine_core::stamp(timestamp now) noexcept {
  const auto stamp = stamps_.next(now);
  if (stamp.set_back) {
    served->clear();
    log.write_limited("clock", log_level::warning,
                      "the clock was set back; answers are stamped with its new time");
  }
  return stamp.time;
}

void engine_core::note_served(std::uint64_t id, timestamp as_of) noexcept {
  if (served->note(id, as_of)) return;
  // A newer version is recorded. It may be from before the clock was set back.
  served->forget_newer(id, horizon(clock->now()));
  (void)served->note(id, as_of);
}

call_scheduler& engine_core::start_scheduler(lazy_scheduler& lazy, std::size_t threads,
                                             const char* name) {
  if (auto* const ready = lazy.ready.load(std::memory_order_acquire)) return *ready;
  const std::scoped_lock lock(threads_mutex_);
  if (!lazy.owned) {
    lazy.owned =
        std::make_shared<call_scheduler>(call_scheduler::settings{.threads = threads,
                                                                  .queue = options.threads.queue,
                                                                  .groups = options.max_points + 1,
                                                                  .name = name,
                                                                  .log = options.log});
    if (&lazy == &reads_) upkeep_group_ = lazy.owned->add_group();
    lazy.ready.store(lazy.owned.get(), std::memory_order_release);
  }
  return *lazy.owned;
}

call_scheduler& engine_core::calls() {
  return start_scheduler(calls_, options.threads.count, "hf-calls");
}

call_scheduler& engine_core::reads() {
  return start_scheduler(reads_, options.threads.count, "hf-reads");
}

call_scheduler& engine_core::refreshes() {
  // No caller waits for a refresh, so a few threads are enough.
  return start_scheduler(refreshes_, std::max<std::size_t>(1, options.threads.count / 4),
                         "hf-refresh");
}

executor& engine_core::background() {
  if (options.threads.executor) return *options.threads.executor;
  if (auto* const ready = background_.load(std::memory_order_acquire)) return *ready;
  const std::scoped_lock lock(threads_mutex_);
  if (!background_pool_) {
    background_pool_ =
        make_thread_pool({.threads = 2, .name = "hf-background", .linger = {}, .log = options.log});
    background_.store(background_pool_.get(), std::memory_order_release);
  }
  return *background_pool_;
}

namespace {

/// Work that runs at most once, even if a propagator calls it several times.
struct run_once {
  executor::task work{};
  std::atomic<bool> ran{false};

  void run() {
    if (ran.exchange(true)) return;
    const auto task = std::move(work);
    task();
  }
};

}  // namespace

executor::task engine_core::in_this_context(executor::task work) const {
  // The first propagator is the outermost, so the last one wraps the work first.
  for (const auto& propagator : options.threads.propagate | std::views::reverse) {
    try {
      auto run_in_context = propagator();
      if (!run_in_context) continue;
      const auto inner = std::make_shared<run_once>();
      executor::task wrapped = [run_in_context = std::move(run_in_context), inner,
                                engine = weak_from_this()] {
        const char* problem = nullptr;
        try {
          run_in_context([inner] { inner->run(); });
          if (!inner->ran)
            problem = "a context propagator did not run the work; it runs without that context";
        } catch (const abi::__forced_unwind&) {  // thread cancellation must not be swallowed
          throw;
        } catch (...) {
          problem = "a context propagator threw around the work; it runs without that context";
        }
        if (problem == nullptr) return;
        if (const auto core = engine.lock())
          core->log.write_limited("propagate", log_level::error, problem);
        inner->run();
      };
      inner->work = std::move(work);
      work = std::move(wrapped);
    } catch (...) {
      log.write_limited("propagate", log_level::error,
                        "a context propagator threw; the work runs without that context");
    }
  }
  return work;
}

void engine_core::refuse(store_work& state) {
  const std::scoped_lock lock(state.mutex);
  state.refused = true;
  state.ended = true;
  state.changed.notify_all();
}

void engine_core::run_here(store_work& state, const executor::task& work) {
  state.started = true;
  std::exception_ptr error;
  try {
    work();
  } catch (...) {
    error = std::current_exception();
  }
  const std::scoped_lock lock(state.mutex);
  state.error = std::move(error);
  state.ended = true;
  state.changed.notify_all();
}

bool engine_core::start(const std::shared_ptr<store_work>& state, const thread_group& group,
                        executor::task work, std::chrono::steady_clock::time_point deadline) {
  return start_part(
      state, group, [state, work = std::move(work)] { run_here(*state, work); }, deadline,
      [state] { refuse(*state); });
}

bool engine_core::start_upkeep(const std::shared_ptr<store_work>& state, executor::task work,
                               std::chrono::steady_clock::time_point deadline) {
  auto& scheduler = reads();  // makes the group
  return scheduler.post(
             upkeep_group_, [state, work = std::move(work)] { run_here(*state, work); },
             on_system_clock(deadline), [state] { refuse(*state); }) != nullptr;
}

bool engine_core::start_part(const std::shared_ptr<store_work>& state, const thread_group& group,
                             executor::task part, std::chrono::steady_clock::time_point deadline,
                             executor::task refused) {
  auto job = reads().post(group, in_this_context(std::move(part)), on_system_clock(deadline),
                          std::move(refused));
  if (!job) return false;
  const std::scoped_lock lock(state->mutex);
  if (!state->ended) state->jobs.push_back(std::move(job));
  return true;
}

engine_core::wait_result engine_core::wait_for(store_work& state,
                                               std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(state.mutex);
  const bool ended = wait(lock, state.changed, deadline, [&] { return state.ended; });
  const bool last = --state.callers == 0;
  if (last) state.abandoned = true;
  const auto jobs = last ? std::exchange(state.jobs, {}) : decltype(state.jobs){};
  if (ended) return state.refused ? wait_result::refused : wait_result::ended;
  lock.unlock();
  for (const auto& job : jobs) reads().leave(*job);
  return last ? wait_result::abandoned : wait_result::late;
}

void engine_core::record_read(bool answered,
                              std::chrono::steady_clock::duration duration) noexcept {
  if (answered) reading.record(duration);
  if (!guard.record(answered)) return;
  log.write(log_level::error,
            "the store does not answer; calls are not answered from it until it does");
  schedule_probe(std::chrono::milliseconds(200));
}

void engine_core::watch_read(const std::shared_ptr<store_work>& read,
                             std::chrono::steady_clock::time_point started) noexcept {
  const auto check = [self = weak_from_this(), read] {
    const auto core = self.lock();
    if (!core || core->closed.load(std::memory_order_acquire)) return;
    {
      const std::scoped_lock lock(read->mutex);
      // One that never started says nothing about the store.
      if (read->ended || !read->started) return;
    }
    core->record_read(false, {});
  };
  try {
    const auto elapsed = clock->steady() - started;
    (void)background().post_after(options.storage.read_deadline - elapsed, check);
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // The next read that is late is recorded.
  }
}

void engine_core::schedule_probe(std::chrono::milliseconds pause) noexcept {
  constexpr auto longest_pause = std::chrono::milliseconds(5000);
  const auto probe = [self = weak_from_this(), next = std::min(2 * pause, longest_pause)] {
    const auto core = self.lock();
    if (!core || core->closed.load(std::memory_order_acquire)) return;
    const auto check = std::make_shared<store_work>();
    const auto work = [core, next] {
      if (!core->base_store->health().available) return core->schedule_probe(next);
      core->guard.reopen();
      core->log.write(log_level::info, "the store answers again");
    };
    // A store that hangs keeps this one thread until it answers, and no other probe is started.
    if (!core->start_upkeep(check, work, std::chrono::steady_clock::time_point::max()))
      core->schedule_probe(next);
  };
  try {
    if (background().post_after(pause, probe)) return;
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // Out of memory, or no thread could be started: as if the executor had refused.
  }
  // Without a probe the store would never be asked again.
  guard.reopen();
}

void engine_core::pause(std::chrono::microseconds duration) const {
  if (duration.count() <= 0) return;
  const auto deadline = clock->steady() + duration;
  const auto token = stop.get_token();
  std::unique_lock lock(pause_mutex_);
  const auto never = [] { return false; };
  if (uses_system_clock) {
    (void)pause_.wait_until(lock, token, deadline, never);
    return;
  }
  const auto system_deadline = std::chrono::steady_clock::now() + duration;
  while (clock->steady() < deadline && std::chrono::steady_clock::now() < system_deadline &&
         !token.stop_requested())
    (void)pause_.wait_for(lock, token, std::chrono::milliseconds(1), never);
}

std::vector<std::shared_ptr<point_core>> engine_core::all_points() const {
  const std::shared_lock lock(points_mutex);
  const auto values = std::views::values(points);
  return {values.begin(), values.end()};
}

std::shared_ptr<point_core> engine_core::find_point(std::string_view name) const {
  const std::shared_lock lock(points_mutex);
  if (const auto it = points.find(name); it != points.end()) return it->second;
  throw error(errc::not_found, "there is no point of this name", {.path = "point"});
}

std::chrono::steady_clock::time_point engine_core::on_queue_clock(
    std::chrono::steady_clock::time_point deadline) const noexcept {
  return owns_queue
             ? deadline
             : moment_after(write_queue->clock().steady(), time_until(deadline, clock->steady()));
}

bool engine_core::flush(std::chrono::steady_clock::time_point deadline) {
  return !write_queue || write_queue->flush(on_queue_clock(deadline)).complete();
}

close_report engine_core::close(std::chrono::steady_clock::time_point deadline) {
  using std::chrono::steady_clock;
  closed.store(true, std::memory_order_release);
  stop.request_stop();
  // Waits on the system clock, because the clock of the engine may stand still.
  const auto remaining = limit_duration(time_until(deadline, clock->steady()));
  const auto system_deadline = steady_clock::now() + remaining;
  // Calls get three quarters of the time, so that hung calls leave some for the queue.
  const auto calls_deadline = system_deadline - remaining / 4;
  const auto all = all_points();
  const auto any_running = [&] {
    return std::ranges::any_of(all, [](const auto& point) { return point->running() != 0; });
  };
  while (any_running() && steady_clock::now() < calls_deadline)
    std::this_thread::sleep_for(std::chrono::microseconds(500));

  close_report report;
  for (const auto& point : all) {
    if (const auto calls = point->running(); calls != 0)
      report.still_running.push_back({.point = point->name, .calls = calls});
  }
  if (write_queue) {
    // A queue of the application may have other users, so it stays open.
    const auto written =
        owns_queue ? write_queue->close(deadline) : write_queue->flush(on_queue_clock(deadline));
    report.unsaved = written.unsaved + written.in_flight;
    report.lost = written.failed + written.dropped;
  }
  std::unique_lock lock(threads_mutex_);
  const auto schedulers = {calls_.owned, reads_.owned, refreshes_.owned};
  const auto background_pool = background_pool_;
  lock.unlock();
  for (const auto& scheduler : schedulers) {
    if (scheduler) scheduler->close(system_deadline);
  }
  if (background_pool) (void)background_pool->close(system_deadline);
  return report;
}

}  // namespace HOLDFAST_NAMESPACE::detail::failover
