#include "failover/call_scheduler.hpp"

#include <algorithm>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::failover {

namespace {

using steady = std::chrono::steady_clock;
using namespace std::chrono_literals;

/// Threads for late jobs, as a multiple of those for attended jobs.
constexpr std::size_t late_factor = 3;

/// The most threads that a scheduler can need: for late jobs; for attended jobs, twice their
/// number; for surplus jobs; and beyond that one attended and one surplus job of each group.
std::size_t most_threads(const call_scheduler::settings& configured) {
  return (late_factor + 3) * configured.threads + 2 * configured.groups;
}
/// Pauses between jobs that find out whether a hung upstream answers again.
constexpr steady::duration first_probe_pause = 100ms;
constexpr steady::duration longest_probe_pause = 10s;

}  // namespace

class call_scheduler::group {
 public:
  explicit group(std::size_t threads) : limit((1 + late_factor) * threads) {}

  [[nodiscard]] std::size_t running() const noexcept { return attended + late; }
  /// Within its limit, or its turn to find out whether the upstream answers again.
  [[nodiscard]] bool within_limit(moment now) const noexcept {
    return running() < limit.value() || (attended == 0 && now >= next_probe);
  }

  void record_duration(steady::duration measured) noexcept {
    if (mean == steady::duration::zero()) mean = measured;
    deviation += (std::chrono::abs(measured - mean) - deviation) / 4;
    mean += (measured - mean) / 8;
  }
  /// Most jobs take less time.
  [[nodiscard]] steady::duration long_duration() const noexcept { return mean + 3 * deviation; }

  std::size_t attended = 0;
  std::size_t late = 0;  // without those of earlier periods
  job_list waiting{};
  adaptive_limit limit;
  bool hangs = false;            // the last job was late
  std::uint32_t period = 0;      // grows when late jobs are no longer counted
  steady::duration mean{};       // how long jobs take that are in time,
  steady::duration deviation{};  // and by how much they usually differ from that
  moment next_probe{};
  steady::duration probe_pause{};
};

class call_scheduler::job {
 public:
  enum class phase : std::uint8_t { waiting, attended, late, ended };

  job(std::shared_ptr<group> job_group, executor::task job_work, executor::task on_refused,
      moment job_deadline)
      : owner(std::move(job_group)),
        work(std::move(job_work)),
        refused(std::move(on_refused)),
        deadline(job_deadline) {}

  /// Runs `refused`, and drops what the tasks own: it may own the job.
  void refuse() {
    work = {};
    std::exchange(refused, {})();
  }

  const std::shared_ptr<group> owner;
  executor::task work;
  executor::task refused;
  const moment deadline;
  moment posted = steady::now();
  moment started{};
  phase state = phase::waiting;
  bool has_caller = true;
  bool is_probe = false;     // admitted beyond the limit
  std::uint32_t period = 0;  // of the group, when the caller left
  job_list::iterator position{};
};

call_scheduler::call_scheduler(settings configured)
    : settings_(std::move(configured)),
      pool_(make_thread_pool({.threads = most_threads(settings_),
                              .queue = most_threads(settings_) + settings_.queue,
                              .timers = settings_.queue,
                              .name = settings_.name,
                              .linger = {},
                              .log = settings_.log})) {}

call_scheduler::~call_scheduler() = default;

std::shared_ptr<call_scheduler::group> call_scheduler::add_group() {
  auto added = std::make_shared<group>(settings_.threads);
  const std::scoped_lock lock(mutex_);
  groups_.push_back(added);
  return added;
}

std::size_t call_scheduler::surplus() const noexcept {
  return late_ - std::min(late_, late_factor * settings_.threads);
}

bool call_scheduler::may_start(const group& candidate, moment now) const {
  if (!candidate.within_limit(now)) return false;
  if (candidate.attended == 0)
    return !candidate.hangs || candidate.late == 0 || surplus() < settings_.threads;
  const auto used = attended_ + surplus();
  const auto assured = settings_.threads / 8;
  if (!candidate.hangs && candidate.attended < assured && used < 2 * settings_.threads) return true;
  if (used >= settings_.threads) return false;
  return groups_.size() == 1 || candidate.attended < settings_.threads - used;
}

bool call_scheduler::may_wait(const group& candidate, moment now, moment deadline) const {
  // No job is about to end and make room.
  if (candidate.attended == 0) return false;
  if (waiting_ >= settings_.queue) return false;
  if (groups_.size() > 1 && candidate.waiting.size() >= settings_.queue - waiting_) return false;
  const auto rounds =
      static_cast<double>(candidate.waiting.size() + 1) / static_cast<double>(candidate.attended);
  const auto wait = std::chrono::duration_cast<steady::duration>(
      rounds * std::chrono::duration<double, steady::period>(candidate.mean));
  return wait + candidate.long_duration() < deadline - now;
}

void call_scheduler::begin(job& started, moment now) {
  auto& owner = *started.owner;
  if (owner.running() >= owner.limit.value()) {
    started.is_probe = true;
    owner.probe_pause = std::clamp(2 * owner.probe_pause, first_probe_pause, longest_probe_pause);
    owner.next_probe = now + owner.probe_pause;
  }
  started.state = job::phase::attended;
  started.started = now;
  ++owner.attended;
  ++attended_;
}

void call_scheduler::end(job& ended, moment now) {
  auto& owner = *ended.owner;
  if (ended.state == job::phase::late) {
    --late_;
    if (ended.period == owner.period) --owner.late;
  } else {
    if (ended.has_caller) {
      const auto duration = now - ended.started;
      owner.limit.record_in_time(owner.running(), duration, ended.deadline - ended.posted);
      owner.record_duration(duration);
      owner.hangs = false;
      if (ended.is_probe) {  // the upstream answers again: the late jobs will not end soon
        ++owner.period;
        owner.late = 0;
        owner.probe_pause = {};
        owner.next_probe = {};
      }
    }
    --owner.attended;
    --attended_;
  }
  ended.state = job::phase::ended;
}

void call_scheduler::take_ready(moment now, job_list& ready, job_list& refused) {
  for (auto passed = turns_.size(); passed != 0 && !turns_.empty(); --passed) {
    auto* const owner = turns_.front();
    auto& waiting = owner->waiting;
    // A job starts even if it seems too late for it when no other job is running: otherwise a
    // duration that was long once would never be measured again.
    while (!waiting.empty() && owner->attended != 0 &&
           waiting.front()->deadline - now < owner->long_duration()) {
      waiting.front()->state = job::phase::ended;
      refused.splice(refused.end(), waiting, waiting.begin());
      --waiting_;
    }
    // Only late jobs are running, and they may never end.
    if (owner->attended == 0 && !may_start(*owner, now)) {
      for (const auto& each : waiting) each->state = job::phase::ended;
      waiting_ -= waiting.size();
      refused.splice(refused.end(), waiting);
    }
    if (!waiting.empty() && may_start(*owner, now)) {
      begin(*waiting.front(), now);
      ready.splice(ready.end(), waiting, waiting.begin());
      --waiting_;
      passed = turns_.size() + 1;  // others may be able to start as well
    }
    if (waiting.empty()) turns_.pop_front();
    else turns_.splice(turns_.end(), turns_, turns_.begin());
  }
}

std::shared_ptr<call_scheduler::job> call_scheduler::post(const std::shared_ptr<group>& owner,
                                                          executor::task work, moment deadline,
                                                          executor::task refused) {
  auto posted = std::make_shared<job>(owner, std::move(work), std::move(refused), deadline);
  {
    const std::scoped_lock lock(mutex_);
    const auto now = posted->posted;
    if (closed_) return nullptr;
    if (!owner->waiting.empty() || !may_start(*owner, now)) {
      if (!may_wait(*owner, now, deadline)) return nullptr;
      posted->position = owner->waiting.insert(owner->waiting.end(), posted);
      if (owner->waiting.size() == 1) turns_.push_back(owner.get());
      ++waiting_;
      return posted;
    }
    begin(*posted, now);
  }
  return launch(posted) ? posted : nullptr;
}

bool call_scheduler::launch(const std::shared_ptr<job>& started) {
  if (pool_->post([self = shared_from_this(), started] { self->run(started); })) return true;
  // No thread can be started, or the scheduler was closed.
  const std::scoped_lock lock(mutex_);
  started->has_caller = false;  // says nothing about the upstream
  end(*started, steady::now());
  return false;
}

void call_scheduler::continue_with(const job_list& ready, const job_list& refused) {
  for (const auto& started : ready) {
    if (!launch(started)) started->refuse();
  }
  for (const auto& each : refused) each->refuse();
}

void call_scheduler::run(std::shared_ptr<job> current) {
  while (current) {
    job_list ready;
    job_list refused;
    const auto end_current = [&] {
      const std::scoped_lock lock(mutex_);
      const auto now = steady::now();
      end(*current, now);
      take_ready(now, ready, refused);
    };
    current->refused = {};
    try {
      std::exchange(current->work, {})();
    } catch (...) {  // thread cancellation; jobs do not throw
      end_current();
      continue_with(ready, refused);
      throw;
    }
    end_current();
    current.reset();
    if (!ready.empty()) {
      current = std::move(ready.front());
      ready.pop_front();
    }
    continue_with(ready, refused);
  }
}

bool call_scheduler::leave(job& abandoned) {
  job_list ready;
  job_list refused;
  executor::task unstarted_work;  // destroyed after the lock is released
  executor::task unstarted_refused;
  {
    const std::scoped_lock lock(mutex_);
    abandoned.has_caller = false;
    auto& owner = *abandoned.owner;
    if (abandoned.state == job::phase::waiting) {
      owner.waiting.erase(abandoned.position);  // the caller owns the job too
      unstarted_work = std::exchange(abandoned.work, {});
      unstarted_refused = std::exchange(abandoned.refused, {});
      --waiting_;
      if (owner.waiting.empty()) turns_.remove(&owner);
      abandoned.state = job::phase::ended;
      return true;
    }
    if (abandoned.state != job::phase::attended) return false;
    const auto now = steady::now();
    owner.limit.record_late(owner.running(), now, now - abandoned.posted);
    owner.hangs = true;
    abandoned.state = job::phase::late;
    abandoned.period = owner.period;
    ++owner.late;
    ++late_;
    --owner.attended;
    --attended_;
    if (owner.attended == 0)
      owner.next_probe = now + std::max(owner.probe_pause, first_probe_pause);
    take_ready(now, ready, refused);
  }
  continue_with(ready, refused);
  return false;
}

bool call_scheduler::post_after(std::chrono::steady_clock::duration delay, executor::task task) {
  return pool_->post_after(delay, std::move(task));
}

void call_scheduler::close(moment deadline) {
  job_list refused;
  {
    const std::scoped_lock lock(mutex_);
    closed_ = true;
    for (auto* const owner : turns_) {
      for (const auto& each : owner->waiting) each->state = job::phase::ended;
      refused.splice(refused.end(), owner->waiting);
    }
    turns_.clear();
    waiting_ = 0;
  }
  continue_with({}, refused);
  (void)pool_->close(deadline);
}

call_scheduler::counts call_scheduler::count() const {
  const std::scoped_lock lock(mutex_);
  return {.attended = attended_, .late = late_, .waiting = waiting_};
}

}  // namespace HOLDFAST_NAMESPACE::detail::failover
