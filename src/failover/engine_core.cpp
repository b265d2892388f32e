#include "failover/engine_core.hpp"

#include <holdfast/store/compose.hpp>

#include "base/cron.hpp"
#include "failover/point_core.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <ranges>
#include <thread>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail {

namespace {

engine_options checked(const std::shared_ptr<store>& on, engine_options options) {
  std::vector<std::string> problems;
  if (!on) problems.emplace_back("it needs a store");
  if (options.threads == 0) problems.emplace_back("threads must be at least 1");
  if (options.queue == 0) problems.emplace_back("queue must be at least 1");
  if (options.read_deadline.count() <= 0) problems.emplace_back("read_deadline must be more than nothing");
  if (options.max_payload == 0) problems.emplace_back("max_payload must be at least 1");
  if (options.max_points == 0) problems.emplace_back("max_points must be at least 1");
  if (options.max_skew.count() < 0) problems.emplace_back("max_skew must not be negative");
  if (options.report_every.count() < 0) problems.emplace_back("report_every must not be negative");
  if (options.linger.count() < 0) problems.emplace_back("linger must not be negative");
  if (!options.report_cron.empty()) {
    try {
      (void)cron::parse(options.report_cron);
    } catch (const error& e) {
      problems.emplace_back("report_cron: " + e.message());
    }
  }
  for (const auto& [name, policy] : options.expiry_policies) {
    if (name.empty() || !policy) problems.emplace_back("an expiry policy has no name or is empty");
  }
  for (const auto& each : options.propagate) {
    if (!each) problems.emplace_back("a context propagator is empty");
  }
  if (on && on->peer() == peer::java) {
    // One switch: what shares the table decides how its rows are found.
    options.key_style = key::style::exact;
    if (options.hash != key::row_hash::md5)
      problems.emplace_back("the store is shared with the Java library, which finds rows by MD5; leave hash alone");
  }
  try {
    (void)key::failover_keys({.name = "any"}, {.style = options.key_style, .hash = options.hash, .secret = options.secret});
  } catch (const error& e) {
    problems.emplace_back(e.message());
  }
  if (!problems.empty()) {
    std::string all = "the engine cannot be made: ";
    for (const auto& each : problems) {
      if (&each != &problems.front()) all.append("; ");
      all.append(each);
    }
    throw error(errc::invalid_argument, all, {.path = "engine"});
  }
  options.read_deadline = std::min<std::chrono::microseconds>(options.read_deadline, longest_wait);
  options.report_every = std::min<std::chrono::milliseconds>(options.report_every, longest_wait);
  options.linger = std::min<std::chrono::milliseconds>(options.linger, longest_wait);
  return options;
}

/// Everything that logs goes through the gate: pools and queues may outlive the engine with a call that hangs, the application's sink may not.
engine_options gated(engine_options options, const std::shared_ptr<log_gate>& gate) {
  if (options.log) {
    options.log = [gate, sink = std::move(options.log)](const log_record& record) {
      const std::shared_lock lock(gate->mutex);
      if (gate->open) sink(record);
    };
  }
  return options;
}

/// The queue that a store has already.
std::shared_ptr<write_behind> queue_in(const std::shared_ptr<store>& on) {
  if (const auto composed = std::dynamic_pointer_cast<composed_store>(on)) {
    const auto& parts = composed->parts();
    return parts.write_behind ? parts.write_behind : queue_in(parts.base);
  }
  return std::dynamic_pointer_cast<write_behind>(on);
}

std::shared_ptr<write_behind> queue_for(const std::shared_ptr<store>& on, const engine_options& options) {
  // In memory a put costs less than queueing it; and one queue is enough.
  if (auto given = queue_in(on); given || !options.write_behind || !on->waits()) return given;
  auto how = options.queue_of_writes;
  how.max_skew = options.max_skew;
  how.linger = {};  // close() has waited already
  how.clock = options.clock;
  how.log = options.log;
  how.metrics = options.metrics;
  return make_write_behind(on, std::move(how));
}

}  // namespace

engine_core::engine_core(std::shared_ptr<store> on, engine_options given)
    : options(checked(on, gated(std::move(given), gate))),
      machine_clock(!options.clock),
      clock(options.clock ? options.clock : system_clock()),
      log(options.log, {.clock = clock}),
      metrics(isolate(options.metrics)),
      through(std::move(on)),
      behind(queue_for(through, options)),
      owns_queue(behind && !queue_in(through)),
      front(owns_queue ? behind : through),
      reads_wait(front->waits()),
      recents(options.recents) {
  metrics->gauge("holdfast_failover_points", {}, "points that are registered")->set(0);
}

engine_core::~engine_core() = default;

timestamp engine_core::stamp(timestamp now) noexcept {
  auto last = last_.load(std::memory_order_relaxed);
  for (;;) {
    // Set back by more than any store believes: whoever stays in that future writes what others must overwrite, and serves what has long
    // expired. So the clock is followed, and what is known about the future is forgotten.
    const bool back = last != timestamp::min() && last - now > options.max_skew;
    const auto next = back ? now : std::max(now, last == timestamp::min() ? now : last + std::chrono::microseconds(1));
    if (!last_.compare_exchange_weak(last, next, std::memory_order_relaxed)) continue;
    if (back) {
      recents.clear();
      log.write_limited("clock", log_level::warning, "the clock was set back; answers are stamped with its new time");
    }
    return next;
  }
}

void engine_core::note(std::uint64_t id, timestamp as_of) noexcept {
  if (recents.note(id, as_of)) return;
  // Seldom, so the clock is asked only here: what was noted before the clock was set back is from the future now.
  recents.forget_above(id, horizon(clock->now()));
  (void)recents.note(id, as_of);
}

executor& engine_core::pool(std::shared_ptr<thread_pool>& which, const char* name) {
  const std::scoped_lock lock(pools_mutex_);
  if (!which) {
    which = make_thread_pool(
        {.threads = options.threads, .queue = options.queue, .timers = options.queue, .name = name, .linger = {}, .log = options.log});
  }
  return *which;
}

executor& engine_core::calls() {
  auto* known = calls_.load(std::memory_order_acquire);
  if (known == nullptr) {
    known = options.executor ? options.executor.get() : &pool(calls_pool_, "hf-calls");
    calls_.store(known, std::memory_order_release);
  }
  return *known;
}

executor& engine_core::reads() {
  auto* known = reads_.load(std::memory_order_acquire);
  if (known == nullptr) {
    if (options.read_executor) known = options.read_executor.get();
    else known = options.executor ? options.executor.get() : &pool(reads_pool_, "hf-reads");
    reads_.store(known, std::memory_order_release);
  }
  return *known;
}

namespace {

/// Work that is run once, whatever a propagator does with it.
struct once {
  executor::task work{};
  std::atomic<bool> ran{false};

  void run() {
    if (ran.exchange(true)) return;
    const auto mine = std::move(work);
    mine();
  }
};

}  // namespace

executor::task engine_core::in_this_context(executor::task work) const {
  // The first is the outermost, so the last is put around the work first.
  for (const auto& each : options.propagate | std::views::reverse) {
    try {
      auto within = each();
      if (!within) continue;
      const auto inner = std::make_shared<once>();
      executor::task wrapped = [within = std::move(within), inner, engine = weak_from_this()] {
        const char* problem = nullptr;
        try {
          within([inner] { inner->run(); });
          if (!inner->ran) problem = "a context propagator did not run the work; it is run without that context";
        } catch (const abi::__forced_unwind&) {  // the thread is being cancelled: this must go on
          throw;
        } catch (...) {
          problem = "a context propagator threw around the work; it goes on without that context";
        }
        if (problem == nullptr) return;
        if (const auto core = engine.lock()) core->log.write_limited("propagate", log_level::error, problem);
        inner->run();
      };
      inner->work = std::move(work);
      work = std::move(wrapped);
    } catch (...) {
      log.write_limited("propagate", log_level::error, "a context propagator threw; work goes on without that context");
    }
  }
  return work;
}

void engine_core::pause(std::chrono::microseconds time) const {
  if (time.count() <= 0) return;
  const auto deadline = clock->steady() + time;
  const auto token = stop.get_token();
  std::unique_lock lock(pause_mutex_);
  const auto never = [] { return false; };
  if (machine_clock) {
    (void)pause_.wait_until(lock, token, deadline, never);
    return;
  }
  const auto real_deadline = std::chrono::steady_clock::now() + time;
  while (clock->steady() < deadline && std::chrono::steady_clock::now() < real_deadline && !token.stop_requested())
    (void)pause_.wait_for(lock, token, std::chrono::milliseconds(1), never);
}

std::vector<std::shared_ptr<point_core>> engine_core::all_points() const {
  const std::shared_lock lock(points_mutex);
  std::vector<std::shared_ptr<point_core>> all;
  all.reserve(points.size());
  for (const auto& each : points) all.push_back(each.second);
  return all;
}

std::chrono::steady_clock::time_point engine_core::on_queue_clock(std::chrono::steady_clock::time_point deadline) const noexcept {
  return owns_queue ? deadline : moment_after(behind->clock().steady(), time_until(deadline, clock->steady()));
}

bool engine_core::flush(std::chrono::steady_clock::time_point deadline) {
  return !behind || behind->flush(on_queue_clock(deadline)).complete();
}

close_report engine_core::close(std::chrono::steady_clock::time_point deadline) {
  using std::chrono::steady_clock;
  closed.store(true, std::memory_order_release);
  stop.request_stop();
  // The deadline is the clock's; a clock that stands still must not make us wait for ever.
  const auto time = std::min<steady_clock::duration>(time_until(deadline, clock->steady()), longest_wait);
  const auto real_deadline = steady_clock::now() + time;
  // Calls get three quarters of the time, so that hung ones leave some for writing.
  const auto calls_until = real_deadline - time / 4;
  const auto all = all_points();
  const auto any_running = [&] { return std::any_of(all.begin(), all.end(), [](const auto& each) { return each->running() != 0; }); };
  while (any_running() && steady_clock::now() < calls_until) std::this_thread::sleep_for(std::chrono::microseconds(500));

  close_report report;
  for (const auto& each : all) {
    if (const auto calls = each->running(); calls != 0) report.still_running.push_back({.point = each->name, .calls = calls});
  }
  if (behind) {
    // One that was given may have other users.
    const auto written = owns_queue ? behind->close(deadline) : behind->flush(on_queue_clock(deadline));
    report.unsaved = written.unsaved + written.in_flight;
    report.lost = written.failed + written.dropped;
  }
  std::shared_ptr<thread_pool> calls_pool;
  std::shared_ptr<thread_pool> reads_pool;
  {
    const std::scoped_lock lock(pools_mutex_);
    calls_pool = calls_pool_;
    reads_pool = reads_pool_;
  }
  if (calls_pool) (void)calls_pool->close(real_deadline);
  if (reads_pool) (void)reads_pool->close(real_deadline);
  return report;
}

}  // namespace HOLDFAST_NAMESPACE::detail
