#include "outbox/worker/lane_locks.hpp"

#include <holdfast/error.hpp>

#include <algorithm>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::outbox {

namespace {

using std::chrono::milliseconds;

/// For all lanes together, if the outbox fails.
constexpr std::chrono::seconds longest_release{1};

}  // namespace

lane_locks::lane_locks(worker_context& context)
    : context_(context), locks_(context.outbox.lanes()) {}

std::optional<milliseconds> lane_locks::acquire(std::size_t lane) {
  const auto& options = context_.options;
  if (options.compete) return {};
  {
    const std::scoped_lock lock(context_.mutex);
    if (locks_[lane].held) return {};
  }
  const auto requested_at = context_.now();
  const auto grant = context_.outbox.lock(lane, context_.owner, options.lock_time);
  if (!grant.held)
    return std::clamp(grant.remaining, shortest_wait, std::max(options.idle, shortest_wait));
  const std::scoped_lock lock(context_.mutex);
  locks_[lane] = {.held = true,
                  .renew_at = requested_at + options.lock_time / 3,
                  .expires_at = requested_at + options.lock_time};
  return {};
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
  const auto deadline = std::chrono::steady_clock::now() + longest_release;
  bool give_up = false;
  for (std::size_t lane = 0; lane < locks_.size(); ++lane) {
    {
      const std::scoped_lock lock(context_.mutex);
      if (!std::exchange(locks_[lane].held, false)) continue;
    }
    if (give_up) continue;
    try {
      context_.outbox.unlock(lane, context_.owner);
    } catch (const error&) {
      // The lock expires by itself. A server that does not answer is not asked for every lane.
      give_up = std::chrono::steady_clock::now() >= deadline;
    }
  }
}

std::size_t lane_locks::count() const {
  if (context_.options.compete) return locks_.size();
  const std::scoped_lock lock(context_.mutex);
  return static_cast<std::size_t>(std::ranges::count(locks_, true, &lane_lock::held));
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
