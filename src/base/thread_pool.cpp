// make_thread_pool: a bounded pool of threads with timers.

#include <holdfast/error.hpp>
#include <holdfast/executor.hpp>

#include "base/deadline.hpp"
#include "base/duration_limit.hpp"
#include "base/thread.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <iterator>
#include <list>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE {

executor::~executor() = default;

namespace {

using steady = std::chrono::steady_clock;

/// The state that the pool shares with its threads. A detached thread keeps it alive.
///
/// One idle thread, the timer keeper, waits for the next timer; the other idle threads wait for
/// work. When the keeper gets a task, it wakes another thread to replace it. Therefore a timer is
/// late only if all threads are busy.
class pool_state {
 public:
  explicit pool_state(thread_pool_options options)
      : options_(std::move(options)), log_(options_.log) {}

  /// Queues a task, or sets a timer if there is a due time.
  static bool post(const std::shared_ptr<pool_state>& self, executor::task&& task,
                   std::optional<steady::time_point> due);
  executor_close_report close(steady::time_point deadline);
  [[nodiscard]] thread_pool::numbers count() const;
  /// The deadline of the destructor.
  [[nodiscard]] steady::time_point linger_deadline() const {
    return detail::moment_after(steady::now(), options_.linger);
  }
  [[nodiscard]] const logger& log() const { return log_; }

 private:
  struct timer {
    steady::time_point due;
    std::uint64_t order;  // timers with the same due time run in the order of post
    executor::task task;
    /// The order of a heap whose front is the earliest timer.
    static bool later(const timer& a, const timer& b) {
      return a.due != b.due ? a.due > b.due : a.order > b.order;
    }
  };
  struct worker {
    std::jthread thread{};
    std::thread::id id{};  // a detached std::jthread has no id
    bool ended = false;
  };

  bool start_worker(const std::shared_ptr<pool_state>& self);
  bool wake_or_start(const std::shared_ptr<pool_state>& self, bool for_timer);
  void work(const std::shared_ptr<pool_state>& self, worker& current);
  std::optional<executor::task> next(std::unique_lock<std::mutex>& lock);
  void run(const executor::task& task);
  [[nodiscard]] bool is_worker() const;

  const thread_pool_options options_;
  const logger log_;

  mutable std::mutex mutex_{};
  std::condition_variable work_{};   // idle threads wait for it
  std::condition_variable timer_{};  // the timer keeper waits for it
  std::condition_variable ended_{};  // close() waits for it
  std::deque<executor::task> queue_{};
  std::vector<timer> timers_{};
  std::list<worker> workers_{};
  std::size_t idle_ = 0;     // threads that wait on work_
  std::size_t woken_ = 0;    // idle threads that are notified and not yet awake
  bool has_keeper_ = false;  // a thread waits on timer_
  bool closed_ = false;
  std::size_t running_ = 0;
  std::uint64_t order_ = 0;
  thread_pool::numbers totals_{};
};

bool pool_state::start_worker(const std::shared_ptr<pool_state>& self) {
  const auto alive = std::count_if(workers_.begin(), workers_.end(),
                                   [](const worker& existing) { return !existing.ended; });
  if (static_cast<std::size_t>(alive) >= options_.threads) return false;
  try {
    auto& added = workers_.emplace_back();
    try {
      added.thread =
          detail::start_quiet_thread(options_.name, [self, &added] { self->work(self, added); });
    } catch (...) {
      workers_.pop_back();
      throw;
    }
  } catch (const std::exception&) {
    return false;  // out of threads or memory: continue with the existing threads
  }
  return true;
}

/// Makes sure that a thread sees the new task or timer. Returns false if there is no thread and
/// none can be started.
bool pool_state::wake_or_start(const std::shared_ptr<pool_state>& self, bool for_timer) {
  if (for_timer && has_keeper_) {
    timer_.notify_one();
    return true;
  }
  if (idle_ > woken_) {
    ++woken_;
    work_.notify_one();
    return true;
  }
  if (start_worker(self)) return true;
  if (has_keeper_) timer_.notify_one();
  return !workers_.empty();
}

bool pool_state::post(const std::shared_ptr<pool_state>& self, executor::task&& task,
                      std::optional<steady::time_point> due) {
  auto& state = *self;
  // Destroyed after the lock is released, because destructors of captures are foreign code.
  std::deque<executor::task> refused;
  std::vector<timer> refused_timers;
  const std::scoped_lock lock(state.mutex_);
  const bool full = due ? state.timers_.size() >= state.options_.timers
                        : state.queue_.size() >= state.options_.queue;
  if (state.closed_ || full || !task) {
    ++state.totals_.rejected;
    return false;
  }
  try {
    if (due) {
      state.timers_.push_back({.due = *due, .order = ++state.order_, .task = std::move(task)});
      std::push_heap(state.timers_.begin(), state.timers_.end(), timer::later);
      // The keeper must wake up only if the new timer is the first.
      if (state.timers_.front().order != state.order_ && state.has_keeper_) return true;
    } else {
      state.queue_.push_back(std::move(task));
    }
  } catch (const std::bad_alloc&) {
    ++state.totals_.rejected;
    return false;
  }
  if (state.wake_or_start(self, due.has_value())) return true;
  // There is no thread, so this task is the only one that waits.
  refused.swap(state.queue_);
  refused_timers.swap(state.timers_);
  ++state.totals_.rejected;
  return false;
}

/// Waits for the next task to run. Returns nullopt if the pool is closed and has no more tasks.
std::optional<executor::task> pool_state::next(std::unique_lock<std::mutex>& lock) {
  for (;;) {
    if (!timers_.empty() && timers_.front().due <= steady::now()) {
      std::pop_heap(timers_.begin(), timers_.end(), timer::later);
      auto task = std::move(timers_.back().task);
      timers_.pop_back();
      return task;
    }
    if (!queue_.empty()) {
      auto first = std::move(queue_.front());
      queue_.pop_front();
      return first;
    }
    if (closed_) return std::nullopt;
    if (!timers_.empty() && !has_keeper_) {
      has_keeper_ = true;
      timer_.wait_until(lock, steady::time_point(timers_.front().due));
      has_keeper_ = false;
    } else {
      ++idle_;
      work_.wait(lock);
      --idle_;
      if (woken_ > 0) --woken_;
    }
  }
}

void pool_state::work(const std::shared_ptr<pool_state>& self, worker& current) {
  std::unique_lock lock(mutex_);
  current.id = std::this_thread::get_id();
  while (auto task = next(lock)) {
    ++running_;
    // This thread may have been the timer keeper, and is about to be busy.
    if (!timers_.empty() && !has_keeper_) wake_or_start(self, true);
    lock.unlock();
    try {
      run(*task);
    } catch (const abi::__forced_unwind&) {  // the task cancelled this thread
      lock.lock();
      --running_;
      ++totals_.ran;
      current.ended = true;
      // Another thread takes its place if there is work.
      if (!queue_.empty() || !timers_.empty()) wake_or_start(self, false);
      ended_.notify_all();
      throw;
    }
    task.reset();
    lock.lock();
    --running_;
    ++totals_.ran;
    if (closed_) ended_.notify_all();
  }
  current.ended = true;
  ended_.notify_all();
}

/// Runs a task and catches all its exceptions, except the cancellation of this thread.
void pool_state::run(const executor::task& task) {
  std::string problem;
  try {
    task();
    return;
  } catch (const abi::__forced_unwind&) {
    throw;
  } catch (const std::exception& e) {
    try {
      problem = e.what();
    } catch (...) {  // NOLINT(bugprone-empty-catch)
      // Out of memory: the record has no text.
    }
  } catch (...) {
    problem = "an exception that is not a std::exception";
  }
  {
    const std::scoped_lock lock(mutex_);
    ++totals_.threw;
  }
  log_.write_limited("task", log_level::error,
                     "a background task threw; tasks must catch their exceptions",
                     {{.name = "problem", .value = problem}});
}

bool pool_state::is_worker() const {
  const auto id = std::this_thread::get_id();
  return std::any_of(workers_.begin(), workers_.end(), [&](const worker& w) { return w.id == id; });
}

executor_close_report pool_state::close(steady::time_point deadline) {
  executor_close_report report;
  // Destroyed after the lock is released: destructors of captures are foreign code, and a jthread
  // joins.
  std::vector<timer> dropped_timers;
  std::deque<executor::task> dropped_tasks;
  std::list<worker> ended;

  std::unique_lock lock(mutex_);
  const std::size_t own_thread = is_worker() ? 1 : 0;
  const auto ran_before = totals_.ran;
  closed_ = true;
  // Timers that are due still run: next() returns them before it checks closed_.
  const auto first_not_due =
      std::partition(timers_.begin(), timers_.end(),
                     [now = steady::now()](const timer& t) { return t.due <= now; });
  std::move(first_not_due, timers_.end(), std::back_inserter(dropped_timers));
  timers_.erase(first_not_due, timers_.end());
  std::make_heap(timers_.begin(), timers_.end(), timer::later);
  report.timers = dropped_timers.size();
  work_.notify_all();
  timer_.notify_all();

  const auto alive = [&] {
    return static_cast<std::size_t>(
        std::count_if(workers_.begin(), workers_.end(), [](const worker& w) { return !w.ended; }));
  };
  ended_.wait_until(lock, deadline,
                    [&] { return queue_.empty() && timers_.empty() && alive() <= own_thread; });

  dropped_tasks.swap(queue_);
  report.dropped = dropped_tasks.size() + timers_.size();
  std::move(timers_.begin(), timers_.end(), std::back_inserter(dropped_timers));
  timers_.clear();
  report.ran = totals_.ran - ran_before;
  report.still_running = running_;
  for (auto next = workers_.begin(); next != workers_.end();) {
    const auto current = next++;
    if (current->ended) ended.splice(ended.end(), workers_, current);
    // A detached thread co-owns this state and ends with its task.
    else if (current->thread.joinable()) current->thread.detach();
  }
  lock.unlock();
  return report;
}

thread_pool::numbers pool_state::count() const {
  const std::scoped_lock lock(mutex_);
  auto result = totals_;
  result.queued = queue_.size();
  result.timers = timers_.size();
  result.running = running_;
  result.threads = workers_.size();
  return result;
}

class bounded_pool final : public thread_pool {
 public:
  explicit bounded_pool(thread_pool_options options)
      : state_(std::make_shared<pool_state>(std::move(options))) {}
  bounded_pool(const bounded_pool&) = delete;
  bounded_pool& operator=(const bounded_pool&) = delete;
  ~bounded_pool() override {
    const auto report = state_->close(state_->linger_deadline());
    if (report.dropped == 0 && report.still_running == 0) return;
    state_->log().write(log_level::warning,
                        "a thread pool was destroyed before its work was done; call close() first, "
                        "with a longer deadline",
                        {{.name = "dropped", .value = std::to_string(report.dropped)},
                         {.name = "still_running", .value = std::to_string(report.still_running)}});
  }

  bool post(task work) override { return pool_state::post(state_, std::move(work), std::nullopt); }
  bool post_after(steady::duration delay, task work) override {
    return pool_state::post(state_, std::move(work), detail::moment_after(steady::now(), delay));
  }
  executor_close_report close(steady::time_point deadline) override {
    return state_->close(deadline);
  }
  [[nodiscard]] numbers count() const override { return state_->count(); }

 private:
  const std::shared_ptr<pool_state> state_;
};

}  // namespace

std::shared_ptr<thread_pool> make_thread_pool(thread_pool_options options) {
  if (options.threads == 0)
    throw error(errc::invalid_argument, "a thread pool needs at least 1 thread");
  if (options.queue == 0)
    throw error(errc::invalid_argument, "a thread pool needs room for at least 1 task");
  options.linger = detail::limit_duration(options.linger);
  return std::make_shared<bounded_pool>(std::move(options));
}

}  // namespace HOLDFAST_NAMESPACE
