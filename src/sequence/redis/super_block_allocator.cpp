#include "sequence/redis/super_block_allocator.hpp"

#include "sequence/redis/scripts.hpp"

#include <algorithm>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::sequence {

std::vector<block_grant> super_block_allocator::allocate(std::span<const block_request> requests) {
  // Other processes may use up a new super-block before this one gets a part of it, but not always.
  constexpr int max_attempts = 16;
  std::vector<block_grant> grants(requests.size());
  std::vector<pending_request> pending;
  pending.reserve(requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i)
    pending.push_back({.request = &requests[i], .grant = &grants[i]});
  std::unique_lock leasing(leasing_, std::defer_lock);
  for (int attempt = 0; attempt < max_attempts && !pending.empty(); ++attempt) {
    pending = try_redis(std::move(pending));
    if (pending.empty()) return grants;
    // Another thread may bring a super-block while this one waits for the lock, so Redis is asked
    // again before this thread leases one.
    if (leasing.owns_lock()) pending = lease_super_blocks(std::move(pending));
    else leasing.lock();
  }
  for (const auto& request : pending)
    request.grant->problem = error(
        errc::unavailable,
        "no super-block could be brought to Redis: other processes were always faster; try again",
        {.transient = true});
  return grants;
}

/// Returns the requests for which Redis has too little.
std::vector<super_block_allocator::pending_request> super_block_allocator::try_redis(
    std::vector<pending_request> pending) {
  std::vector<holdfast::redis::command> commands;
  commands.reserve(pending.size());
  for (const auto& each : pending) commands.push_back(allocate_command(each));
  const auto replies = counters_.client().pipeline(commands);
  std::vector<pending_request> unserved;
  for (std::size_t i = 0; i < pending.size(); ++i) {
    const auto& reply = replies[i];
    if (!reply.is_error() && reply.elements().at(0).text() == "refill") {
      unserved.push_back(pending[i]);
      continue;
    }
    auto& grant = *pending[i].grant;
    grant = grant_or_problem([&] { return block_grant_of(reply); });
    if (!grant.problem)
      remember_granted(pending[i].request->name,
                       {.last = grant.block.last(), .epoch = grant.epoch});
  }
  return unserved;
}

holdfast::redis::command super_block_allocator::allocate_command(
    const pending_request& pending) const {
  const auto granted = last_granted(pending.request->name);
  auto command =
      counters_.command(redis::scripts().allocate_from_super_block, pending.request->name)
          .arg(pending.request->count)
          .arg(pending.request->limit)
          .arg(granted.last)
          .arg(granted.epoch);
  if (!pending.new_block) return std::move(command).arg("").arg("").arg("").idempotent();
  // Not idempotent: a super-block is brought once. If the reply is lost, a replica may be promoted
  // that does not know the block, and would grant the same ids.
  const auto& block = *pending.new_block;
  return std::move(command).arg(block.first).arg(block.last).arg(block.epoch);
}

/// Leases a super-block for each request. Returns the requests that got one; the others have failed
/// or are at the end of their sequence.
std::vector<super_block_allocator::pending_request> super_block_allocator::lease_super_blocks(
    std::vector<pending_request> pending) const {
  std::vector<block_request> requests;
  requests.reserve(pending.size());
  for (const auto& each : pending) {
    requests.push_back(*each.request);
    requests.back().count = std::max(fence_.size, each.request->count);
  }
  std::vector<block_grant> leased;
  try {
    leased = fence_.source->allocate(requests);
  } catch (const error& problem) {
    for (const auto& each : pending) each.grant->problem = problem;
    return {};
  }
  std::vector<pending_request> served;
  for (std::size_t i = 0; i < pending.size(); ++i) {
    auto& grant = *pending[i].grant;
    const auto& block = leased.at(i).block;
    grant = grant_or_problem([&] {
      if (leased[i].problem) throw error(*leased[i].problem);
      if (leased[i].epoch != 0) return block_grant{.epoch = leased[i].epoch};
      const auto counter = fence_.source->peek(requests[i].name).value_or(counter_state{});
      return block_grant{.epoch = counter.epoch};
    });
    if (grant.problem || !block.has_next()) continue;
    pending[i].new_block =
        super_block{.first = block.first(), .last = block.last(), .epoch = grant.epoch};
    served.push_back(pending[i]);
  }
  return served;
}

counter_state super_block_allocator::last_granted(std::string_view name) const {
  const std::scoped_lock lock(granted_mutex_);
  const auto it = granted_.find(name);
  return it == granted_.end() ? counter_state{.last = 0, .epoch = 0} : it->second;
}

void super_block_allocator::remember_granted(std::string_view name, counter_state granted) {
  const std::scoped_lock lock(granted_mutex_);
  auto it = granted_.find(name);
  if (it == granted_.end())
    it = granted_.emplace(std::string(name), counter_state{.last = 0, .epoch = 0}).first;
  auto& latest = it->second;
  if (granted.epoch > latest.epoch || (granted.epoch == latest.epoch && granted.last > latest.last))
    latest = granted;
}

void super_block_allocator::forget_granted(std::string_view name) {
  const std::scoped_lock lock(granted_mutex_);
  if (const auto it = granted_.find(name); it != granted_.end()) granted_.erase(it);
}

}  // namespace HOLDFAST_NAMESPACE::detail::sequence
