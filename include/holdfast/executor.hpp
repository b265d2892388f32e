#pragma once

/// \file
/// Runs work in the background: writes, refreshes, timers. Implement `executor` or use the thread
/// pool.

#include <holdfast/log.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace HOLDFAST_NAMESPACE {

/// Runs tasks later, on threads of its choice. Its queue is bounded, so it may refuse a task.
/// Thread-safety: every function may be called from any thread, including from tasks.
/// Exception safety: a full, closed or memory-starved executor returns false and does not throw.
class HOLDFAST_API executor {
 public:
  using task = std::function<void()>;

  virtual ~executor();

  /// Runs the task as soon as possible. Returns false if the executor is full or closed. The task
  /// is then destroyed before this returns; if its data must survive, let the task capture a
  /// shared_ptr to it. A task should not throw; its exceptions are counted and dropped.
  [[nodiscard]] virtual bool post(task work) = 0;

  /// As `post`, but not before the delay has passed on the executor's own clock. A delay of zero or
  /// less has no effect. A delay that exceeds the range of that clock never ends.
  [[nodiscard]] virtual bool post_after(std::chrono::steady_clock::duration delay, task work) = 0;
};

struct thread_pool_options {
  /// Maximum number of threads. A thread is started when there is work and no idle thread.
  std::size_t threads = 2;
  /// Maximum number of waiting tasks; more are refused.
  std::size_t queue = 1024;
  /// Maximum number of waiting timers; more are refused.
  std::size_t timers = 1024;
  /// Name of the threads, as `top -H` shows it. Truncated to 15 bytes.
  std::string name = "holdfast";
  /// How long the destructor waits for queued and running tasks.
  std::chrono::milliseconds linger = std::chrono::seconds(1);
  /// Receives records about tasks that throw (at most one per minute) and about tasks that the
  /// destructor drops.
  log_sink log{};
};

/// The result of thread_pool::close.
struct executor_close_report {
  /// Tasks that ended during the call.
  std::size_t ran = 0;
  /// Tasks that were still queued at the deadline. They will never run.
  std::size_t dropped = 0;
  /// Timers that were not due. They will never run.
  std::size_t timers = 0;
  /// Tasks that were running at the deadline. Their threads are detached and end with them.
  std::size_t still_running = 0;
  bool operator==(const executor_close_report&) const = default;
};

/// A bounded pool of threads with timers. It starts threads on demand; timers need no thread of
/// their own.
///
/// - Signals are blocked in its threads, so the application's handlers run on the application's
///   threads.
/// - Exceptions of tasks are caught and counted.
/// - A task that hangs does not hang the destructor: after `linger` its thread is detached. It owns
///   the state that it needs to end later. Such a task must not use objects that are destroyed when
///   `main` returns.
///
/// Thread-safety: every function may be called from any thread. When a task calls `close`, it waits
/// for the other tasks only. After fork the child must not use the pool, because its threads do not
/// exist there.
class HOLDFAST_API thread_pool : public executor {
 public:
  /// Refuses new tasks, drops timers that are not due, and runs queued tasks until the deadline on
  /// std::chrono::steady_clock. The pool stays closed. A second call waits again for the tasks that
  /// are still running.
  virtual executor_close_report close(std::chrono::steady_clock::time_point deadline) = 0;

  struct numbers {
    std::size_t queued = 0;      ///< tasks that wait for a thread
    std::size_t timers = 0;      ///< timers that are not due
    std::size_t running = 0;     ///< tasks that run now
    std::size_t threads = 0;     ///< threads that exist
    std::uint64_t ran = 0;       ///< tasks that ended, since construction
    std::uint64_t rejected = 0;  ///< tasks refused because the pool was full or closed
    std::uint64_t threw = 0;     ///< tasks that ended with an exception
  };
  [[nodiscard]] virtual numbers count() const = 0;
};

/// Throws errc::invalid_argument if `threads` or `queue` is 0.
[[nodiscard]] HOLDFAST_API std::shared_ptr<thread_pool> make_thread_pool(
    thread_pool_options options = {});

}  // namespace HOLDFAST_NAMESPACE
