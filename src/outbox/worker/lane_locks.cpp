#include "outbox/worker/lane_locks.hpp"

#include <holdfast/error.hpp>

#include <algorithm>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::outbox {

namespace {

using std::chrono::milliseconds;

/// For all lanes together, if the outbox fails.
constexpr std::chrono::seconds longest_release{1};
/// The longest time until a worker sees that a lane is free.
constexpr milliseconds longest_wait{1000};
constexpr milliseconds longest_balance_interval{2000};
/// A change of the number of lanes is reported if it lasts for so long.
constexpr milliseconds report_delay{1000};

}  // namespace

lane_locks::lane_locks(worker_context& context)
    : context_(context), locks_(context.outbox.lanes()), share_(locks_.size()) {}

std::optional<milliseconds> lane_locks::acquire(std::size_t lane) {
  const auto& options = context_.options;
  if (options.compete) return {};
  bool has_share = false;
  {
    const std::scoped_lock lock(context_.mutex);
    if (locks_[lane].held) return {};
    has_share = held_count() >= share_;
  }
  if (has_share && !stays_free(lane)) return wait_time({.remaining = longest_wait});
  const auto requested_at = context_.now();
  auto grant = context_.outbox.lock(lane, context_.owner, options.lock_time);
  const std::scoped_lock lock(context_.mutex);
  if (!grant.held) {
    last_holder_ = std::move(grant.holder);
    return wait_time(grant);
  }
  locks_[lane] = {.held = true,
                  .renew_at = requested_at + options.lock_time / 3,
                  .expires_at = requested_at + options.lock_time,
                  .adopted = has_share};
  return {};
}

std::optional<milliseconds> lane_locks::wait_time(const lock_grant& grant) const {
  const auto longest = std::clamp(context_.options.idle, shortest_wait, longest_wait);
  return std::clamp(grant.remaining, shortest_wait, longest);
}

/// Returns whether a lane above the share of this worker was free at two checks.
bool lane_locks::stays_free(std::size_t lane) {
  const auto now = context_.now();
  {
    const std::scoped_lock lock(context_.mutex);
    if (now < locks_[lane].next_check) return false;
    locks_[lane].next_check = now + context_.options.lock_time;
  }
  // Does not take the lock: this worker does not hold it.
  auto grant = context_.outbox.renew(lane, context_.owner, context_.options.lock_time);
  const bool is_free = grant.holder.empty() || grant.remaining.count() <= 0;
  const std::scoped_lock lock(context_.mutex);
  if (!is_free) last_holder_ = std::move(grant.holder);
  return std::exchange(locks_[lane].was_free, is_free) && is_free;
}

void lane_locks::balance(steady_time now) {
  const auto lock_time = context_.options.lock_time;
  if (context_.options.compete || locks_.size() < 2) return;
  {
    const std::scoped_lock lock(context_.mutex);
    if (now < next_balance_) return;
    next_balance_ = now + std::min<milliseconds>(lock_time / 5, longest_balance_interval);
  }
  try {
    const auto workers = context_.outbox.backend()->announce(context_.owner, lock_time);
    unlock(take_surplus(workers));
  } catch (const error& problem) {
    context_.metrics.errors.add();
    context_.log.write_limited("outbox.balance", log_level::warning,
                               "the lanes cannot be shared with other workers; trying again",
                               {{"why", problem.what()}});
  }
}

/// Returns the lanes above the share of this worker, which it does not hold any more.
std::vector<std::size_t> lane_locks::take_surplus(const std::vector<std::string>& workers) {
  std::vector<std::size_t> surplus;
  const auto position = std::ranges::find(workers, context_.owner);
  if (position == workers.end()) return surplus;
  const auto rank = static_cast<std::size_t>(position - workers.begin());
  const std::size_t lanes = locks_.size();
  const std::scoped_lock lock(context_.mutex);
  announced_ = true;
  share_ = lanes / workers.size() + (rank < lanes % workers.size() ? 1 : 0);
  if (workers != workers_) {
    workers_ = workers;
    for (auto& lane : locks_) lane.adopted = lane.was_free = false;
  }
  const auto counted = static_cast<std::size_t>(std::ranges::count_if(
      locks_, [](const lane_lock& lane) { return lane.held && !lane.adopted; }));
  for (std::size_t lane = lanes; lane-- > 0 && counted - surplus.size() > share_;) {
    if (!locks_[lane].held || locks_[lane].adopted) continue;
    locks_[lane] = {.next_check = context_.now() + context_.options.lock_time};
    surplus.push_back(lane);
  }
  return surplus;
}

void lane_locks::report(steady_time now) {
  if (context_.options.compete || !context_.log.listened()) return;
  std::size_t count = 0;
  std::size_t workers = 0;
  std::string holder;
  {
    const std::scoped_lock lock(context_.mutex);
    count = held_count();
    if (reported_count_ == count) {
      changed_at_.reset();
      return;
    }
    if (!changed_at_) changed_at_ = now;
    if (now - *changed_at_ < report_delay) return;
    changed_at_.reset();
    reported_count_ = count;
    workers = workers_.size();
    holder = last_holder_;
  }
  const std::string lanes = std::to_string(count) + " of " + std::to_string(locks_.size());
  if (count > 0) {
    context_.log.write(
        log_level::info, "the worker delivers from its share of the lanes",
        {{"lanes", lanes}, {"workers", std::to_string(std::max<std::size_t>(workers, 1))}});
  } else {
    context_.log.write(log_level::info,
                       "other workers hold all lanes; this worker waits until one is free (or let "
                       "workers compete)",
                       {{"lanes", lanes}, {"holder", holder}});
  }
}

std::size_t lane_locks::held_count() const {
  return static_cast<std::size_t>(std::ranges::count(locks_, true, &lane_lock::held));
}

void lane_locks::lose(std::size_t lane, std::string_view reason) {
  {
    const std::scoped_lock lock(context_.mutex);
    if (!std::exchange(locks_[lane].held, false)) return;
  }
  context_.metrics.fenced.add();
  context_.log.write_limited(
      "outbox.lock", log_level::warning,
      "the lock of a lane of the outbox was lost; it is acquired again when it is free",
      {{"lane", std::to_string(lane)}, {"why", reason}});
}

void lane_locks::renew(steady_time now) {
  const auto lock_time = context_.options.lock_time;
  for (std::size_t lane = 0; lane < locks_.size(); ++lane) {
    {
      const std::scoped_lock lock(context_.mutex);
      if (!locks_[lane].held || now < locks_[lane].renew_at) continue;
    }
    try {
      if (!context_.outbox.renew(lane, context_.owner, lock_time).held) {
        lose(lane, "it was not renewed in time");
        continue;
      }
      const std::scoped_lock lock(context_.mutex);
      locks_[lane].expires_at = now + lock_time;
      locks_[lane].renew_at = now + lock_time / 3;
    } catch (const error& problem) {
      context_.metrics.errors.add();
      context_.set_problem(problem);
      bool expired = false;
      {
        const std::scoped_lock lock(context_.mutex);
        expired = context_.now() >= locks_[lane].expires_at;
        locks_[lane].renew_at = now + lock_time / 10;
      }
      if (expired) lose(lane, problem.what());
    }
  }
}

void lane_locks::release_all() {
  std::vector<std::size_t> lanes;
  bool announced = false;
  {
    const std::scoped_lock lock(context_.mutex);
    for (std::size_t lane = 0; lane < locks_.size(); ++lane) {
      if (std::exchange(locks_[lane].held, false)) lanes.push_back(lane);
    }
    announced = std::exchange(announced_, false);
    share_ = locks_.size();
    next_balance_ = steady_time::min();
    reported_count_.reset();
  }
  // First, so that the other workers know their shares when the lanes become free.
  if (announced) {
    try {
      (void)context_.outbox.backend()->announce(context_.owner, milliseconds(0));
    } catch (const error&) {  // NOLINT(bugprone-empty-catch)
      // Its time ends by itself.
    }
  }
  unlock(lanes);
}

void lane_locks::unlock(const std::vector<std::size_t>& lanes) {
  const auto deadline = std::chrono::steady_clock::now() + longest_release;
  for (const auto lane : lanes) {
    try {
      context_.outbox.unlock(lane, context_.owner);
    } catch (const error&) {
      // The lock expires by itself. A server that does not answer is not asked for every lane.
      if (std::chrono::steady_clock::now() >= deadline) return;
    }
  }
}

bool lane_locks::may_claim(std::size_t lane) const {
  if (context_.options.compete) return true;
  const std::scoped_lock lock(context_.mutex);
  return locks_[lane].held;
}

std::size_t lane_locks::count() const {
  if (context_.options.compete) return locks_.size();
  const std::scoped_lock lock(context_.mutex);
  return held_count();
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
