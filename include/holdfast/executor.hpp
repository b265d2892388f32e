#pragma once

/// \file
/// Where work runs that is not the caller's own: background writes, refreshes, timers. Give your own, or take the thread pool.

#include <holdfast/log.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace HOLDFAST_NAMESPACE {

/// Runs tasks, some time, on some thread. Bounded: it may refuse.
/// Thread-safety: every function may be called from any thread, from within tasks, too.
/// Exception safety: neither function throws because it is full, closed or out of memory; it says false.
class HOLDFAST_API executor {
 public:
  using task = std::function<void()>;

  virtual ~executor();

  /// Runs the task as soon as it can. False: full or closed; the task was not taken and is destroyed before this returns, so keep what
  /// must not be lost elsewhere (a shared_ptr that the task captures). A task should not throw; what it throws is counted and dropped.
  [[nodiscard]] virtual bool post(task what) = 0;

  /// The same, not before the delay has passed on the executor's own clock. A delay of zero or less means as soon as it can. A delay that
  /// reaches beyond the last moment of that clock never ends.
  [[nodiscard]] virtual bool post_after(std::chrono::steady_clock::duration delay, task what) = 0;
};

struct thread_pool_options {
  std::size_t threads = 2;                                     ///< the most; each is started when there is work and nobody idle
  std::size_t queue = 1024;                                    ///< tasks that wait; one more is refused
  std::size_t timers = 1024;                                   ///< timers that wait; one more is refused
  std::string name = "holdfast";                               ///< of the threads, as `top -H` shows them; cut to 15 bytes
  std::chrono::milliseconds linger = std::chrono::seconds(1);  ///< how long the destructor waits for what is queued and running
  log_sink log{};  ///< told of tasks that throw (at most once a minute) and of what a destructor leaves
};

/// What came of closing.
struct executor_close_report {
  std::size_t ran = 0;            ///< tasks that ended between the call and its return
  std::size_t left = 0;           ///< tasks that were still queued at the deadline and will never run
  std::size_t timers = 0;         ///< timers that were not due and will never run
  std::size_t still_running = 0;  ///< tasks that had not ended at the deadline; their threads were let go and end with them
  bool operator==(const executor_close_report&) const = default;
};

/// A bounded pool of threads, timers included: a pool that never got a task has no thread, and timers need none of their own.
///
/// Signals are blocked in its threads, so the application's handlers run on the application's threads. Everything a task throws is caught
/// and counted. A task that hangs does not hang the destructor: after `linger` its thread is detached; it owns what it needs to end later.
/// Such a task must not use what dies with the program's `main`.
///
/// Thread-safety: every function may be called from any thread; `close` from within a task waits for the others.
/// After fork the child has none of the threads: it must not use the pool.
class HOLDFAST_API thread_pool : public executor {
 public:
  /// Stops intake, drops timers that are not due, and runs what is queued until the deadline, a moment of std::chrono::steady_clock. Once
  /// closed it stays closed; a second call waits again for what is still running.
  virtual executor_close_report close(std::chrono::steady_clock::time_point deadline) = 0;

  struct numbers {
    std::size_t queued = 0;      ///< waiting for a thread
    std::size_t timers = 0;      ///< waiting for their time
    std::size_t running = 0;     ///< being run
    std::size_t threads = 0;     ///< that exist
    std::uint64_t ran = 0;       ///< ended, since the beginning
    std::uint64_t rejected = 0;  ///< refused: full or closed
    std::uint64_t threw = 0;     ///< of those that ran
  };
  [[nodiscard]] virtual numbers count() const = 0;
};

/// Throws errc::invalid_argument for a pool without threads or room.
[[nodiscard]] HOLDFAST_API std::shared_ptr<thread_pool> make_thread_pool(thread_pool_options options = {});

}  // namespace HOLDFAST_NAMESPACE
