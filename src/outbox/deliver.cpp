// Delivery of class outbox: claim, extend and settle, locks and signals of lanes.

#include <holdfast/error.hpp>
#include <holdfast/outbox.hpp>

#include "base/duration_limit.hpp"
#include "base/utf8.hpp"
#include "outbox/checks.hpp"
#include "outbox/state.hpp"

#include <algorithm>
#include <utility>

namespace HOLDFAST_NAMESPACE {

namespace {

using detail::outbox::check_duration;
using detail::outbox::inline_size_problem;
using detail::outbox::outbox_state;
using std::chrono::milliseconds;

/// Delay before an event is claimed again whose payload could not be loaded. It doubles with each
/// failure that counts as an attempt, up to 64 times.
constexpr std::chrono::seconds payload_retry_delay{5};
constexpr std::uint32_t most_doublings = 6;
constexpr std::size_t longest_error = 1024;

settlement settlement_for(const claimed_event& event,
                          settlement::kind action = settlement::kind::ack) {
  return {.id = event.event.id, .key = event.event.key, .action = action};
}

/// Cuts an error to 1 KiB, between characters. Replaces NUL, which PostgreSQL cannot store in a
/// text, by a space, and bytes that are not UTF-8 by '?'.
std::string storable_error(std::string_view text) {
  std::string result(text.substr(0, longest_error));
  std::replace(result.begin(), result.end(), '\0', ' ');
  while (!result.empty() && !detail::is_utf8(result) && result.size() + 4 > longest_error)
    result.pop_back();
  if (detail::is_utf8(result)) return result;
  for (auto& c : result) {
    if ((static_cast<unsigned char>(c) & 0x80U) != 0) c = '?';
  }
  return result;
}

/// Why a claimed event is not delivered, and what happens to it instead.
struct rejection {
  settlement::kind action = settlement::kind::park;
  std::string reason{};
  /// For retry
  bool counts = false;
};

/// The payload of the event could not be loaded. One that is missing or was changed stays so. A
/// claim check that says that it is not available gets as much time as it needs. Any other failure
/// counts as an attempt, and the last one parks the event.
rejection reject_unloadable(const outbox_state& state, const claimed_event& event,
                            const std::exception& problem) {
  const auto* const coded_error = dynamic_cast<const error*>(&problem);
  if (coded_error != nullptr &&
      (coded_error->code() == errc::tampered || coded_error->code() == errc::not_found))
    return {.reason = problem.what()};
  if (coded_error != nullptr && coded_error->transient())
    return {.action = settlement::kind::retry, .reason = problem.what()};
  if (event.attempts + 1 >= state.options.max_deliveries) {
    return {.reason = "its payload could not be loaded in " + std::to_string(event.attempts + 1) +
                      " attempts: " + problem.what()};
  }
  return {.action = settlement::kind::retry, .reason = problem.what(), .counts = true};
}

/// Loads the payload of the event, and decides whether it may be delivered.
std::optional<rejection> load_or_reject(const outbox_state& state, claimed_event& event,
                                        timestamp now) {
  const auto time_to_live = event.event.time_to_live;
  if (event.event.type.empty())  // the backend could not read the entry
    return rejection{.reason = event.last_error};
  if (event.deliveries > event.attempts + state.options.max_deliveries) {
    return rejection{.reason = "claimed " + std::to_string(event.deliveries - event.attempts - 1) +
                               " times without an outcome of its handler"};
  }
  if (event.replays == 0 && time_to_live.count() > 0 && event.created_at + time_to_live < now) {
    return rejection{.reason = "too late: its time to live of " +
                               std::to_string(time_to_live.count()) + " ms is over"};
  }
  // Another program may have written it to the store.
  if (auto problem = inline_size_problem(event.event.payload.size(), state.options))
    return rejection{.reason = std::move(*problem)};
  try {
    state.load_payload(event.event);
    return std::nullopt;
  } catch (const std::exception& problem) {
    return reject_unloadable(state, event, problem);
  }
}

/// Splits a claim: events to deliver stay in `result`, the settlements of the others are returned.
///
/// Events of a key are adjacent. When one of them is rejected, the rest of its run is not delivered
/// either: what happens to it depends on the policy, so it comes with a later claim.
std::vector<settlement> reject_undeliverable(const outbox_state& state, claimed& result) {
  const auto policy = state.options.poison;
  std::vector<settlement> settlements;
  std::vector<std::string> rejected_keys;
  std::vector<claimed_event> deliverable;
  for (std::size_t i = 0; i < result.events.size(); ++i) {
    auto& candidate = result.events[i];
    const std::string& key = candidate.event.key;
    if (!key.empty() && std::ranges::find(rejected_keys, key) != rejected_keys.end()) continue;
    auto rejected = load_or_reject(state, candidate, result.now);
    if (!rejected) {
      deliverable.push_back(std::move(candidate));
      continue;
    }
    if (!key.empty()) {
      rejected_keys.push_back(key);
      if (!deliverable.empty() && deliverable.back().event.key == key) {
        // Earlier events of its run are not settled yet. It comes again as the first of its key.
        result.left_out.emplace_back(candidate.event.id, key);
        continue;
      }
    }
    auto settlement = settlement_for(candidate, rejected->action);
    settlement.policy = policy;
    settlement.counts = rejected->counts;
    settlement.delay = payload_retry_delay;
    if (rejected->counts) settlement.delay *= 1U << std::min(candidate.attempts, most_doublings);
    settlement.error = std::move(rejected->reason);
    settlements.push_back(std::move(settlement));
    const bool key_continues =
        rejected->action == settlement::kind::park && policy == park_policy::skip;
    const bool has_next =
        !key.empty() && i + 1 < result.events.size() && result.events[i + 1].event.key == key;
    // The lease still covers the rest of the run. Releasing its first event makes it due at once.
    if (key_continues && has_next)
      settlements.push_back(settlement_for(result.events[i + 1], settlement::kind::release));
  }
  result.events = std::move(deliverable);
  return settlements;
}

/// Parks those behind events that were parked with park_policy::park.
void park_followers(const outbox_state& state, std::size_t lane,
                    const std::vector<std::string>& keys) {
  try {
    for (const auto& key : keys) {
      while (state.backend().park_followers(lane, key, detail::outbox::max_events_per_call) > 0) {
      }
    }
  } catch (const error& problem) {
    // The settlements themselves are done. The next claim continues with the followers.
    state.log.write_limited("outbox.park", log_level::warning,
                            "events behind a parked event are parked later",
                            {{"why", problem.what()}});
  }
}

void count_settlement(const outbox_state& state, settlement::kind action, bool done) {
  if (!done) return state.stale->add();
  switch (action) {
    case settlement::kind::ack:
      return state.acked->add();
    case settlement::kind::retry:
      return state.retried->add();
    case settlement::kind::park:
      return state.parked->add();
    case settlement::kind::release:
      return;
  }
}

claimed screen_claim(const outbox_state& state, claimed result);

settled settle_events(const outbox_state& state, std::size_t lane, fence token,
                      std::vector<settlement> settlements, const std::optional<run_request>& next) {
  detail::outbox::check_batch_size("the number of settlements", settlements.size());
  for (auto& settlement : settlements) {
    check_duration("delay of a retry", settlement.delay, milliseconds(0));
    settlement.error = storable_error(settlement.error);
  }
  auto result =
      state.backend().settle(lane, token, settlements, next, state.terms(durability::memory()));
  park_followers(state, lane, result.keys_to_park);
  for (std::size_t i = 0; i < settlements.size(); ++i)
    count_settlement(state, settlements[i].action, result.done.at(i));
  if (next) {
    result.next.lane = lane;
    result.next = screen_claim(state, std::move(result.next));
  }
  return result;
}

/// Counts the events of a claim, and settles those that must not be delivered.
claimed screen_claim(const outbox_state& state, claimed result) {
  state.claimed->add(result.events.size());
  auto settlements = reject_undeliverable(state, result);
  if (settlements.empty()) return result;
  try {
    const auto done =
        settle_events(state, result.lane, result.fence, settlements, std::nullopt).done;
    for (std::size_t i = 0; i < settlements.size(); ++i) {
      auto& settlement = settlements[i];
      if (done[i] && settlement.action == settlement::kind::park)
        result.parked.emplace_back(std::move(settlement.id), std::move(settlement.error));
    }
  } catch (const error& problem) {
    // The other events are delivered nevertheless.
    state.log.write_limited(
        "outbox.reject", log_level::warning,
        "events could not be parked; they are claimed again when their leases end",
        {{"events", std::to_string(settlements.size())}, {"why", problem.what()}});
  }
  if (result.events.empty()) {
    result.status = claim_status::empty;
    result.next = milliseconds(0);
  }
  return result;
}

void check_lock(const outbox_state& state, std::size_t lane, std::string_view owner) {
  state.check_lane(lane);
  detail::outbox::check_name("owner of a lock", owner, false);
  if (owner.find('|') != std::string_view::npos)
    throw error(errc::invalid_argument, "the owner of a lock has a '|' in its name; remove it");
}

}  // namespace

claimed outbox::claim(const claim_request& request) const {
  state_->check_lane(request.lane);
  detail::outbox::check_batch_size("claim_request::most", request.most);
  detail::outbox::check_batch_size("claim_request::run", request.run);
  check_duration("lease", request.lease, milliseconds(1));
  return screen_claim(*state_, state_->backend().claim(request));
}

std::vector<bool> outbox::extend(fence token, std::span<const claimed_event> events,
                                 milliseconds lease) const {
  if (events.empty()) return {};
  detail::outbox::check_batch_size("the number of events to extend", events.size());
  check_duration("lease", lease, milliseconds(1));
  const auto lane = events.front().lane;
  std::vector<settlement> references;
  references.reserve(events.size());
  for (const auto& event : events) {
    if (event.lane != lane)
      throw error(errc::invalid_argument,
                  "the events to extend are in different lanes: extend each lane by itself");
    references.push_back(settlement_for(event));
  }
  return state_->backend().extend(lane, token, references, lease);
}

settled outbox::settle(std::size_t lane, fence token, std::vector<settlement> settlements,
                       const std::optional<run_request>& next) const {
  state_->check_lane(lane);
  if (settlements.empty()) return {};
  if (next) {
    detail::outbox::check_batch_size("run_request::run", next->run);
    check_duration("lease", next->lease, milliseconds(1));
  }
  return settle_events(*state_, lane, token, std::move(settlements), next);
}

bool outbox::ack(fence token, const claimed_event& event) const {
  const bool done = settle(event.lane, token, {settlement_for(event)}).done.front();
  if (done) drop_payload(event.event);
  return done;
}

bool outbox::fail(fence token, const claimed_event& event, milliseconds delay,
                  std::string_view reason) const {
  auto failed = settlement_for(event, settlement::kind::retry);
  failed.delay = delay;
  failed.error = reason;
  return settle(event.lane, token, {std::move(failed)}).done.front();
}

bool outbox::park(fence token, const claimed_event& event, park_policy policy,
                  std::string_view reason) const {
  auto parked = settlement_for(event, settlement::kind::park);
  parked.policy = policy;
  parked.error = reason;
  return settle(event.lane, token, {std::move(parked)}).done.front();
}

void outbox::drop_payload(const event& event) const noexcept { state_->drop_payload(event); }

lock_grant outbox::lock(std::size_t lane, std::string_view owner, milliseconds ttl) const {
  check_lock(*state_, lane, owner);
  check_duration("time to live of a lock", ttl, milliseconds(1));
  return state_->backend().lock(lane, owner, ttl);
}

lock_grant outbox::renew(std::size_t lane, std::string_view owner, milliseconds ttl) const {
  check_lock(*state_, lane, owner);
  check_duration("time to live of a lock", ttl, milliseconds(1));
  return state_->backend().renew(lane, owner, ttl);
}

bool outbox::unlock(std::size_t lane, std::string_view owner) const {
  check_lock(*state_, lane, owner);
  return state_->backend().unlock(lane, owner);
}

bool outbox::wait(std::size_t lane, milliseconds longest) const {
  state_->check_lane(lane);
  return state_->backend().wait(lane, detail::limit_duration(std::max(longest, milliseconds(0))));
}

void outbox::wake(std::size_t lane) const {
  state_->check_lane(lane);
  state_->shared_backend->wake(lane);
}

}  // namespace HOLDFAST_NAMESPACE
