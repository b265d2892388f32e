// Parked events, tickets, the pause and the lock of an outbox in memory.

#include <holdfast/error.hpp>

#include "outbox/entry.hpp"
#include "outbox/memory/backend.hpp"

#include <algorithm>

namespace HOLDFAST_NAMESPACE::detail::outbox {

template <class Unparked>
std::vector<bool> memory_backend::unpark(std::size_t lane_number, std::span<const std::string> ids,
                                         Unparked unparked) {
  const std::scoped_lock guard(mutex_);
  auto& lane = lane_at(lane_number);
  const auto now = now_ms();
  const auto first_before = lane.pending.first_score();
  std::vector<bool> result;
  for (const auto& id : ids) {
    const bool was_parked = lane.parked.erase(id);
    result.push_back(was_parked);
    if (was_parked) unparked(lane, id, now);
  }
  wake_if_earlier(lane, first_before);
  return result;
}

std::vector<bool> memory_backend::replay(std::size_t lane_number,
                                         std::span<const std::string> ids) {
  return unpark(lane_number, ids, [](memory_lane& lane, const std::string& id, std::int64_t now) {
    auto& claim = lane.claims[id];
    claim = {.replays = claim.replays + 1, .key = claim.key};
    lane.errors.erase(id);
    const auto head = claim.key.empty() ? lane.heads.end() : lane.heads.find(claim.key);
    if (head != lane.heads.end() && head->second != id) {
      lane.followers[claim.key].emplace(++lane.sequence,
                                        memory_lane::follower{.due = now, .id = id});
    } else {
      if (!claim.key.empty()) lane.heads[claim.key] = id;
      lane.pending.put(id, now);
    }
  });
}

std::vector<bool> memory_backend::discard(std::size_t lane_number,
                                          std::span<const std::string> ids) {
  return unpark(lane_number, ids, [](memory_lane& lane, const std::string& id, std::int64_t now) {
    lane.remove_and_promote(id, now);
  });
}

void memory_backend::pause(std::size_t lane_number, bool paused) {
  const std::scoped_lock guard(mutex_);
  auto& lane = lane_at(lane_number);
  lane.paused = paused;
  if (!paused) request_wake(lane);
}

scheduled memory_backend::schedule(std::size_t lane_number, std::string_view ticket,
                                   std::optional<timestamp> expires_at,
                                   std::chrono::milliseconds delay, const event& becomes,
                                   const publish_terms& terms) {
  require(terms.durability);
  const std::scoped_lock guard(mutex_);
  auto& lane = lane_at(lane_number);
  const auto now = now_ms();
  const auto due =
      expires_at
          ? std::chrono::floor<std::chrono::milliseconds>(*expires_at).time_since_epoch().count()
          : now + delay.count();
  const std::string name(ticket);
  const auto due_before = lane.expiry_due.score(name);
  if (!due_before) {
    if (const auto problem = lane.over_quota(1, entry_body(becomes).size(), terms.quota, now))
      throw error(*problem);
  }
  lane.expiry_due.put(name, due);
  lane.tickets[name] = becomes;
  if (lane.expiry_due.first_score() == due) request_wake(lane);
  scheduled result{.expires_at = timestamp_at(due)};
  if (due_before) result.before = timestamp_at(*due_before);
  return result;
}

cancel_status memory_backend::cancel(std::size_t lane_number, std::string_view ticket) {
  const std::scoped_lock guard(mutex_);
  auto& lane = lane_at(lane_number);
  if (lane.expiry_due.erase(ticket)) {
    lane.tickets.erase(std::string(ticket));
    return cancel_status::cancelled;
  }
  return lane.done.score("t:" + std::string(ticket)) ? cancel_status::fired
                                                     : cancel_status::unknown;
}

drained memory_backend::drain(std::size_t lane_number, std::size_t most,
                              const publish_terms& terms) {
  const std::scoped_lock guard(mutex_);
  auto& lane = lane_at(lane_number);
  const auto now = now_ms();
  const auto first_before = lane.pending.first_score();
  drained result;
  while (result.tickets < most && lane.expiry_due.size() > 0) {
    const auto [due, ticket] = *lane.expiry_due.members().begin();
    if (due > now) break;
    event event = lane.tickets[ticket];
    event.id = expiry_event_id(ticket, timestamp_at(due));
    lane.expiry_due.erase(ticket);
    lane.tickets.erase(ticket);
    lane.add(event, now, terms, now);
    if (terms.dedup_window.count() > 0) lane.done.put("t:" + ticket, now);
    ++lane.counters.fired;
    ++result.tickets;
  }
  if (result.tickets > 0) lane.trim_done(terms, now);
  if (const auto first = lane.expiry_due.first_score())
    result.next = std::chrono::milliseconds(std::max<std::int64_t>(*first - now, 0));
  wake_if_earlier(lane, first_before);
  return result;
}

lock_grant memory_backend::update_lock(std::size_t lane_number, std::string_view owner,
                                       std::chrono::milliseconds ttl, bool takes_free_lock) {
  const std::scoped_lock guard(mutex_);
  auto& lane = lane_at(lane_number);
  const auto now = now_ms();
  if (!lane.lock || lane.lock->until <= now) {
    if (!takes_free_lock) return {};
    lane.last_fence =
        std::max<fence>(lane.last_fence + 1, clock_->now().time_since_epoch().count());
    lane.lock =
        memory_lane::lock_state{.owner = std::string(owner), .fence = lane.last_fence, .until = 0};
  } else if (lane.lock->owner != owner) {
    return {.fence = lane.lock->fence,
            .holder = lane.lock->owner,
            .remaining = std::chrono::milliseconds(lane.lock->until - now)};
  }
  lane.lock->until = now + ttl.count();
  return {.held = true, .fence = lane.lock->fence, .holder = lane.lock->owner, .remaining = ttl};
}

lock_grant memory_backend::lock(std::size_t lane, std::string_view owner,
                                std::chrono::milliseconds ttl) {
  return update_lock(lane, owner, ttl, true);
}

lock_grant memory_backend::renew(std::size_t lane, std::string_view owner,
                                 std::chrono::milliseconds ttl) {
  return update_lock(lane, owner, ttl, false);
}

bool memory_backend::unlock(std::size_t lane_number, std::string_view owner) {
  const std::scoped_lock guard(mutex_);
  auto& lane = lane_at(lane_number);
  if (!lane.holds_lock(owner, now_ms())) return false;
  lane.lock.reset();
  return true;
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
