#include <holdfast/error.hpp>
#include <holdfast/outbox.hpp>

#include "base/deadline.hpp"
#include "outbox/checks.hpp"
#include "outbox/outbox_state.hpp"

#include <algorithm>
#include <charconv>

namespace HOLDFAST_NAMESPACE {

using outboxes::most_in_a_call;

void outbox::drop_payload(const event& what) const noexcept {
  const auto& own = *state_;
  if (what.payload_ref.empty() || !own.options.claim_check) return;
  try {
    own.options.claim_check->drop(what.payload_ref);
  } catch (const std::exception& problem) {
    own.log->write_limited("outbox-drop", log_level::warning, "a payload that nobody needs any more was not dropped",
                           {{"reference", what.payload_ref}, {"error", problem.what()}});
  }
}

namespace {

void check_owner(std::string_view owner) {
  outboxes::check_name("owner of a lock", owner, false);
  if (owner.find('|') != std::string_view::npos) throw error(errc::invalid_argument, "the owner of a lock has a '|' in its name");
}

/// Does the same to ids of any lane, in parts; how many it was true for.
template <class Verb>
std::size_t count_done(std::span<const std::string> ids, std::size_t lanes, Verb verb) {
  std::size_t count = 0;
  for (std::size_t from = 0; from < ids.size(); from += most_in_a_call) {
    const auto part = ids.subspan(from, std::min(most_in_a_call, ids.size() - from));
    for (const auto& id : part) outboxes::check_id(id);
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const std::vector<bool> done = verb(lane, part);
      count += static_cast<std::size_t>(std::count(done.begin(), done.end(), true));
    }
  }
  return count;
}

}  // namespace

std::size_t outbox::replay(std::span<const std::string> ids) const {
  return count_done(ids, lanes(), [&](std::size_t lane, auto part) { return state_->backend->replay(lane, part); });
}

std::size_t outbox::discard(std::span<const std::string> ids) const {
  return count_done(ids, lanes(), [&](std::size_t lane, std::span<const std::string> part) {
    std::vector<event> elsewhere(part.size());  // whose payloads nobody needs any more
    for (std::size_t i = 0; state_->options.claim_check && i < part.size(); ++i) {
      if (auto found = state_->backend->find(lane, part[i])) elsewhere[i] = std::move(found->what.event);
    }
    auto done = state_->backend->discard(lane, part);
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (done[i]) drop_payload(elsewhere[i]);
    }
    return done;
  });
}

void outbox::pause() const {
  for (std::size_t lane = 0; lane < lanes(); ++lane) state_->backend->pause(lane, true);
}

void outbox::resume() const {
  for (std::size_t lane = 0; lane < lanes(); ++lane) state_->backend->pause(lane, false);
}

scheduled outbox::schedule(std::string_view ticket, timestamp expires_at, const event& becomes) const {
  if (expires_at.time_since_epoch().count() <= 0 || expires_at.time_since_epoch() > std::chrono::hours(24) * 365 * 8000) {
    throw error(errc::invalid_argument, "the expiry of a ticket is not between 1970 and the year 9970");
  }
  return schedule(ticket, std::optional(expires_at), std::chrono::milliseconds(0), becomes);
}

scheduled outbox::schedule(std::string_view ticket, std::chrono::milliseconds after, const event& becomes) const {
  outboxes::check_duration("time until a ticket expires", after, std::chrono::milliseconds(0));
  return schedule(ticket, std::nullopt, after, becomes);
}

scheduled outbox::schedule(std::string_view ticket, std::optional<timestamp> at, std::chrono::milliseconds after,
                           const event& becomes) const {
  const auto& own = *state_;
  outboxes::check_name("ticket", ticket, false);
  outboxes::check_event(becomes, own.options);
  if (!becomes.id.empty())
    throw error(errc::invalid_argument, "the event of a ticket gets its id from the ticket and its time: leave it empty");
  if (becomes.delay.count() != 0)
    throw error(errc::invalid_argument, "the event of a ticket is due when the ticket expires: leave its delay out");
  if (becomes.payload.size() > own.options.inline_limit) {
    throw error(errc::too_large, "the event of a ticket cannot use a claim check: its payload is larger than inline_limit");
  }
  const auto lane = lane_of(becomes.key.empty() ? ticket : std::string_view(becomes.key));
  return own.backend->schedule(lane, ticket, at, after, becomes, own.terms());
}

cancel_status outbox::cancel(std::string_view ticket, std::string_view event_key) const {
  outboxes::check_name("ticket", ticket, false);
  return state_->backend->cancel(lane_of(event_key.empty() ? ticket : event_key), ticket);
}

drained outbox::drain(std::size_t lane, std::size_t most) const {
  const auto& own = *state_;
  own.check_lane(lane);
  own.check_batch("the number of tickets", most);
  auto result = own.backend->drain(lane, most, own.terms(durability::memory()));
  own.fired->add(result.tickets);
  return result;
}

lock_grant outbox::lock(std::size_t lane, std::string_view owner, std::chrono::milliseconds ttl) const {
  state_->check_lane(lane);
  check_owner(owner);
  outboxes::check_duration("life of a lock", ttl, std::chrono::milliseconds(1));
  return state_->backend->lock(lane, owner, ttl);
}

lock_grant outbox::renew(std::size_t lane, std::string_view owner, std::chrono::milliseconds ttl) const {
  state_->check_lane(lane);
  check_owner(owner);
  outboxes::check_duration("life of a lock", ttl, std::chrono::milliseconds(1));
  return state_->backend->renew(lane, owner, ttl);
}

bool outbox::unlock(std::size_t lane, std::string_view owner) const {
  state_->check_lane(lane);
  check_owner(owner);
  return state_->backend->unlock(lane, owner);
}

committed outbox::commit(commit_request request) const {
  const auto& own = *state_;
  for (auto& one : request.events) own.prepare(one);
  std::size_t lane = 0;
  if (!request.once.empty()) {
    lane = lane_of(request.once_key.empty() ? request.once : request.once_key);
  } else if (!request.events.empty()) {
    const auto& first = request.events.front();
    lane = lane_of(first.key.empty() ? first.id : first.key);
  } else if (!request.writes.empty() || !request.conditions.empty()) {
    const auto& key = request.writes.empty() ? request.conditions.front().key : request.writes.front().key;
    for (std::size_t i = 0; i < lanes(); ++i) {
      if (key.starts_with(own.backend->key_prefix(i) + ":data:")) lane = i;
    }
  }
  const auto prefix = own.backend->key_prefix(lane);
  if (prefix.empty()) {
    throw error(errc::unsupported_type, "commit is for Redis; on a database publish in the transaction of your own data");
  }
  for (const auto& one : request.events) {
    if (!one.key.empty() && lane_of(one.key) != lane) {
      throw error(errc::invalid_argument, "an event of key '" + one.key + "' is in another lane than the rest of its commit");
    }
  }
  outboxes::check_commit(request, prefix);
  return own.backend->commit(lane, request, own.terms());
}

std::string outbox::key_of(std::string_view ordering_key, std::string_view name) const {
  const auto prefix = state_->backend->key_prefix(lane_of(ordering_key));
  if (prefix.empty()) throw error(errc::unsupported_type, "this outbox has no keys: it is not on Redis");
  return prefix + ":data:" + std::string(name);
}

committed outbox::effect_once(fence token, const claimed_event& what, std::vector<commit_write> writes, std::vector<event> events) const {
  return commit(
      {.writes = std::move(writes), .events = std::move(events), .once = what.event.id, .fence = token, .once_key = what.event.key});
}

std::size_t outbox::lanes() const noexcept { return state_->backend->lanes(); }

std::size_t outbox::lane_of(std::string_view key_or_id) const noexcept { return outboxes::lane_of(key_or_id, lanes()); }

outbox_stats outbox::stats() const {
  outbox_stats sum;
  for (std::size_t lane = 0; lane < lanes(); ++lane) sum += stats(lane);
  return sum;
}

outbox_stats outbox::stats(std::size_t lane) const {
  const auto& own = *state_;
  own.check_lane(lane);
  auto result = own.backend->stats(lane);
  if (own.options.lane_alarm != 0 && result.events > own.options.lane_alarm) {
    own.log->write_limited("outbox-lane", log_level::warning, "a lane has more events than lane_alarm: add consumers, or use more lanes",
                           {{"lane", std::to_string(lane)}, {"events", std::to_string(result.events)}});
  }
  return result;
}

std::optional<outbox_record> outbox::find(std::string_view id) const {
  outboxes::check_id(id);
  for (std::size_t i = 0; i < lanes(); ++i) {
    // First where it would be without a key.
    const auto lane = (lane_of(id) + i) & (lanes() - 1);
    if (auto found = state_->backend->find(lane, id)) return found;
  }
  return std::nullopt;
}

std::string outbox::explain(std::string_view id) const {
  const auto found = find(id);
  if (!found) return "there is no such event: it was delivered, discarded, or never published";
  std::string about;
  if (!found->what.last_error.empty()) about = " (last error: " + found->what.last_error + ")";
  const auto paused = state_->backend->stats(found->what.lane).paused;
  switch (found->state) {
    case event_state::due:
      if (paused) return "the outbox is paused: resume it" + about;
      return "it is due: it will be delivered as soon as a worker asks; if it is not, no worker runs, or none holds the lock of lane " +
             std::to_string(found->what.lane) + about;
    case event_state::waiting:
      return std::string(found->what.attempts > 0
                             ? "it failed " + std::to_string(found->what.attempts) + " times and waits to be tried again"
                             : "its time has not come") +
             about;
    case event_state::claimed:
      return "it was handed out (" + std::to_string(found->what.deliveries) + ". time) and its lease runs" + about;
    case event_state::following:
      return "it waits behind event " + found->behind + " of the same key '" + found->what.event.key + "'" + about;
    case event_state::parked:
      return "it is parked: replay or discard it" + about;
    case event_state::blocking:
      return "it is parked, and its key '" + found->what.event.key + "' waits for it: replay or discard it" + about;
  }
  return "its state is unknown";
}

scan_page outbox::scan(scan_what what, std::string_view after, std::size_t most) const {
  const auto& own = *state_;
  own.check_batch("the size of a page", most);
  std::size_t lane = 0;
  std::string_view inside = after;
  if (!after.empty()) {
    const auto colon = after.find(':');
    const auto digits = after.substr(0, colon);
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), lane);
    if (colon == std::string_view::npos || code != std::errc{} || end != digits.data() + digits.size()) {
      throw error(errc::invalid_argument, "'" + std::string(after.substr(0, 64)) + "' is not the `after` of a page");
    }
    own.check_lane(lane);
    inside = after.substr(colon + 1);
  }
  auto page = own.backend->scan(lane, what, inside, most);
  if (!page.after.empty()) {
    page.after = std::to_string(lane) + ':' + page.after;
  } else if (lane + 1 < lanes()) {
    page.after = std::to_string(lane + 1) + ':';
  }
  return page;
}

check_report outbox::check(bool repair) const {
  check_report sum;
  for (std::size_t lane = 0; lane < lanes(); ++lane) sum += state_->backend->check(lane, repair);
  return sum;
}

bool outbox::wait(std::size_t lane, std::chrono::milliseconds longest) const {
  state_->check_lane(lane);
  return state_->backend->wait(lane, std::clamp<std::chrono::milliseconds>(longest, std::chrono::milliseconds(0), longest_wait));
}

void outbox::wake(std::size_t lane) const {
  state_->check_lane(lane);
  state_->backend->wake(lane);
}

std::optional<error> outbox::health() const noexcept { return state_->backend->health(); }

const outbox_options& outbox::options() const noexcept { return state_->options; }
const std::shared_ptr<outbox_backend>& outbox::backend() const noexcept { return state_->backend; }
const std::shared_ptr<isolated_metrics>& outbox::metrics() const noexcept { return state_->metrics; }

}  // namespace HOLDFAST_NAMESPACE
