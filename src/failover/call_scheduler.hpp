#pragma once

/// \file
/// Shares threads between the calls of many points, so that no point can take all of them.

#include <holdfast/executor.hpp>
#include <holdfast/log.hpp>
#include <holdfast/version.hpp>

#include "failover/adaptive_limit.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::failover {

/// Runs jobs for callers that wait for them until a deadline. The jobs of one point are a group.
///
/// Threads:
/// - A job is attended while its caller waits. `threads` limits the attended jobs. If there are
///   several groups, a group has at most as many of them as stay free for the others.
/// - A job whose caller has left is late. Late jobs have threads of their own, up to three times
///   `threads`. Beyond that they are surplus, and take threads from the attended jobs.
/// - A group hangs if its last job was late. A group that does not hang gets an eighth of the
///   threads even if others have taken all of them, until there are twice as many; and one thread
///   in any case. A group that hangs gets one if its late jobs have ended, or if there are fewer
///   surplus jobs than `threads`.
/// - The attended and late jobs of a group are limited by an adaptive_limit. If only late jobs are
///   left, now and then one job is admitted to find out whether the upstream answers again. When a
///   job is in time, the late jobs of its group are no longer counted for the limit.
///
/// Waiting:
/// - A job that cannot start at once waits, if it can be expected to end before its deadline;
///   otherwise it is refused at once. Waiting jobs of a group start in their order, groups take
///   turns.
/// - A job that would end too late is refused when its turn comes. A job whose caller has left is
///   not started.
///
/// Thread-safety: every function may be called from any thread.
class call_scheduler : public std::enable_shared_from_this<call_scheduler> {
 public:
  using moment = std::chrono::steady_clock::time_point;

  struct settings {
    std::size_t threads = 64;
    std::size_t queue = 4096;   ///< jobs that may wait
    std::size_t groups = 1000;  ///< at most so many groups are added
    std::string name{};         ///< of the threads
    log_sink log{};
  };
  class group;
  class job;

  explicit call_scheduler(settings configured);
  call_scheduler(const call_scheduler&) = delete;
  call_scheduler& operator=(const call_scheduler&) = delete;
  ~call_scheduler();

  [[nodiscard]] std::shared_ptr<group> add_group();

  /// Runs `work` until `deadline` (std::chrono::steady_clock), now or later. Returns null if it is
  /// refused. If it is refused later, `refused` runs instead of `work`, on any thread.
  [[nodiscard]] std::shared_ptr<job> post(const std::shared_ptr<group>& owner, executor::task work,
                                          moment deadline, executor::task refused);
  /// The caller no longer waits for the job. Returns true if the job has not started; then neither
  /// `work` nor `refused` will run.
  bool leave(job& abandoned);
  /// Runs a task after a delay. Returns false if it is refused. The task must be short.
  [[nodiscard]] bool post_after(std::chrono::steady_clock::duration delay, executor::task task);

  /// Refuses waiting and new jobs, and waits for running ones until the deadline.
  void close(moment deadline);

  struct counts {
    std::size_t attended = 0;
    std::size_t late = 0;
    std::size_t waiting = 0;
  };
  [[nodiscard]] counts count() const;

 private:
  using job_list = std::list<std::shared_ptr<job>>;

  /// Late jobs beyond the threads that they have of their own.
  [[nodiscard]] std::size_t surplus() const noexcept;
  [[nodiscard]] bool may_start(const group& candidate, moment now) const;
  [[nodiscard]] bool may_wait(const group& candidate, moment now, moment deadline) const;
  /// Counts the job as running.
  void begin(job& started, moment now);
  /// Uncounts a job that has ended.
  void end(job& ended, moment now);
  /// Takes waiting jobs that may start now, and those that would end too late.
  void take_ready(moment now, job_list& ready, job_list& refused);
  /// Gives a job that has begun a thread. Returns false if there is none; then it has ended.
  [[nodiscard]] bool launch(const std::shared_ptr<job>& started);
  /// Called without the lock.
  void continue_with(const job_list& ready, const job_list& refused);
  /// The loop of a thread: runs the job, then further jobs.
  void run(std::shared_ptr<job> current);

  const settings settings_;
  const std::shared_ptr<thread_pool> pool_;
  mutable std::mutex mutex_{};
  std::vector<std::shared_ptr<group>> groups_{};
  std::list<group*> turns_{};  // groups with waiting jobs; the first one is next
  std::size_t attended_ = 0;
  std::size_t late_ = 0;
  std::size_t waiting_ = 0;
  bool closed_ = false;
};

}  // namespace HOLDFAST_NAMESPACE::detail::failover
