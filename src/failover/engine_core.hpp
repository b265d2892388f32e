#pragma once

#include <holdfast/executor.hpp>
#include <holdfast/failover/core.hpp>
#include <holdfast/failover/options.hpp>
#include <holdfast/failover/status.hpp>
#include <holdfast/log.hpp>
#include <holdfast/metrics.hpp>
#include <holdfast/store.hpp>
#include <holdfast/store/write_behind.hpp>
#include <holdfast/version.hpp>

#include "base/deadline.hpp"
#include "failover/flights.hpp"
#include "failover/recents.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <stop_token>
#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail {

class point_core;

/// Shut when the engine is gone: nobody is told anything after that.
struct log_gate {
  std::shared_mutex mutex{};
  bool open = true;
};

/// What all points of an engine share. Owned by the engine, by its points and by every call on its way: a call that hangs keeps it alive.
class engine_core : public std::enable_shared_from_this<engine_core> {
 public:
  engine_core(std::shared_ptr<store> on, engine_options given);
  engine_core(const engine_core&) = delete;
  engine_core& operator=(const engine_core&) = delete;
  ~engine_core();

  /// When a call that starts now started: strictly increasing, unless the clock was set back by more than max_skew.
  [[nodiscard]] timestamp stamp(timestamp now) noexcept;

  /// The latest stamp that is believed now: what is beyond comes from a wrong clock, and holds no key.
  [[nodiscard]] timestamp horizon(timestamp now) const noexcept {
    return options.max_skew >= timestamp::max() - now ? timestamp::max() : now + options.max_skew;
  }
  /// The newest answer that was served for a key, if it is believed.
  [[nodiscard]] std::optional<timestamp> newest(std::uint64_t id) const noexcept {
    const auto known = recents.newest(id);
    return known && *known > horizon(clock->now()) ? std::nullopt : known;
  }
  /// An answer of that moment was, or is to be, served.
  void note(std::uint64_t id, timestamp as_of) noexcept;

  /// Where calls with a deadline and refreshes run, and where a store that may wait is read.
  [[nodiscard]] executor& calls();
  [[nodiscard]] executor& reads();

  /// Runs work on another thread within the context of this one.
  [[nodiscard]] executor::task in_this_context(executor::task work) const;

  /// Waits until `done` says so; false at the deadline, which is the engine's clock's. A clock that stands still (a test's) is asked again
  /// every millisecond, and believed only until the same time has passed on the machine's.
  template <class Done>
  bool wait(std::unique_lock<std::mutex>& lock, std::condition_variable& told, std::chrono::steady_clock::time_point deadline,
            Done done) const {
    if (machine_clock) return told.wait_until(lock, deadline, done);
    const auto machine_deadline = on_machine_clock(deadline);
    while (!done()) {
      if (clock->steady() >= deadline || std::chrono::steady_clock::now() >= machine_deadline) return false;
      told.wait_for(lock, std::chrono::milliseconds(1));
    }
    return true;
  }
  /// A deadline of the engine's clock, as the moment of the machine's that is as far away.
  [[nodiscard]] std::chrono::steady_clock::time_point on_machine_clock(std::chrono::steady_clock::time_point deadline) const noexcept {
    return machine_clock ? deadline : moment_after(std::chrono::steady_clock::now(), time_until(deadline, clock->steady()));
  }
  /// A pause on this thread; ends early when the engine closes.
  void pause(std::chrono::microseconds time) const;

  [[nodiscard]] std::vector<std::shared_ptr<point_core>> all_points() const;
  void report();
  /// How many entries each effective name has, expired ones included: what the store knows, or says within the read deadline. Nothing where
  /// tenants have a part each, and where counting takes a query that nobody asked for. Never called by a call.
  [[nodiscard]] std::map<std::string, std::uint64_t, std::less<>> count_entries() noexcept;
  /// Arms the timer of the next report, if there are to be any.
  void report_later() noexcept;
  [[nodiscard]] engine_health health() noexcept;
  /// Writes what the queue has, if there is one.
  bool flush(std::chrono::steady_clock::time_point deadline);
  close_report close(std::chrono::steady_clock::time_point deadline);

  const std::shared_ptr<log_gate> gate = std::make_shared<log_gate>();
  const engine_options options;
  const bool machine_clock;  ///< the clock is the machine's own
  const std::shared_ptr<const holdfast::clock> clock;
  const logger log;
  const std::shared_ptr<isolated_metrics> metrics;
  const std::shared_ptr<store> through;        ///< as it was given
  const std::shared_ptr<write_behind> behind;  ///< its own queue, or that of the given store; null when writes are not delayed
  const bool owns_queue;                       ///< in front of `through`; a given one is within it
  const std::shared_ptr<store> front;          ///< what is read, and written unless a point writes through
  const bool reads_wait;

  holdfast::recents recents;
  holdfast::flights flights;
  std::atomic<bool> closed{false};
  std::atomic<bool> report_refused{false};  ///< nobody took the timer of the next report: the next call arms it
  std::stop_source stop{};

  mutable std::shared_mutex points_mutex{};
  std::map<std::string, std::shared_ptr<point_core>, std::less<>> points{};

 private:
  /// A deadline of the engine's clock, as one of the queue's: a queue that was given has a clock of its own.
  [[nodiscard]] std::chrono::steady_clock::time_point on_queue_clock(std::chrono::steady_clock::time_point deadline) const noexcept;
  executor& pool(std::shared_ptr<thread_pool>& which, const char* name);

  alignas(64) std::atomic<timestamp> last_{timestamp::min()};
  alignas(64) mutable std::mutex pools_mutex_{};
  std::shared_ptr<thread_pool> calls_pool_{};
  std::shared_ptr<thread_pool> reads_pool_{};
  std::atomic<executor*> calls_{nullptr};
  std::atomic<executor*> reads_{nullptr};
  mutable std::mutex pause_mutex_{};
  mutable std::condition_variable_any pause_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail
