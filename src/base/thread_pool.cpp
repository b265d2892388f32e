#include <holdfast/error.hpp>
#include <holdfast/executor.hpp>

#include "base/deadline.hpp"
#include "base/thread.hpp"

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

/// What the pool and its threads share; a thread that was let go keeps it alive.
///
/// Of the threads that have nothing to do, one (the keeper) waits for the next timer, the others for work. A keeper that gets something to
/// run wakes another to take its place, so a timer is late only when every thread is busy.
class pool_state {
 public:
  explicit pool_state(thread_pool_options options) : options_(std::move(options)), log_(options_.log) {}

  static bool post(const std::shared_ptr<pool_state>& self, executor::task&& what, std::optional<steady::time_point> when);
  executor_close_report close(steady::time_point deadline);
  [[nodiscard]] thread_pool::numbers count() const;
  [[nodiscard]] steady::time_point lingering() const { return moment_after(steady::now(), options_.linger); }
  [[nodiscard]] const logger& log() const { return log_; }

 private:
  struct timer {
    steady::time_point when;
    std::uint64_t order;  // of two for the same moment the first posted is first
    executor::task what;
    /// For a heap whose front is the earliest.
    static bool later(const timer& a, const timer& b) { return a.when != b.when ? a.when > b.when : a.order > b.order; }
  };
  struct worker {
    std::jthread thread{};
    std::thread::id id{};  // the thread's own does not survive letting it go
    bool ended = false;
  };

  bool start_worker(const std::shared_ptr<pool_state>& self);
  bool wake_or_start(const std::shared_ptr<pool_state>& self, bool for_timer);
  void work(const std::shared_ptr<pool_state>& self, worker& me) noexcept;
  std::optional<executor::task> next(std::unique_lock<std::mutex>& lock);
  void run(const executor::task& what) noexcept;
  [[nodiscard]] bool is_worker() const;

  const thread_pool_options options_;
  const logger log_;

  mutable std::mutex mutex_{};
  std::condition_variable work_{};   // for idle threads
  std::condition_variable timer_{};  // for the keeper
  std::condition_variable ended_{};  // for close()
  std::deque<executor::task> queue_{};
  std::vector<timer> timers_{};
  std::list<worker> workers_{};
  std::size_t idle_ = 0;   // waiting on work_
  std::size_t woken_ = 0;  // of these, notified and not yet awake
  bool keeper_ = false;    // somebody waits on timer_
  bool closed_ = false;
  std::size_t running_ = 0;
  std::uint64_t order_ = 0;
  thread_pool::numbers totals_{};
};

bool pool_state::start_worker(const std::shared_ptr<pool_state>& self) {
  if (workers_.size() >= options_.threads) return false;
  try {
    auto& made = workers_.emplace_back();
    try {
      made.thread = start_quiet_thread(options_.name, [self, &made] { self->work(self, made); });
    } catch (...) {
      workers_.pop_back();
      throw;
    }
  } catch (const std::exception&) {
    return false;  // the machine has no thread or memory to give: those that exist must do
  }
  return true;
}

/// Somebody must see what was added. False when there is no thread at all and none can be had.
bool pool_state::wake_or_start(const std::shared_ptr<pool_state>& self, bool for_timer) {
  if (for_timer && keeper_) {
    timer_.notify_one();
    return true;
  }
  if (idle_ > woken_) {
    ++woken_;
    work_.notify_one();
    return true;
  }
  if (start_worker(self)) return true;
  if (keeper_) timer_.notify_one();
  return !workers_.empty();
}

bool pool_state::post(const std::shared_ptr<pool_state>& self, executor::task&& what, std::optional<steady::time_point> when) {
  auto& at = *self;
  std::deque<executor::task> refused;  // destroyed when the lock is gone: captures may do anything
  std::vector<timer> refused_timers;
  const std::scoped_lock lock(at.mutex_);
  const bool full = when ? at.timers_.size() >= at.options_.timers : at.queue_.size() >= at.options_.queue;
  if (at.closed_ || full || !what) {
    ++at.totals_.rejected;
    return false;
  }
  try {
    if (when) {
      at.timers_.push_back({.when = *when, .order = ++at.order_, .what = std::move(what)});
      std::push_heap(at.timers_.begin(), at.timers_.end(), timer::later);
      // Only a new first timer changes what the keeper waits for.
      if (at.timers_.front().order != at.order_ && at.keeper_) return true;
    } else {
      at.queue_.push_back(std::move(what));
    }
  } catch (const std::bad_alloc&) {
    ++at.totals_.rejected;
    return false;
  }
  if (at.wake_or_start(self, when.has_value())) return true;
  // No thread at all: nothing but this task can be waiting.
  refused.swap(at.queue_);
  refused_timers.swap(at.timers_);
  ++at.totals_.rejected;
  return false;
}

/// What to run now; waits for it. Nothing when the pool is closed and empty.
std::optional<executor::task> pool_state::next(std::unique_lock<std::mutex>& lock) {
  for (;;) {
    if (!timers_.empty() && timers_.front().when <= steady::now()) {
      std::pop_heap(timers_.begin(), timers_.end(), timer::later);
      auto due = std::move(timers_.back().what);
      timers_.pop_back();
      return due;
    }
    if (!queue_.empty()) {
      auto first = std::move(queue_.front());
      queue_.pop_front();
      return first;
    }
    if (closed_) return std::nullopt;
    if (!timers_.empty() && !keeper_) {
      keeper_ = true;
      timer_.wait_until(lock, steady::time_point(timers_.front().when));
      keeper_ = false;
    } else {
      ++idle_;
      work_.wait(lock);
      --idle_;
      if (woken_ > 0) --woken_;
    }
  }
}

void pool_state::work(const std::shared_ptr<pool_state>& self, worker& me) noexcept {
  std::unique_lock lock(mutex_);
  me.id = std::this_thread::get_id();
  while (auto what = next(lock)) {
    ++running_;
    // Whoever waited for the timers is about to be busy.
    if (!timers_.empty() && !keeper_) wake_or_start(self, true);
    lock.unlock();
    run(*what);
    what.reset();
    lock.lock();
    --running_;
    ++totals_.ran;
    if (closed_) ended_.notify_all();
  }
  me.ended = true;
  ended_.notify_all();
}

/// The task's boundary: nothing leaves it.
void pool_state::run(const executor::task& what) noexcept {
  std::string problem;
  try {
    what();
    return;
  } catch (const std::exception& e) {
    try {
      problem = e.what();
    } catch (...) {  // NOLINT(bugprone-empty-catch)
      // No memory for the text: the count must do.
    }
  } catch (...) {
    problem = "an exception that is no std::exception";
  }
  {
    const std::scoped_lock lock(mutex_);
    ++totals_.threw;
  }
  log_.write_limited("task", log_level::error, "a background task threw; tasks must catch what they throw",
                     {{.name = "problem", .value = problem}});
}

bool pool_state::is_worker() const {
  const auto me = std::this_thread::get_id();
  return std::any_of(workers_.begin(), workers_.end(), [&](const worker& one) { return one.id == me; });
}

executor_close_report pool_state::close(steady::time_point deadline) {
  executor_close_report report;
  // Destroyed when the lock is gone: a task's captures may do anything, and an ended thread is waited for.
  std::vector<timer> timers;
  std::deque<executor::task> left;
  std::list<worker> ended;

  std::unique_lock lock(mutex_);
  const std::size_t self = is_worker() ? 1 : 0;
  const auto before = totals_.ran;
  closed_ = true;
  // next() serves the timers that are due before it looks at closed_; the others would only be waited for.
  const auto is_due = [now = steady::now()](const timer& one) { return one.when <= now; };
  for (auto& one : timers_) {
    if (!is_due(one)) timers.push_back(std::move(one));
  }
  std::erase_if(timers_, [&](const timer& one) { return !is_due(one); });
  std::make_heap(timers_.begin(), timers_.end(), timer::later);
  report.timers = timers.size();
  work_.notify_all();
  timer_.notify_all();

  const auto alive = [&] {
    return static_cast<std::size_t>(std::count_if(workers_.begin(), workers_.end(), [](const worker& one) { return !one.ended; }));
  };
  ended_.wait_until(lock, deadline, [&] { return queue_.empty() && timers_.empty() && alive() <= self; });

  left.swap(queue_);
  report.left += left.size() + timers_.size();
  std::move(timers_.begin(), timers_.end(), std::back_inserter(timers));
  timers_.clear();
  report.ran = totals_.ran - before;
  report.still_running = running_;
  for (auto one = workers_.begin(); one != workers_.end();) {
    const auto here = one++;
    if (here->ended) ended.splice(ended.end(), workers_, here);
    else if (here->thread.joinable()) here->thread.detach();  // it owns this state, and ends with its task
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
  explicit bounded_pool(thread_pool_options options) : state_(std::make_shared<pool_state>(std::move(options))) {}
  bounded_pool(const bounded_pool&) = delete;
  bounded_pool& operator=(const bounded_pool&) = delete;
  ~bounded_pool() override {
    const auto report = state_->close(state_->lingering());
    if (report.left == 0 && report.still_running == 0) return;
    state_->log().write(
        log_level::warning, "a thread pool ended before its work did; close() it first, with a longer deadline",
        {{.name = "left", .value = std::to_string(report.left)}, {.name = "still_running", .value = std::to_string(report.still_running)}});
  }

  bool post(task what) override { return pool_state::post(state_, std::move(what), std::nullopt); }
  bool post_after(steady::duration delay, task what) override {
    return pool_state::post(state_, std::move(what), moment_after(steady::now(), delay));
  }
  executor_close_report close(steady::time_point deadline) override { return state_->close(deadline); }
  [[nodiscard]] numbers count() const override { return state_->count(); }

 private:
  const std::shared_ptr<pool_state> state_;
};

}  // namespace

std::shared_ptr<thread_pool> make_thread_pool(thread_pool_options options) {
  if (options.threads == 0) throw error(errc::invalid_argument, "a thread pool needs at least 1 thread");
  if (options.queue == 0) throw error(errc::invalid_argument, "a thread pool needs room for at least 1 task");
  options.linger = std::min<std::chrono::milliseconds>(options.linger, longest_wait);
  return std::make_shared<bounded_pool>(std::move(options));
}

}  // namespace HOLDFAST_NAMESPACE
