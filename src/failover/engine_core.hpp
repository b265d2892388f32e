#pragma once

#include <holdfast/executor.hpp>
#include <holdfast/failover/core.hpp>
#include <holdfast/failover/options.hpp>
#include <holdfast/failover/status.hpp>
#include <holdfast/log.hpp>
#include <holdfast/metrics.hpp>
#include <holdfast/store.hpp>
#include <holdfast/store/write_behind.hpp>

#include "base/deadline.hpp"
#include "failover/call_scheduler.hpp"
#include "failover/call_stamps.hpp"
#include "failover/insight/outlook_turn.hpp"
#include "failover/read_time.hpp"
#include "failover/served_versions.hpp"
#include "failover/shared_reads.hpp"
#include "failover/single_flight.hpp"
#include "failover/store_guard.hpp"
#include "store/checks.hpp"

#include <mutex>
#include <shared_mutex>

namespace HOLDFAST_NAMESPACE::detail::failover {

class point_core;

/// Hash of a row, from the hash of its name.
[[nodiscard]] std::uint64_t row_id(std::uint64_t name_hash, std::string_view key,
                                   std::string_view realm) noexcept;

/// Closed by the destructor of the engine: nothing is logged after that.
struct log_gate {
  std::shared_mutex mutex{};
  bool open = true;
};

/// The state that all points of an engine share. Owned by the engine, its points and its running
/// calls, so a hung call keeps it alive.
class engine_core : public std::enable_shared_from_this<engine_core> {
 public:
  engine_core(std::shared_ptr<holdfast::store> store, engine_options unchecked_options);
  engine_core(const engine_core&) = delete;
  engine_core& operator=(const engine_core&) = delete;
  ~engine_core();

  /// The as_of of a call that starts now; see call_stamps.
  [[nodiscard]] timestamp stamp(timestamp now) noexcept;
  /// The latest as_of that is accepted. An entry beyond it was written with a wrong clock.
  [[nodiscard]] timestamp horizon(timestamp now) const noexcept {
    return store::skew_horizon(now, options.storage.max_skew);
  }
  /// The newest answer that was served for a key, unless it is beyond the horizon.
  [[nodiscard]] std::optional<timestamp> newest_served(std::uint64_t id) const noexcept {
    const auto version = served->newest(id);
    return version && *version > horizon(clock->now()) ? std::nullopt : version;
  }
  /// Records that an answer was stored: no older one is served from now on.
  void note_served(std::uint64_t id, timestamp as_of) noexcept;

  /// The threads of calls with a deadline.
  [[nodiscard]] call_scheduler& calls();
  /// The threads of reads of a store that may block.
  [[nodiscard]] call_scheduler& reads();
  /// The threads of refreshes. Not used if the options have an executor.
  [[nodiscard]] call_scheduler& refreshes();
  /// Runs reports and other short tasks.
  [[nodiscard]] executor& background();
  /// Wraps work for another thread, to run in the context of this thread.
  [[nodiscard]] executor::task in_this_context(executor::task work) const;

  /// The threads that a piece of work on the store gets.
  using thread_group = std::shared_ptr<call_scheduler::group>;
  /// Starts work on the store that a caller waits for. It runs in the context of this thread.
  /// Returns false if no thread is free, nor will be by the deadline.
  [[nodiscard]] bool start(const std::shared_ptr<store_work>& state, const thread_group& group,
                           executor::task work, std::chrono::steady_clock::time_point deadline);
  /// Starts one of several parts of the same work. The parts mark the work as started and ended. If
  /// this part gets no thread in time, `refused` runs instead.
  [[nodiscard]] bool start_part(const std::shared_ptr<store_work>& state, const thread_group& group,
                                executor::task part, std::chrono::steady_clock::time_point deadline,
                                executor::task refused);
  /// Starts a health check, a count or an erase, without a context. Returns as `start`.
  [[nodiscard]] bool start_upkeep(const std::shared_ptr<store_work>& state, executor::task work,
                                  std::chrono::steady_clock::time_point deadline);
  /// Ends work that gets no thread.
  static void refuse(store_work& state);
  /// Runs work on this thread, and marks it as ended.
  static void run_here(store_work& state, const executor::task& work);
  enum class wait_result : std::uint8_t {
    ended,
    refused,   ///< no thread was free in time
    late,      ///< at the deadline; other callers still wait
    abandoned  ///< at the deadline, and this was the last caller
  };
  /// Waits until the work has ended, at most until the deadline.
  [[nodiscard]] wait_result wait_for(store_work& state,
                                     std::chrono::steady_clock::time_point deadline);

  /// When a read for this call must have ended.
  [[nodiscard]] std::chrono::steady_clock::time_point read_deadline(
      const call_base& call) const noexcept {
    return std::min(call.deadline, clock->steady() + options.storage.read_deadline);
  }
  /// Records how a read of the store ended. Starts probes if the store is given up.
  void record_read(bool answered, std::chrono::steady_clock::duration duration) noexcept;
  /// Records a read that its callers have left as failed, if it has started and does not end within
  /// the read deadline.
  void watch_read(const std::shared_ptr<store_work>& read,
                  std::chrono::steady_clock::time_point started) noexcept;

  /// Waits for `done` until the deadline, which refers to the clock of the engine. A clock that is
  /// not the system clock (a test's) is polled every millisecond. If it stands still, the same time
  /// on the system clock is the limit.
  template <class Done>
  bool wait(std::unique_lock<std::mutex>& lock, std::condition_variable& changed,
            std::chrono::steady_clock::time_point deadline, Done done) const {
    if (uses_system_clock) return changed.wait_until(lock, deadline, done);
    const auto system_deadline = on_system_clock(deadline);
    while (!done()) {
      if (clock->steady() >= deadline || std::chrono::steady_clock::now() >= system_deadline)
        return false;
      changed.wait_for(lock, std::chrono::milliseconds(1));
    }
    return true;
  }
  /// Converts a deadline of the engine's clock to std::chrono::steady_clock.
  [[nodiscard]] std::chrono::steady_clock::time_point on_system_clock(
      std::chrono::steady_clock::time_point deadline) const noexcept {
    return uses_system_clock ? deadline
                             : moment_after(std::chrono::steady_clock::now(),
                                            time_until(deadline, clock->steady()));
  }
  /// Sleeps on this thread. Returns early if the engine closes.
  void pause(std::chrono::microseconds duration) const;

  [[nodiscard]] std::vector<std::shared_ptr<point_core>> all_points() const;
  /// Throws errc::not_found if no point has this name.
  [[nodiscard]] std::shared_ptr<point_core> find_point(std::string_view name) const;
  /// A number for provenance::decision. The first is random, so that the references of an earlier
  /// process lead to nothing.
  [[nodiscard]] std::uint64_t next_decision() noexcept {
    return decisions_.fetch_add(1, std::memory_order_relaxed);
  }
  /// Writes the queue, if there is one.
  bool flush(std::chrono::steady_clock::time_point deadline);
  close_report close(std::chrono::steady_clock::time_point deadline);

  const std::shared_ptr<log_gate> gate = std::make_shared<log_gate>();
  const engine_options options;
  const bool uses_system_clock;
  const std::shared_ptr<const holdfast::clock> clock;
  const logger log;
  const std::shared_ptr<isolated_metrics> metrics;
  /// The newest versions that were stored. Shared with the queue, which may outlive the engine.
  const std::shared_ptr<served_versions> served;
  /// The store that the application passed.
  const std::shared_ptr<holdfast::store> base_store;
  /// The queue of the engine, or that of base_store; null if writes are not queued.
  const std::shared_ptr<write_behind> write_queue;
  const bool owns_queue;  ///< write_queue belongs to the engine and wraps base_store
  /// The store that is read, and written unless a point bypasses the queue of the engine.
  const std::shared_ptr<holdfast::store> front_store;
  const bool reads_block;  ///< reading front_store may block

  single_flight shared_calls;
  shared_reads running_reads;
  store_guard guard;
  read_time reading;
  std::atomic<bool> closed{false};
  /// The executor refused the timer of the next report; the next call tries again.
  std::atomic<bool> report_refused{false};
  std::atomic<int> running_looks{0};  ///< see insight/look.hpp
  outlook_turn outlooks{};            ///< one outlook at a time asks the store
  std::stop_source stop{};

  mutable std::shared_mutex points_mutex{};
  std::map<std::string, std::shared_ptr<point_core>, std::less<>> points{};

 private:
  /// Converts a deadline of the engine's clock to the clock of the queue, which may have its own.
  [[nodiscard]] std::chrono::steady_clock::time_point on_queue_clock(
      std::chrono::steady_clock::time_point deadline) const noexcept;
  /// Threads that are started when they are first needed.
  struct lazy_scheduler {
    std::shared_ptr<call_scheduler> owned{};
    std::atomic<call_scheduler*> ready{nullptr};
  };
  call_scheduler& start_scheduler(lazy_scheduler& lazy, std::size_t threads, const char* name);
  /// Asks the store in the background whether it answers again.
  void schedule_probe(std::chrono::milliseconds pause) noexcept;

  std::atomic<std::uint64_t> decisions_;
  alignas(128) call_stamps stamps_;
  alignas(128) mutable std::mutex threads_mutex_{};
  lazy_scheduler calls_{};
  lazy_scheduler reads_{};
  lazy_scheduler refreshes_{};
  thread_group upkeep_group_{};
  std::shared_ptr<thread_pool> background_pool_{};
  std::atomic<executor*> background_{nullptr};
  mutable std::mutex pause_mutex_{};
  mutable std::condition_variable_any pause_{};
};

/// All problems in one sentence: `start` and the problems, separated by semicolons.
[[nodiscard]] std::string join_problems(std::string start,
                                        const std::vector<std::string>& problems);

}  // namespace HOLDFAST_NAMESPACE::detail::failover
