#include <holdfast/error.hpp>

#include "outbox/checks.hpp"
#include "outbox/model.hpp"

#include <algorithm>

namespace HOLDFAST_NAMESPACE::outboxes {

claimed_event model::describe(const lane_state& in, std::size_t lane, const kept& what, const progress* how) const {
  claimed_event result{.event = what.what,
                       .lane = lane,
                       .deliveries = how != nullptr ? how->deliveries : 0,
                       .attempts = how != nullptr ? how->attempts : 0,
                       .replays = how != nullptr ? how->replays : 0,
                       .created_at = timestamp(std::chrono::milliseconds(what.created)),
                       .sequence = what.sequence};
  result.event.delay = {};
  if (const auto error = in.errors.find(what.what.id); error != in.errors.end()) result.last_error = error->second;
  return result;
}

void model::forget(lane_state& in, const std::string& id) {
  if (const auto entry = in.entries.find(id); entry != in.entries.end()) {
    in.bytes -= entry->second.bytes;
    in.entries.erase(entry);
  }
  in.pending.erase(id);
  in.claims.erase(id);
  in.errors.erase(id);
}

void model::advance(lane_state& in, const std::string& key, std::size_t left, fence token, std::int64_t deadline) {
  const auto behind = in.followers.find(key);
  if (behind == in.followers.end()) {
    in.heads.erase(key);
    return;
  }
  const follower next = behind->second.begin()->second;
  behind->second.erase(behind->second.begin());
  if (behind->second.empty()) in.followers.erase(behind);
  in.heads[key] = next.id;
  auto& how = in.claims[next.id];
  how.key = key;
  how.token = left > 0 ? token : 0;
  how.run = left;
  if (left > 0) ++how.deliveries;
  in.pending.put(next.id, left > 0 ? deadline : next.due);
}

void model::trim(lane_state& in, const publish_terms& terms, std::int64_t now) const {
  const auto cutoff = now - terms.dedup_window.count();
  std::size_t surplus = in.done.size() > terms.dedup_limit ? in.done.size() - terms.dedup_limit : 0;
  std::size_t expired = 0;
  for (const auto& [when, member] : in.done.in_order()) {
    if (when > cutoff || expired == most_in_a_call) break;
    ++expired;
  }
  for (auto n = std::min(most_in_a_call, std::max(expired, surplus)); n > 0; --n) {
    in.done.erase(std::string(in.done.in_order().begin()->second));
  }
}

bool model::take(lane_state& in, std::size_t lane, const std::string& id, fence token, std::int64_t now, std::chrono::milliseconds lease,
                 std::size_t run, room& left, claimed& into) {
  const auto entry = in.entries.find(id);
  if (entry == in.entries.end()) {
    ++in.counts.orphans;
    const std::string key = in.claims.contains(id) ? in.claims[id].key : std::string();
    forget(in, id);
    if (!key.empty() && in.heads[key] == id) advance(in, key, 0, 0, 0);
    return false;
  }
  const auto use = [&](const kept& what) {
    left.bytes -= std::min<std::size_t>(left.bytes, what.bytes);
    --left.events;
    ++in.counts.claims;
  };
  auto& how = in.claims[id];
  const bool first_time = how.deliveries == 0;
  ++how.deliveries;
  how.token = token;
  how.run = 1;
  in.pending.put(id, now + lease.count());
  into.events.push_back(describe(in, lane, entry->second, &how));
  use(entry->second);
  if (how.key.empty() || !first_time) return true;
  const auto behind = in.followers.find(how.key);
  if (behind == in.followers.end()) return true;
  for (const auto& [sequence, next] : behind->second) {
    if (how.run >= run || left.events == 0 || next.due > now) break;
    const auto& what = in.entries.at(next.id);
    if (what.bytes > left.bytes) break;
    const auto known = in.claims.find(next.id);
    auto described = describe(in, lane, what, known != in.claims.end() ? &known->second : nullptr);
    ++described.deliveries;
    into.events.push_back(std::move(described));
    use(what);
    ++how.run;
  }
  return true;
}

claimed model::claim(const claim_request& request) {
  const std::scoped_lock lock(mutex_);
  auto& in = at(request.lane);
  const auto now = now_ms();
  claimed result{.lane = request.lane, .now = timestamp(std::chrono::milliseconds(now))};
  if (!request.owner.empty() && !holds_lock(in, request.owner, now)) {
    result.status = claim_status::fenced;
    return result;
  }
  if (in.paused) {
    result.status = claim_status::paused;
    return result;
  }
  std::vector<std::string> due;
  for (const auto& [score, id] : in.pending.in_order()) {
    if (score > now || due.size() == request.most) break;
    due.push_back(id);
  }
  if (!due.empty()) result.fence = next_token(in);
  room left{.events = most_in_a_call, .bytes = request.bytes};
  std::size_t to_park = most_in_a_call;
  for (const auto& id : due) {
    if (left.events == 0) break;
    if (in.parked.score(id)) {
      // Whoever parked it did not come to those behind it.
      const auto before = in.counts.parkings;
      (void)park_behind(in, in.claims[id].key, to_park, now);
      to_park -= static_cast<std::size_t>(in.counts.parkings - before);
      continue;
    }
    const auto entry = in.entries.find(id);
    if (!result.events.empty() && entry != in.entries.end() && entry->second.bytes > left.bytes) break;
    take(in, request.lane, id, result.fence, now, request.lease, request.run, left, result);
  }
  result.status = result.events.empty() ? claim_status::empty : claim_status::some;
  if (const auto first = in.pending.first()) result.next = std::chrono::milliseconds(std::max<std::int64_t>(*first - now, 0));
  return result;
}

model::progress* model::held(lane_state& in, const std::string& id, const std::string& key, fence token, bool whole_run) {
  std::string bearer = id;
  if (!key.empty()) {
    const auto head = in.heads.find(key);
    if (head == in.heads.end() || (!whole_run && head->second != id)) return nullptr;
    bearer = head->second;
  }
  const auto how = in.claims.find(bearer);
  if (how == in.claims.end() || how->second.token != token || token == 0 || how->second.key != key || !in.pending.score(bearer))
    return nullptr;
  return &how->second;
}

std::vector<bool> model::extend(std::size_t lane, fence token, std::span<const settlement> events, std::chrono::milliseconds lease) {
  const std::scoped_lock lock(mutex_);
  auto& in = at(lane);
  const auto deadline = now_ms() + lease.count();
  std::vector<bool> result;
  for (const auto& one : events) {
    const bool ours = held(in, one.id, one.key, token, true) != nullptr;
    if (ours) in.pending.put(one.key.empty() ? one.id : in.heads[one.key], deadline);
    result.push_back(ours);
  }
  return result;
}

settled model::settle(std::size_t lane, fence token, std::span<const settlement> what, const std::optional<run_request>& next,
                      const publish_terms& terms) {
  const std::scoped_lock lock(mutex_);
  auto& in = at(lane);
  const auto now = now_ms();
  const auto before = in.pending.first();
  settled result;
  result.next.now = timestamp(std::chrono::milliseconds(now));
  std::vector<std::string> finished;
  bool acked = false;
  for (const auto& one : what) {
    auto* how = held(in, one.id, one.key, token, false);
    result.done.push_back(how != nullptr);
    if (how == nullptr) {
      ++in.counts.stale;
      const auto head = in.heads.find(one.key);
      const bool blocking = one.what == settlement::kind::park && one.policy == park_policy::park && !one.key.empty() &&
                            head != in.heads.end() && head->second == one.id;
      if (blocking && token != 0 && in.claims[one.id].parked_by == token) result.more.push_back(one.key);
      continue;
    }
    const auto deadline = in.pending.score(one.id).value_or(now);
    const auto rest = how->run > 0 ? how->run - 1 : 0;
    if (one.what == settlement::kind::ack) {
      forget(in, one.id);
      if (terms.dedup_window.count() > 0) in.done.put(one.id, now);
      ++in.counts.acked;
      acked = true;
      if (!one.key.empty()) {
        advance(in, one.key, rest, token, deadline);
        if (rest == 0 && in.heads.contains(one.key)) finished.push_back(one.key);
      }
      continue;
    }
    how->token = 0;
    how->run = 0;
    if (one.what == settlement::kind::release) {
      if (how->deliveries > 0) --how->deliveries;
      in.pending.put(one.id, now);
      continue;
    }
    if (one.counts) ++how->attempts;
    else if (one.what == settlement::kind::retry && how->deliveries > 0) --how->deliveries;
    if (how->first_failed == 0) how->first_failed = now;
    in.errors[one.id] = one.error;
    if (one.what == settlement::kind::retry) {
      ++in.counts.retried;
      in.pending.put(one.id, now + one.delay.count());
      continue;
    }
    ++in.counts.parkings;
    in.pending.erase(one.id);
    in.parked.put(one.id, now);
    if (one.key.empty()) continue;
    if (one.policy == park_policy::skip || (one.policy == park_policy::park && !in.followers.contains(one.key))) {
      advance(in, one.key, rest, token, deadline);
    } else if (one.policy == park_policy::park) {
      how->parked_by = token;
      in.pending.put(one.id, now);
      result.more.push_back(one.key);
    }
  }
  if (acked) trim(in, terms, now);
  if (next) {
    if (!next->owner.empty() && !holds_lock(in, next->owner, now)) {
      result.next.status = claim_status::fenced;
    } else if (in.paused) {
      result.next.status = claim_status::paused;
    } else {
      room left{.events = most_in_a_call, .bytes = next->bytes};
      for (const auto& key : finished) {
        const auto head = in.heads.find(key);
        if (head == in.heads.end() || left.events == 0) continue;
        const std::string id = head->second;
        if (in.pending.score(id).value_or(now + 1) > now || in.claims[id].token != 0) continue;
        const auto entry = in.entries.find(id);
        if (!result.next.events.empty() && entry != in.entries.end() && entry->second.bytes > left.bytes) continue;
        if (result.next.fence == 0) result.next.fence = next_token(in);
        take(in, lane, id, result.next.fence, now, next->lease, next->run, left, result.next);
      }
      result.next.status = result.next.events.empty() ? claim_status::empty : claim_status::some;
    }
    if (const auto first = in.pending.first()) result.next.next = std::chrono::milliseconds(std::max<std::int64_t>(*first - now, 0));
  }
  mark_if_earlier(in, before);
  return result;
}

std::size_t model::park_behind(lane_state& in, const std::string& key, std::size_t most, std::int64_t now) {
  const auto head = in.heads.find(key);
  // One that was parked to block its key stays in front: whoever was told to go on came late.
  if (head == in.heads.end() || !in.parked.score(head->second) || in.claims[head->second].parked_by == 0) return 0;
  const auto behind = in.followers.find(key);
  if (behind != in.followers.end()) {
    for (; most > 0 && !behind->second.empty(); --most) {
      const auto id = behind->second.begin()->second.id;
      behind->second.erase(behind->second.begin());
      in.claims[id].key = key;
      in.errors[id] = "parked behind " + head->second;
      in.parked.put(id, now);
      ++in.counts.parkings;
    }
    if (!behind->second.empty()) return behind->second.size();
    in.followers.erase(behind);
  }
  in.pending.erase(head->second);
  in.heads.erase(head);
  return 0;
}

std::size_t model::park_followers(std::size_t lane, std::string_view key, std::size_t most) {
  const std::scoped_lock lock(mutex_);
  return park_behind(at(lane), std::string(key), most, now_ms());
}

std::vector<bool> model::replay(std::size_t lane, std::span<const std::string> ids) {
  const std::scoped_lock lock(mutex_);
  auto& in = at(lane);
  const auto now = now_ms();
  const auto before = in.pending.first();
  std::vector<bool> result;
  for (const auto& id : ids) {
    const bool was = in.parked.erase(id);
    result.push_back(was);
    if (!was) continue;
    auto& how = in.claims[id];
    how = progress{.replays = how.replays + 1, .key = how.key};
    in.errors.erase(id);
    const auto head = how.key.empty() ? in.heads.end() : in.heads.find(how.key);
    if (head != in.heads.end() && head->second != id) {
      in.followers[how.key].emplace(++in.sequence, follower{.due = now, .id = id});
    } else {
      if (!how.key.empty()) in.heads[how.key] = id;
      in.pending.put(id, now);
    }
  }
  mark_if_earlier(in, before);
  return result;
}

std::vector<bool> model::discard(std::size_t lane, std::span<const std::string> ids) {
  const std::scoped_lock lock(mutex_);
  auto& in = at(lane);
  const auto before = in.pending.first();
  std::vector<bool> result;
  for (const auto& id : ids) {
    const bool was = in.parked.erase(id);
    result.push_back(was);
    if (!was) continue;
    const std::string key = in.claims[id].key;
    forget(in, id);
    const auto head = key.empty() ? in.heads.end() : in.heads.find(key);
    if (head != in.heads.end() && head->second == id) advance(in, key, 0, 0, 0);
  }
  mark_if_earlier(in, before);
  return result;
}

}  // namespace HOLDFAST_NAMESPACE::outboxes
