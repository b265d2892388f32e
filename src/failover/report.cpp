// How the engine is: health, and what is said and shown from time to time.

#include "base/cron.hpp"
#include "failover/point_core.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail {

point_status point_core::status() const {
  return {.name = name,
          .domain = options.domain,
          .effective_name = effective_name,
          .expiry = options.expiry.text(),
          .payload_class = payload_class,
          .enabled = options.enabled,
          .breaker = breaker ? breaker->state(engine.clock->steady()) : breaker_state::closed,
          .running = running(),
          .numbers = tallies.numbers()};
}

engine_health engine_core::health() noexcept {
  engine_health result;
  try {
    const auto all = all_points();
    result.points = all.size();
    for (const auto& each : all) result.running += each->running();
    result.regressions_possible = recents.evicted();
    result.sink_failures = log.failures() + metrics->failures();
    if (behind) {
      const auto numbers = behind->numbers();
      result.unsaved = numbers.pending;
      result.oldest_unsaved = numbers.oldest;
      if (numbers.stalled) result.problem = "writes have been failing for some time";
    }
    if (!reads_wait) {
      result.store = front->health();
    } else {
      struct errand {
        std::mutex mutex{};
        std::condition_variable done{};
        std::optional<store_health> how{};
      };
      const auto job = std::make_shared<errand>();
      const auto deadline = clock->steady() + options.read_deadline;
      const bool posted = reads().post([job, from = front] {
        auto how = from->health();
        const std::scoped_lock lock(job->mutex);
        job->how = std::move(how);
        job->done.notify_all();
      });
      std::unique_lock lock(job->mutex);
      if (posted) (void)wait(lock, job->done, deadline, [&] { return job->how.has_value(); });
      if (auto how = std::move(job->how)) result.store = *std::move(how);
      else result.store.problem = posted ? "the store did not answer within the read deadline" : "no thread is free to ask the store";
    }
    if (!result.store.available && result.problem.empty()) result.problem = result.store.problem;
    result.healthy = result.store.available && result.problem.empty();
  } catch (const std::exception& e) {
    result.healthy = false;
    try {
      result.problem = e.what();
    } catch (...) {  // NOLINT(bugprone-empty-catch)
      // No memory for the words; unhealthy it is.
    }
  }
  return result;
}

std::map<std::string, std::uint64_t, std::less<>> engine_core::count_entries() noexcept {
  struct errand {
    std::mutex mutex{};
    std::condition_variable done{};
    std::map<std::string, std::uint64_t, std::less<>> counted{};
    bool ended = false;
    bool left = false;
  };
  try {
    if (options.tenant || (reads_wait && !options.count_entries)) return {};
    std::set<std::string> names;
    for (const auto& each : all_points()) names.insert(each->effective_name);
    const auto job = std::make_shared<errand>();
    // Past the queue: it would write all that waits before it counts.
    const auto work = [job, names = std::move(names), from = through] {
      std::unique_lock lock(job->mutex);
      try {
        for (const auto& name : names) {
          lock.unlock();
          const auto entries = from->count(place(name));
          lock.lock();
          if (job->left) return;
          job->counted[name] = entries;
        }
      } catch (...) {  // NOLINT(bugprone-empty-catch)
        // A gauge is not worth a word: health() says what the store has.
      }
      if (!lock.owns_lock()) lock.lock();
      job->ended = true;
      job->done.notify_all();
    };
    if (!reads_wait) {
      work();
      return job->counted;
    }
    const auto deadline = clock->steady() + options.read_deadline;
    if (!reads().post(work)) return {};
    std::unique_lock lock(job->mutex);
    (void)wait(lock, job->done, deadline, [&] { return job->ended; });
    job->left = true;
    return job->counted;
  } catch (...) {
    return {};
  }
}

void engine_core::report() {
  const auto entries = options.metrics ? count_entries() : std::map<std::string, std::uint64_t, std::less<>>{};
  for (const auto& each : all_points()) {
    const auto status = each->status();
    if (each->meters) {
      each->meters->gauges(status.breaker, status.numbers, status.running);
      if (const auto counted = entries.find(each->effective_name); counted != entries.end()) each->meters->entries(counted->second);
    }
    if (!log.listened()) continue;
    const auto& n = status.numbers;
    const std::array<std::string, 8> texts{std::to_string(n.started),      std::to_string(n.live),        std::to_string(n.stale),
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
  if (!options.metrics) return;
  const auto how = health();
  metrics->gauge("holdfast_failover_healthy", {}, "1 when the store answers and writes get through")->set(how.healthy ? 1 : 0);
  metrics->gauge("holdfast_failover_unsaved", {}, "writes that wait")->set(static_cast<double>(how.unsaved));
  metrics->gauge("holdfast_failover_oldest_unsaved_seconds", {}, "how long the oldest write has waited")
      ->set(std::chrono::duration<double>(how.oldest_unsaved).count());
  metrics->gauge("holdfast_failover_regressions_possible", {}, "keys that the table of recent ones had no room for")
      ->set(static_cast<double>(how.regressions_possible));
  metrics->gauge("holdfast_failover_sink_failures", {}, "times that the log or metrics sink threw")
      ->set(static_cast<double>(how.sink_failures));
}

void engine_core::report_later() noexcept {
  if (closed.load(std::memory_order_acquire)) return;
  try {
    std::chrono::steady_clock::duration pause = options.report_every;
    std::optional<timestamp> due;
    if (!options.report_cron.empty()) {
      const auto now = clock->now();
      due = cron::parse(options.report_cron).next(std::chrono::floor<std::chrono::seconds>(now));
      if (!due) return;
      pause = std::min<std::chrono::microseconds>(*due - now, longest_sleep_until_wall_time);
    }
    if (pause.count() == 0) return;
    const bool taken = calls().post_after(pause, [self = weak_from_this(), due] {
      const auto core = self.lock();
      if (!core || core->closed.load(std::memory_order_acquire)) return;
      if (due && core->clock->now() < *due) return core->report_later();
      try {
        core->report();
      } catch (...) {  // NOLINT(bugprone-empty-catch)
        // The next one may do better.
      }
      core->report_later();
    });
    if (taken) return;
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // No memory, no thread: as if it had been refused.
  }
  log.write_limited("report", log_level::warning, "the executor has no room for the next report; the next call asks it again");
  report_refused.store(true, std::memory_order_relaxed);
}

}  // namespace HOLDFAST_NAMESPACE::detail
