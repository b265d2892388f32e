#pragma once

#include <holdfast/executor.hpp>

#include "store/write_behind/batch_writer.hpp"
#include "store/write_behind/queue_metrics.hpp"
#include "store/write_behind/queue_state.hpp"

#include <cstdint>
#include <memory>
#include <optional>

namespace HOLDFAST_NAMESPACE::detail::store {

/// Makes sure that pending operations are written, batch by batch, in tasks of the executor.
///
/// "The writer" is a role, not a thread: a thread that calls write_next_batch() while no other
/// thread writes has the role for one batch. After a batch the next task is posted, or a timer is
/// set for the end of a retry pause or for the next held operation.
///
/// The users' store and running tasks share this object, so that it outlives the store if the store
/// below hangs. Waiting tasks do not keep it alive.
class writer_loop : public std::enable_shared_from_this<writer_loop> {
 public:
  using time = queue_state::time;
  using guard = queue_state::guard;

  /// Throws errc::invalid_argument for invalid options.
  writer_loop(std::shared_ptr<holdfast::store> next, write_behind_options options,
              std::shared_ptr<const queue_rules> rules, std::weak_ptr<executor> runs_tasks);

  [[nodiscard]] queue_state& state() noexcept { return state_; }

  /// Whether a thread writes, or a task or timer will. Requires the lock.
  [[nodiscard]] bool active() const noexcept { return active_; }
  /// Whether the writer is active, or a timer for held operations is set. Requires the lock.
  [[nodiscard]] bool will_continue() const noexcept { return active_ || held_timer_.has_value(); }
  /// Posts a task unless the writer is active. If it posts, it releases the lock.
  void activate(guard& lock) noexcept;
  /// Waits until all operations that arrived before `sequence` are finished. Returns whether they
  /// are. Requires the lock.
  bool wait_until_saved(guard& lock, std::uint64_t sequence, time deadline);

  /// Writes one batch unless another thread writes, and makes sure that the rest is written.
  /// `timer`: the number of the timer that calls this, or 0.
  void write_next_batch(std::uint64_t timer = 0) noexcept;
  /// Called when the executor destroys a task without running it.
  void task_lost() noexcept;

  /// Updates the metrics.
  void publish() noexcept;

 private:
  /// A timer of the executor that has not run yet.
  struct armed_timer {
    time when{};
    std::uint64_t number = 0;
  };

  [[nodiscard]] executor::task make_task(std::uint64_t timer = 0);
  bool post_task() noexcept;
  void finish_batch(guard& lock) noexcept;
  void schedule_next(guard& lock) noexcept;
  [[nodiscard]] std::optional<armed_timer> next_timer(time now, bool busy);
  void ensure_writer(guard& lock, time deadline);
  void write_on_own_thread(time deadline);

  queue_state state_;
  batch_writer writer_;
  queue_metrics metrics_;
  write_behind_numbers published_{};
  // Weak: the executor may own our tasks, and must not be destroyed by one of them.
  const std::weak_ptr<executor> executor_;

  // Protected by the mutex of the state
  bool active_ = false;
  bool writing_ = false;     // a thread has the role of the writer
  bool own_thread_ = false;  // a thread of our own writes; the executor refuses tasks
  std::optional<armed_timer> held_timer_{};  // for held operations
  std::optional<armed_timer> retry_timer_{};
  std::uint64_t timers_armed_ = 0;
};

}  // namespace HOLDFAST_NAMESPACE::detail::store
