#include "sequence/redis/super_block_allocator.hpp"

#include "sequence/redis/scripts.hpp"

#include <algorithm>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::sequence {

std::vector<block_grant> super_block_allocator::allocate(std::span<const block_request> requests) {
  std::vector<block_grant> grants(requests.size());
  std::vector<pending_request> pending;
  pending.reserve(requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i)
    pending.push_back({.request = &requests[i], .grant = &grants[i]});
  for (auto& unserved : try_redis(std::move(pending))) {
    if (requests.size() > 1 && unserved.request->accepts_busy) unserved.grant->busy = true;
    else allocate_with_super_block(unserved);
  }
  return grants;
}

/// Brings super-blocks to Redis until the request is served or fails.
void super_block_allocator::allocate_with_super_block(const pending_request& unserved) {
  const leasing_lock lock(*this, unserved.request->name);
  std::vector<pending_request> pending{unserved};
  // Other processes may use up a new super-block before this one gets a part of it, but not always.
  constexpr int max_attempts = 16;
  for (int attempt = 0; attempt < max_attempts; ++attempt) {
    // Another thread may have brought a super-block while this one waited for the lock, so Redis is
    // asked again before this thread leases one.
    pending = try_redis(std::move(pending));
    if (pending.empty()) return;
    if (attempt + 1 == max_attempts) break;
    lease_super_block(pending.front());
    if (unserved.grant->problem || !pending.front().new_block) return;
  }
  unserved.grant->problem =
      error(errc::unavailable,
            "no super-block could be brought to Redis: other processes were always faster; try "
            "again",
            {.transient = true});
}

super_block_allocator::leasing_lock::leasing_lock(super_block_allocator& owner,
                                                  std::string_view name)
    : owner_(owner), name_(name) {
  std::unique_lock lock(owner_.leasing_mutex_);
  owner_.leasing_ended_.wait(lock, [this] { return !owner_.leasing_.contains(name_); });
  owner_.leasing_.insert(name_);
}

super_block_allocator::leasing_lock::~leasing_lock() {
  {
    const std::scoped_lock lock(owner_.leasing_mutex_);
    owner_.leasing_.erase(name_);
  }
  owner_.leasing_ended_.notify_all();
}

std::string super_block_allocator::definition_of(const block_request& request) const {
  return request.definition.empty() ? std::string()
                                    : std::string(request.definition) + " " + fence_definition_;
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
      unserved.back().on_redis = counter_state_of(
          holdfast::redis::reply({reply.elements().at(1), reply.elements().at(2)}));
      continue;
    }
    auto& grant = *pending[i].grant;
    const auto& request = *pending[i].request;
    grant = grant_or_problem(
        [&] { return block_grant_of(reply, request.name, definition_of(request)); });
    if (!grant.problem)
      remember_granted(request.name, {.last = grant.block.last(), .epoch = grant.epoch});
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
  const auto definition = definition_of(*pending.request);
  if (!pending.new_block)
    return std::move(command).arg("").arg("").arg("").arg(definition).idempotent();
  // Not idempotent: a super-block is brought once. If the reply is lost, a replica may be promoted
  // that does not know the block, and would grant the same ids.
  const auto& block = *pending.new_block;
  return std::move(command).arg(block.first).arg(block.last).arg(block.epoch).arg(definition);
}

/// Leases a super-block. Without one afterwards, the request has failed or its sequence is at its
/// end.
void super_block_allocator::lease_super_block(pending_request& pending) const {
  auto& grant = *pending.grant;
  const auto dropped = std::exchange(pending.new_block, std::nullopt);
  auto request = *pending.request;
  request.count = std::max(fence_.size, request.count);
  grant = grant_or_problem([&] {
    // Redis has dropped the last super-block: its counter is beyond it, because another fence was
    // used before. All blocks below the counter would be dropped. Raising the source costs a gap.
    if (dropped && pending.on_redis.epoch > dropped->epoch)
      throw error(errc::invalid_argument,
                  "the counter '" + std::string(request.name) +
                      "' was reset on Redis under another fence; raise its source above every id "
                      "in use, and delete its key");
    if (dropped && pending.on_redis.last >= dropped->first)
      (void)fence_.source->ensure_at_least(request.name, pending.on_redis.last);
    auto leased = std::move(fence_.source->allocate({&request, 1}).at(0));
    if (leased.problem) throw error(*leased.problem);
    if (leased.epoch == 0)
      leased.epoch = fence_.source->peek(request.name).value_or(counter_state{}).epoch;
    if (leased.block.has_next())
      pending.new_block = super_block{
          .first = leased.block.first(), .last = leased.block.last(), .epoch = leased.epoch};
    return block_grant{.epoch = leased.epoch};
  });
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
