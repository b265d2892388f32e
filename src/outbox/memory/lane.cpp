#include "outbox/memory/lane.hpp"

#include "outbox/checks.hpp"
#include "outbox/entry.hpp"

#include <algorithm>

namespace HOLDFAST_NAMESPACE::detail::outbox {

void sorted_set::put(const std::string& member, std::int64_t score) {
  const auto [position, added] = scores_.try_emplace(member, score);
  if (!added) {
    members_.erase({position->second, member});
    position->second = score;
  }
  members_.emplace(score, member);
}

bool sorted_set::erase(std::string_view member) {
  const auto position = scores_.find(member);
  if (position == scores_.end()) return false;
  members_.erase({position->second, position->first});
  scores_.erase(position);
  return true;
}

std::optional<std::int64_t> sorted_set::score(std::string_view member) const {
  const auto position = scores_.find(member);
  if (position == scores_.end()) return std::nullopt;
  return position->second;
}

std::optional<std::int64_t> sorted_set::first_score() const {
  if (members_.empty()) return std::nullopt;
  return members_.begin()->first;
}

fence memory_lane::next_token(timestamp now) {
  last_token = std::max<fence>(last_token + 1, now.time_since_epoch().count());
  return last_token;
}

bool memory_lane::holds_lock(std::string_view owner, std::int64_t now) const {
  return lock && lock->owner == owner && lock->until > now;
}

bool memory_lane::is_head(const std::string& id, const std::string& key) const {
  const auto head = key.empty() ? heads.end() : heads.find(key);
  return head != heads.end() && head->second == id;
}

std::optional<std::chrono::milliseconds> memory_lane::time_until_due(std::int64_t now) const {
  const auto first = pending.first_score();
  if (!first) return std::nullopt;
  return std::chrono::milliseconds(std::max<std::int64_t>(*first - now, 0));
}

bool memory_lane::is_remembered(const std::string& member, const publish_terms& terms,
                                std::int64_t now) const {
  if (terms.dedup_window.count() == 0) return false;
  const auto added_at = done.score(member);
  return added_at && *added_at > now - terms.dedup_window.count();
}

std::optional<error> memory_lane::over_quota(std::size_t new_events, std::uint64_t new_bytes,
                                             const outbox_quota& quota, std::int64_t now) const {
  const auto full = [](const std::string& message) {
    return error(errc::too_large, message, {.transient = true});
  };
  const auto used = entries.size() + tickets.size();
  if (quota.events != 0 && used + new_events > quota.events) {
    return full("the outbox is full: " + std::to_string(used) + " events of " +
                std::to_string(quota.events));
  }
  if (quota.bytes != 0 && bytes + new_bytes > quota.bytes) {
    return full("the outbox is full: " + std::to_string(bytes) + " bytes of " +
                std::to_string(quota.bytes));
  }
  const auto first = pending.first_score();
  if (quota.overdue.count() != 0 && first && now - *first > quota.overdue.count()) {
    return full("the outbox is behind: an event is overdue by " + std::to_string(now - *first) +
                " ms of " + std::to_string(quota.overdue.count()));
  }
  return std::nullopt;
}

bool memory_lane::add(const event& event, std::int64_t due, const publish_terms& terms,
                      std::int64_t now) {
  if (entries.contains(event.id) || is_remembered(event.id, terms, now)) {
    ++counters.duplicates;
    return false;
  }
  ++sequence;
  if (now > latest_publishing + 100) latest_publishing = now;
  const auto size = entry_text(event.id, entry_body(event), now, sequence).size();
  entries.emplace(
      event.id, stored_event{.event = event, .created = now, .sequence = sequence, .bytes = size});
  bytes += size;
  ++counters.published;
  if (event.key.empty()) {
    pending.put(event.id, due);
  } else if (heads.contains(event.key)) {
    followers[event.key].emplace(sequence, follower{.due = due, .id = event.id});
  } else {
    heads.emplace(event.key, event.id);
    claims[event.id].key = event.key;
    pending.put(event.id, due);
  }
  return true;
}

std::vector<receipt> memory_lane::add_all(std::span<const event> events, const publish_terms& terms,
                                          std::int64_t now) {
  std::set<std::string> new_ids;
  std::uint64_t new_bytes = 0;
  for (const auto& event : events) {
    if (entries.contains(event.id) || is_remembered(event.id, terms, now) ||
        !new_ids.insert(event.id).second)
      continue;
    new_bytes += entry_body(event).size();
  }
  std::vector<receipt> receipts;
  if (!new_ids.empty()) {
    if (const auto problem = over_quota(new_ids.size(), new_bytes, terms.quota, now)) {
      for (const auto& event : events)
        receipts.push_back({.id = event.id, .status = publish_status::refused, .problem = problem});
      return receipts;
    }
  }
  for (const auto& event : events) {
    const bool added = add(event, now + event.delay.count(), terms, now);
    receipts.push_back(
        {.id = event.id, .status = added ? publish_status::added : publish_status::duplicate});
  }
  return receipts;
}

void memory_lane::hand_out(const std::string& id, const claim_terms& terms, claim_budget& budget,
                           claimed& result) {
  const auto entry = entries.find(id);
  if (entry == entries.end()) {
    ++counters.orphans;
    remove_and_promote(id, terms.now);
    return;
  }
  const auto append = [&](const stored_event& stored, claimed_event described) {
    result.events.push_back(std::move(described));
    budget.bytes -= std::min<std::size_t>(budget.bytes, stored.bytes);
    --budget.events;
    ++counters.claims;
  };
  auto& claim = claims[id];
  const bool is_first_delivery = claim.deliveries == 0;
  ++claim.deliveries;
  claim.token = terms.token;
  claim.run = 1;
  pending.put(id, terms.now + terms.lease.count());
  append(entry->second, describe(entry->second, &claim));
  // An event that was delivered before comes alone.
  const auto queue = followers.find(claim.key);
  if (claim.key.empty() || !is_first_delivery || queue == followers.end()) return;
  for (const auto& [sequence_number, next] : queue->second) {
    if (claim.run >= terms.run || budget.events == 0) break;
    if (next.due > terms.now && !is_without_delay(next.id, next.due)) break;
    const auto& stored = entries.at(next.id);
    if (stored.bytes > budget.bytes) break;
    auto described = describe(stored, find_claim(next.id));
    ++described.deliveries;
    append(stored, std::move(described));
    ++claim.run;
  }
}

memory_lane::claim_record* memory_lane::held_claim(const std::string& id, const std::string& key,
                                                   fence token, bool whole_run) {
  std::string holder = id;
  if (!key.empty()) {
    const auto head = heads.find(key);
    if (head == heads.end() || (!whole_run && head->second != id)) return nullptr;
    holder = head->second;
  }
  const auto claim = claims.find(holder);
  if (claim == claims.end() || token == 0 || claim->second.token != token ||
      claim->second.key != key || !pending.score(holder))
    return nullptr;
  return &claim->second;
}

void memory_lane::remove(const std::string& id, std::int64_t now) {
  const std::string mark = "e:" + id;
  if (done.score(mark).value_or(now) > now) done.put(mark, now);
  if (const auto entry = entries.find(id); entry != entries.end()) {
    bytes -= entry->second.bytes;
    entries.erase(entry);
  }
  pending.erase(id);
  claims.erase(id);
  errors.erase(id);
}

void memory_lane::remove_and_promote(const std::string& id, std::int64_t now) {
  const auto* claim = find_claim(id);
  const std::string key = claim != nullptr ? claim->key : std::string();
  remove(id, now);
  if (is_head(id, key)) promote_follower(key, 0, 0, 0, now);
}

void memory_lane::release_from_the_future(std::int64_t now) {
  if (latest_publishing <= now) return;
  std::vector<std::string> ids;
  for (const auto& [due, id] : pending.members()) {
    if (due > now && due <= latest_publishing + 100 && is_without_delay(id, due)) ids.push_back(id);
  }
  for (const auto& id : ids) pending.put(id, now);
  latest_publishing = now;
}

bool memory_lane::is_without_delay(const std::string& id, std::int64_t due) const {
  const auto entry = entries.find(id);
  return entry != entries.end() && entry->second.created == due;
}

void memory_lane::promote_follower(const std::string& key, std::size_t run, fence token,
                                   std::int64_t deadline, std::int64_t now) {
  const auto queue = followers.find(key);
  if (queue == followers.end()) {
    heads.erase(key);
    return;
  }
  const follower next = queue->second.begin()->second;
  queue->second.erase(queue->second.begin());
  if (queue->second.empty()) followers.erase(queue);
  heads[key] = next.id;
  auto& claim = claims[next.id];
  claim.key = key;
  claim.token = run > 0 ? token : 0;
  claim.run = run;
  if (run > 0) ++claim.deliveries;
  const bool is_due = next.due > now && is_without_delay(next.id, next.due);
  pending.put(next.id, run > 0 ? deadline : is_due ? now : next.due);
}

std::size_t memory_lane::park_followers_of(const std::string& key, std::size_t most,
                                           std::int64_t now) {
  const auto head = heads.find(key);
  // A head that was parked with park_policy::block stays: this call comes from an older parking.
  if (head == heads.end() || !parked.score(head->second) || claims[head->second].parked_by == 0)
    return 0;
  const auto queue = followers.find(key);
  if (queue != followers.end()) {
    for (; most > 0 && !queue->second.empty(); --most) {
      const auto id = queue->second.begin()->second.id;
      queue->second.erase(queue->second.begin());
      claims[id].key = key;
      errors[id] = "parked behind " + head->second;
      parked.put(id, now);
      ++counters.parkings;
    }
    if (!queue->second.empty()) return queue->second.size();
    followers.erase(queue);
  }
  pending.erase(head->second);
  heads.erase(head);
  return 0;
}

void memory_lane::trim_done(const publish_terms& terms, std::int64_t now) {
  const auto cutoff = now - terms.dedup_window.count();
  // Marks of effects whose events exist have a time in the future.
  const auto first_mark = done.members().lower_bound({now + 1, std::string()});
  const auto expiring =
      done.size() - static_cast<std::size_t>(std::distance(first_mark, done.members().end()));
  const std::size_t surplus =
      terms.dedup_limit != 0 && expiring > terms.dedup_limit ? expiring - terms.dedup_limit : 0;
  std::size_t expired = 0;
  for (const auto& [added_at, member] : done.members()) {
    if (added_at > cutoff || expired == max_events_per_call) break;
    ++expired;
  }
  for (auto count = std::min(max_events_per_call, std::max(expired, surplus)); count > 0; --count)
    done.erase(std::string(done.members().begin()->second));
}

const memory_lane::claim_record* memory_lane::find_claim(const std::string& id) const {
  const auto claim = claims.find(id);
  return claim != claims.end() ? &claim->second : nullptr;
}

claimed_event memory_lane::describe(const stored_event& stored, const claim_record* claim) const {
  claimed_event result{.event = stored.event,
                       .lane = number,
                       .deliveries = claim != nullptr ? claim->deliveries : 0,
                       .attempts = claim != nullptr ? claim->attempts : 0,
                       .replays = claim != nullptr ? claim->replays : 0,
                       .created_at = timestamp_at(stored.created),
                       .sequence = stored.sequence};
  result.event.delay = {};
  if (const auto problem = errors.find(stored.event.id); problem != errors.end())
    result.last_error = problem->second;
  return result;
}

outbox_record memory_lane::record_of(const stored_event& stored, std::int64_t now) const {
  const auto& id = stored.event.id;
  const auto* claim = find_claim(id);
  outbox_record result{.details = describe(stored, claim),
                       .fence = claim != nullptr ? claim->token : 0};
  if (const auto parked_at = parked.score(id)) {
    result.state = is_head(id, stored.event.key) ? event_state::blocking : event_state::parked;
    result.until = timestamp_at(*parked_at);
  } else if (const auto due = pending.score(id)) {
    if (*due > now) {
      result.state = result.fence != 0 ? event_state::claimed : event_state::waiting;
      result.until = timestamp_at(*due);
    }
  } else {
    result.state = event_state::following;
    if (const auto head = heads.find(stored.event.key); head != heads.end())
      result.behind = head->second;
  }
  return result;
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
