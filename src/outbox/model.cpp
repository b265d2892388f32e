#include "outbox/model.hpp"

#include <holdfast/error.hpp>

#include "outbox/entry.hpp"

#include <algorithm>
#include <bit>

namespace HOLDFAST_NAMESPACE {

std::shared_ptr<outbox_backend> make_memory_outbox(memory_outbox_options options) {
  return std::make_shared<outboxes::model>(std::move(options));
}

}  // namespace HOLDFAST_NAMESPACE

namespace HOLDFAST_NAMESPACE::outboxes {

void model::sorted::put(const std::string& member, std::int64_t score) {
  const auto [at, added] = scores_.try_emplace(member, score);
  if (!added) {
    order_.erase({at->second, member});
    at->second = score;
  }
  order_.emplace(score, member);
}

bool model::sorted::erase(std::string_view member) {
  const auto at = scores_.find(member);
  if (at == scores_.end()) return false;
  order_.erase({at->second, at->first});
  scores_.erase(at);
  return true;
}

std::optional<std::int64_t> model::sorted::score(std::string_view member) const {
  const auto at = scores_.find(member);
  if (at == scores_.end()) return std::nullopt;
  return at->second;
}

std::optional<std::int64_t> model::sorted::first() const {
  if (order_.empty()) return std::nullopt;
  return order_.begin()->first;
}

model::model(memory_outbox_options options) : clock_(options.clock ? std::move(options.clock) : system_clock()), lanes_(options.lanes) {
  if (!std::has_single_bit(options.lanes) || options.lanes > 256) {
    throw error(errc::invalid_argument, "an outbox of " + std::to_string(options.lanes) + " lanes: a power of two up to 256 is needed");
  }
}

std::string model::key_prefix(std::size_t lane) const { return "{memory:" + std::to_string(lane) + "}"; }

void model::require(const durability& how) {
  if (how.level != durability::kind::memory) {
    throw error(errc::invalid_argument, "an outbox in memory is not '" + std::string(to_string(how.level)) + "': use a database");
  }
}

model::lane_state& model::at(std::size_t lane) {
  if (lane >= lanes_.size()) throw error(errc::invalid_argument, "there is no lane " + std::to_string(lane));
  return lanes_[lane];
}

std::int64_t model::now_ms() const { return std::chrono::floor<std::chrono::milliseconds>(clock_->now()).time_since_epoch().count(); }

fence model::next_token(lane_state& in) const {
  in.last_token = std::max<fence>(in.last_token + 1, clock_->now().time_since_epoch().count());
  return in.last_token;
}

bool model::remembered(const lane_state& in, const std::string& member, const publish_terms& terms, std::int64_t now) const {
  const auto when = in.done.score(member);
  return when && *when > now - terms.dedup_window.count();
}

std::optional<error> model::over_quota(const lane_state& in, std::size_t events, std::uint64_t bytes, const publish_terms& terms,
                                       std::int64_t now) const {
  const auto& quota = terms.quota;
  const auto full = [](const std::string& why) { return error(errc::too_large, why, {.transient = true}); };
  if (quota.events != 0 && in.entries.size() + in.tickets.size() + events > quota.events) {
    return full("the outbox is full: " + std::to_string(in.entries.size() + in.tickets.size()) + " events of " +
                std::to_string(quota.events));
  }
  if (quota.bytes != 0 && in.bytes + bytes > quota.bytes) {
    return full("the outbox is full: " + std::to_string(in.bytes) + " bytes of " + std::to_string(quota.bytes));
  }
  const auto first = in.pending.first();
  if (quota.overdue.count() != 0 && first && now - *first > quota.overdue.count()) {
    return full("the outbox is behind: an event is overdue by " + std::to_string(now - *first) + " ms of " +
                std::to_string(quota.overdue.count()));
  }
  return std::nullopt;
}

bool model::add(lane_state& in, const event& what, std::int64_t due, const publish_terms& terms, std::int64_t now) {
  if (in.entries.contains(what.id) || remembered(in, what.id, terms, now)) {
    ++in.counts.duplicates;
    return false;
  }
  const auto sequence = ++in.sequence;
  const auto bytes = entry_text(what.id, entry_body(what), now, sequence).size();
  in.entries.emplace(what.id, kept{.what = what, .created = now, .sequence = sequence, .bytes = bytes});
  in.bytes += bytes;
  ++in.counts.published;
  if (what.key.empty()) {
    in.pending.put(what.id, due);
  } else if (in.heads.contains(what.key)) {
    in.followers[what.key].emplace(sequence, follower{.due = due, .id = what.id});
  } else {
    in.heads.emplace(what.key, what.id);
    in.claims[what.id].key = what.key;
    in.pending.put(what.id, due);
  }
  return true;
}

std::vector<receipt> model::add_all(lane_state& in, std::span<const event> events, const publish_terms& terms, std::int64_t now) {
  std::set<std::string> fresh;
  std::uint64_t bytes = 0;
  for (const auto& one : events) {
    if (in.entries.contains(one.id) || remembered(in, one.id, terms, now) || !fresh.insert(one.id).second) continue;
    bytes += entry_body(one).size();
  }
  std::vector<receipt> receipts;
  if (!fresh.empty()) {
    if (const auto why = over_quota(in, fresh.size(), bytes, terms, now)) {
      for (const auto& one : events) receipts.push_back({.id = one.id, .status = publish_status::refused, .problem = why});
      return receipts;
    }
  }
  for (const auto& one : events) {
    const bool added = add(in, one, now + one.delay.count(), terms, now);
    receipts.push_back({.id = one.id, .status = added ? publish_status::added : publish_status::duplicate});
  }
  return receipts;
}

std::vector<receipt> model::publish(std::size_t lane, std::span<const event> events, const publish_terms& terms) {
  require(terms.how);
  const std::scoped_lock lock(mutex_);
  auto& in = at(lane);
  const auto before = in.pending.first();
  auto receipts = add_all(in, events, terms, now_ms());
  mark_if_earlier(in, before);
  return receipts;
}

void model::mark_if_earlier(lane_state& in, std::optional<std::int64_t> before) {
  const auto first = in.pending.first();
  if (!first || (before && *before <= *first)) return;
  in.marked = true;
  changed_.notify_all();
}

bool model::wait(std::size_t lane, std::chrono::milliseconds longest) {
  std::unique_lock lock(mutex_);
  auto& in = at(lane);
  changed_.wait_for(lock, longest, [&] { return in.marked; });
  return std::exchange(in.marked, false);
}

void model::wake(std::size_t lane) {
  const std::scoped_lock lock(mutex_);
  at(lane).marked = true;
  changed_.notify_all();
}

void model::pause(std::size_t lane, bool paused) {
  const std::scoped_lock lock(mutex_);
  auto& in = at(lane);
  in.paused = paused;
  if (paused) return;
  in.marked = true;
  changed_.notify_all();
}

scheduled model::schedule(std::size_t lane, std::string_view ticket_id, std::optional<timestamp> at_time, std::chrono::milliseconds delay,
                          const event& becomes, const publish_terms& terms) {
  require(terms.how);
  const std::scoped_lock lock(mutex_);
  auto& in = at(lane);
  const auto now = now_ms();
  const auto due = at_time ? std::chrono::floor<std::chrono::milliseconds>(*at_time).time_since_epoch().count() : now + delay.count();
  const std::string name(ticket_id);
  const auto before = in.expiry_due.score(name);
  const auto body = entry_body(becomes).size();
  if (!before) {
    if (const auto why = over_quota(in, 1, body, terms, now)) throw error(*why);
  }
  in.expiry_due.put(name, due);
  in.tickets[name] = {.becomes = becomes, .bytes = body};
  if (in.expiry_due.first() == due) {
    in.marked = true;
    changed_.notify_all();
  }
  scheduled result{.expires_at = timestamp(std::chrono::milliseconds(due))};
  if (before) result.before = timestamp(std::chrono::milliseconds(*before));
  return result;
}

cancel_status model::cancel(std::size_t lane, std::string_view ticket_id) {
  const std::scoped_lock lock(mutex_);
  auto& in = at(lane);
  if (in.expiry_due.erase(ticket_id)) {
    in.tickets.erase(std::string(ticket_id));
    return cancel_status::cancelled;
  }
  return in.done.score("t:" + std::string(ticket_id)) ? cancel_status::fired : cancel_status::unknown;
}

drained model::drain(std::size_t lane, std::size_t most, const publish_terms& terms) {
  const std::scoped_lock lock(mutex_);
  auto& in = at(lane);
  const auto now = now_ms();
  const auto before = in.pending.first();
  drained result;
  while (result.tickets < most && !in.expiry_due.in_order().empty()) {
    const auto [due, name] = *in.expiry_due.in_order().begin();
    if (due > now) break;
    event what = in.tickets[name].becomes;
    what.id = expiry_event_id(name, timestamp(std::chrono::milliseconds(due)));
    in.expiry_due.erase(name);
    in.tickets.erase(name);
    add(in, what, now, terms, now);
    if (terms.dedup_window.count() > 0) in.done.put("t:" + name, now);
    ++in.counts.fired;
    ++result.tickets;
  }
  if (result.tickets > 0) trim(in, terms, now);
  if (const auto first = in.expiry_due.first()) result.next = std::chrono::milliseconds(std::max<std::int64_t>(*first - now, 0));
  mark_if_earlier(in, before);
  return result;
}

bool model::holds_lock(const lane_state& in, std::string_view owner, std::int64_t now) const {
  return in.lock && in.lock->owner == owner && in.lock->until > now;
}

lock_grant model::lock(std::size_t lane, std::string_view owner, std::chrono::milliseconds ttl) {
  const std::scoped_lock guard(mutex_);
  auto& in = at(lane);
  const auto now = now_ms();
  if (in.lock && in.lock->until > now && in.lock->owner != owner) {
    return {.fence = in.lock->fence, .holder = in.lock->owner, .remaining = std::chrono::milliseconds(in.lock->until - now)};
  }
  if (!in.lock || in.lock->until <= now) {
    in.last_fence = std::max<fence>(in.last_fence + 1, clock_->now().time_since_epoch().count());
    in.lock = holder{.owner = std::string(owner), .fence = in.last_fence};
  }
  in.lock->until = now + ttl.count();
  return {.held = true, .fence = in.lock->fence, .holder = in.lock->owner, .remaining = ttl};
}

lock_grant model::renew(std::size_t lane, std::string_view owner, std::chrono::milliseconds ttl) {
  const std::scoped_lock guard(mutex_);
  auto& in = at(lane);
  const auto now = now_ms();
  if (in.lock && in.lock->owner == owner && in.lock->until > now) {
    in.lock->until = now + ttl.count();
    return {.held = true, .fence = in.lock->fence, .holder = in.lock->owner, .remaining = ttl};
  }
  if (!in.lock || in.lock->until <= now) return {};
  return {.fence = in.lock->fence, .holder = in.lock->owner, .remaining = std::chrono::milliseconds(in.lock->until - now)};
}

bool model::unlock(std::size_t lane, std::string_view owner) {
  const std::scoped_lock guard(mutex_);
  auto& in = at(lane);
  if (!holds_lock(in, owner, now_ms())) return false;
  in.lock.reset();
  return true;
}

}  // namespace HOLDFAST_NAMESPACE::outboxes
