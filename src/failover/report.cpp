#include "failover/report.hpp"

#include "base/cron.hpp"
#include "failover/insight/outlook.hpp"
#include "failover/point_core.hpp"

#include <algorithm>

namespace HOLDFAST_NAMESPACE::detail::failover {

namespace {

store_health health_of_store(engine_core& engine) {
  if (!engine.reads_block) return engine.front_store->health();
  struct health_check : store_work {
    store_health health{};
  };
  const auto check = std::make_shared<health_check>();
  const auto deadline = engine.clock->steady() + engine.options.storage.read_deadline;
  store_health unknown;
  const auto work = [check = check.get(), store = engine.front_store] {
    check->health = store->health();
  };
  if (!engine.start_upkeep(check, work, deadline))
    unknown.problem = "no thread is free to ask the store";
  else if (engine.wait_for(*check, deadline) == engine_core::wait_result::ended)
    return std::move(check->health);
  else unknown.problem = "the store did not answer within the read deadline";
  return unknown;
}

using entry_counts = std::map<std::string, std::uint64_t, std::less<>>;

/// The number of entries of each effective name, including expired ones, as far as the store
/// answers within the read deadline. Empty if tenants have their own parts of the store, and if
/// counting would take queries that engine_reports::count_entries does not allow.
entry_counts count_entries(engine_core& engine) noexcept {
  struct counting : store_work {
    entry_counts counts{};
  };
  try {
    if (engine.options.caller.tenant ||
        (engine.reads_block && !engine.options.reports.count_entries))
      return {};
    std::set<std::string> names;
    for (const auto& point : engine.all_points()) names.insert(point->effective_name);
    const auto count = std::make_shared<counting>();
    // Asks the store under the queue: the queue would write everything before it counts.
    const executor::task work = [count = count.get(), names = std::move(names),
                                 store = engine.base_store] {
      for (const auto& name : names) {
        const auto entries = store->count(place(name));
        const std::scoped_lock lock(count->mutex);
        if (count->abandoned) return;
        count->counts[name] = entries;
      }
    };
    if (!engine.reads_block) {
      engine_core::run_here(*count, work);
    } else {
      const auto deadline = engine.clock->steady() + engine.options.storage.read_deadline;
      if (!engine.start_upkeep(count, work, deadline)) return {};
      (void)engine.wait_for(*count, deadline);
    }
    const std::scoped_lock lock(count->mutex);
    return count->counts;
  } catch (...) {
    return {};
  }
}

void log_point(const logger& log, const point_status& status) {
  const auto& n = status.numbers;
  const std::array<std::string, 8> texts{
      std::to_string(n.started),      std::to_string(n.live),        std::to_string(n.stale),
      std::to_string(n.substituted),  std::to_string(n.failed),      std::to_string(n.stored),
      std::to_string(n.store_failed), std::to_string(status.running)};
  log.write(log_level::info, "failover report",
            {{"name", status.name},
             {"domain", status.effective_name},
             {"expiry", status.expiry},
             {"breaker", to_string(status.breaker)},
             {"calls", texts[0]},
             {"live", texts[1]},
             {"stale", texts[2]},
             {"substituted", texts[3]},
             {"failed", texts[4]},
             {"stored", texts[5]},
             {"store_failed", texts[6]},
             {"running", texts[7]}});
}

}  // namespace

engine_health health_of(engine_core& engine) noexcept {
  engine_health result;
  try {
    const auto points = engine.all_points();
    result.points = points.size();
    for (const auto& point : points) result.running += point->running();
    result.regressions_possible = engine.served->evicted();
    result.sink_failures = engine.log.failures() + engine.metrics->failures();
    if (engine.write_queue) {
      const auto numbers = engine.write_queue->numbers();
      result.unsaved = numbers.pending;
      result.oldest_unsaved = numbers.oldest;
      if (numbers.stalled) result.problem = "writes have been failing for some time";
    }
    result.store_answers = engine.guard.answers();
    if (!result.store_answers) result.problem = "the store does not answer, and is not asked";
    result.store = health_of_store(engine);
    if (result.problem.empty()) result.problem = result.store.problem;
    result.healthy = result.store.available && result.problem.empty();
  } catch (const std::exception& e) {
    result.healthy = false;
    try {
      result.problem = e.what();
    } catch (...) {  // NOLINT(bugprone-empty-catch)
      // Out of memory: unhealthy without a text.
    }
  }
  return result;
}

void write_report(engine_core& engine) {
  const bool has_metrics = engine.options.metrics != nullptr;
  const auto entries = has_metrics ? count_entries(engine) : entry_counts{};
  for (const auto& point : engine.all_points()) {
    const auto status = point->status();
    if (point->meters) {
      point->meters->gauges(status.breaker, status.numbers, status.running);
      if (const auto count = entries.find(point->effective_name); count != entries.end())
        point->meters->entries(count->second);
    }
    if (engine.log.listened()) log_point(engine.log, status);
  }
  if (!has_metrics) return;
  if (engine.options.insight.coverage) update_outlook_gauges(engine);
  const auto health = health_of(engine);
  const auto set = [&](const char* name, double value, const char* help) {
    engine.metrics->gauge(name, {}, help)->set(value);
  };
  set("holdfast_failover_healthy", health.healthy ? 1 : 0,
      "1 when the store answers and writes get through");
  set("holdfast_failover_store_answers", health.store_answers ? 1 : 0,
      "0 while calls are not answered from the store because it does not answer");
  set("holdfast_failover_unsaved", static_cast<double>(health.unsaved), "writes that wait");
  set("holdfast_failover_oldest_unsaved_seconds",
      std::chrono::duration<double>(health.oldest_unsaved).count(),
      "how long the oldest write has waited");
  set("holdfast_failover_regressions_possible", static_cast<double>(health.regressions_possible),
      "keys that the table of recent ones had no room for");
  set("holdfast_failover_sink_failures", static_cast<double>(health.sink_failures),
      "times that the log or metrics sink threw");
}

void schedule_report(engine_core& engine) noexcept {
  if (engine.closed.load(std::memory_order_acquire)) return;
  try {
    std::chrono::steady_clock::duration pause = engine.options.reports.every;
    std::optional<timestamp> due;
    if (!engine.options.reports.cron.empty()) {
      const auto now = engine.clock->now();
      due = cron::parse(engine.options.reports.cron)
                .next(std::chrono::floor<std::chrono::seconds>(now));
      if (!due) return;
      pause = std::min<std::chrono::microseconds>(*due - now, longest_sleep_until_wall_time);
    }
    if (pause.count() == 0) return;
    const bool accepted =
        engine.background().post_after(pause, [self = engine.weak_from_this(), due] {
          const auto core = self.lock();
          if (!core || core->closed.load(std::memory_order_acquire)) return;
          if (!due || core->clock->now() >= *due) {
            try {
              write_report(*core);
            } catch (...) {  // NOLINT(bugprone-empty-catch)
              // The next report may succeed.
            }
          }
          schedule_report(*core);
        });
    if (accepted) return;
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // Out of memory, or no thread could be started: as if the executor had refused.
  }
  engine.log.write_limited("report", log_level::warning,
                           "the executor is full; the next call schedules the next report");
  engine.report_refused.store(true, std::memory_order_relaxed);
}

}  // namespace HOLDFAST_NAMESPACE::detail::failover
