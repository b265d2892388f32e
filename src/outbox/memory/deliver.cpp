// Claims and settlements on an outbox in memory.

#include <holdfast/error.hpp>

#include "outbox/checks.hpp"
#include "outbox/memory/backend.hpp"

#include <algorithm>

namespace HOLDFAST_NAMESPACE::detail::outbox {
namespace {

/// Applies the settlements of one call in their order.
class memory_settling {
 public:
  memory_settling(memory_lane& lane, fence token, std::int64_t now, const publish_terms& terms)
      : lane_(lane), token_(token), now_(now), terms_(terms) {}

  void settle(const settlement& settlement, settled& result) {
    auto* claim = lane_.held_claim(settlement.id, settlement.key, token_, false);
    result.done.push_back(claim != nullptr);
    if (claim == nullptr) {
      ++lane_.counters.stale;
      if (repeats_parking(settlement)) result.keys_to_park.push_back(settlement.key);
      return;
    }
    deadline_ = lane_.pending.score(settlement.id).value_or(now_);
    remaining_run_ = claim->run > 0 ? claim->run - 1 : 0;
    if (settlement.action == settlement::kind::ack) {
      acknowledge(settlement);
      return;
    }
    claim->token = 0;
    claim->run = 0;
    if (settlement.action == settlement::kind::release) {
      if (claim->deliveries > 0) --claim->deliveries;
      lane_.pending.put(settlement.id, now_);
      return;
    }
    if (settlement.counts) ++claim->attempts;
    lane_.errors[settlement.id] = settlement.error;
    if (settlement.action == settlement::kind::retry) {
      if (!settlement.counts && claim->deliveries > 0) --claim->deliveries;
      ++lane_.counters.retried;
      lane_.pending.put(settlement.id, now_ + settlement.delay.count());
      return;
    }
    park(settlement, *claim, result);
  }

  [[nodiscard]] bool acknowledged() const noexcept { return acknowledged_; }
  /// Keys that have another event after a run of which every event was acknowledged.
  [[nodiscard]] const std::vector<std::string>& finished_keys() const noexcept {
    return finished_keys_;
  }

 private:
  /// Whether this settlement repeats a parking whose reply was lost, and followers of the event are
  /// not parked yet.
  [[nodiscard]] bool repeats_parking(const settlement& settlement) {
    return settlement.action == settlement::kind::park && settlement.policy == park_policy::park &&
           token_ != 0 && lane_.is_head(settlement.id, settlement.key) &&
           lane_.claims[settlement.id].parked_by == token_;
  }

  void acknowledge(const settlement& settlement) {
    lane_.remove(settlement.id, now_);
    if (terms_.dedup_window.count() > 0) lane_.done.put(settlement.id, now_);
    ++lane_.counters.acked;
    acknowledged_ = true;
    if (settlement.key.empty()) return;
    lane_.promote_follower(settlement.key, remaining_run_, token_, deadline_, now_);
    if (remaining_run_ == 0 && lane_.heads.contains(settlement.key))
      finished_keys_.push_back(settlement.key);
  }

  void park(const settlement& settlement, memory_lane::claim_record& claim, settled& result) {
    ++lane_.counters.parkings;
    lane_.pending.erase(settlement.id);
    lane_.parked.put(settlement.id, now_);
    if (settlement.key.empty() || settlement.policy == park_policy::block) return;
    if (settlement.policy == park_policy::skip || !lane_.followers.contains(settlement.key)) {
      lane_.promote_follower(settlement.key, remaining_run_, token_, deadline_, now_);
      return;
    }
    claim.parked_by = token_;
    lane_.pending.put(settlement.id, now_);
    result.keys_to_park.push_back(settlement.key);
  }

  memory_lane& lane_;
  fence token_;
  std::int64_t now_;
  const publish_terms& terms_;
  std::int64_t deadline_ = 0;      // end of the lease of the current settlement
  std::size_t remaining_run_ = 0;  // events of its run that follow it
  bool acknowledged_ = false;
  std::vector<std::string> finished_keys_{};
};

/// Returns fenced or paused if no event may be claimed.
std::optional<claim_status> claim_refusal(const memory_lane& lane, std::string_view owner,
                                          std::int64_t now) {
  if (!owner.empty() && !lane.holds_lock(owner, now)) return claim_status::fenced;
  if (lane.paused) return claim_status::paused;
  return std::nullopt;
}

/// Whether the budget has room for the event. The first event of a reply always fits.
bool fits(const memory_lane& lane, const std::string& id, const claim_budget& budget,
          const claimed& result) {
  const auto entry = lane.entries.find(id);
  return result.events.empty() || entry == lane.entries.end() ||
         entry->second.bytes <= budget.bytes;
}

}  // namespace

claimed memory_backend::claim(const claim_request& request) {
  const std::scoped_lock guard(mutex_);
  auto& lane = lane_at(request.lane);
  const auto now = now_ms();
  claimed result{.lane = request.lane, .now = timestamp_at(now)};
  if (const auto refusal = claim_refusal(lane, request.owner, now)) {
    result.status = *refusal;
    return result;
  }
  lane.release_from_the_future(now);
  std::vector<std::string> due;
  for (const auto& [score, id] : lane.pending.members()) {
    if (score > now || due.size() == request.most) break;
    due.push_back(id);
  }
  if (!due.empty()) result.fence = lane.next_token(clock_->now());
  const memory_lane::claim_terms terms{
      .token = result.fence, .now = now, .lease = request.lease, .run = request.run};
  claim_budget budget{.events = max_events_per_call, .bytes = request.bytes};
  std::size_t parking_budget = max_events_per_call;
  for (const auto& id : due) {
    if (budget.events == 0) break;
    if (lane.parked.score(id)) {
      // The event is parked, and some of its followers are not. It is due so that they are parked.
      const auto parkings_before = lane.counters.parkings;
      (void)lane.park_followers_of(lane.claims[id].key, parking_budget, now);
      parking_budget -= static_cast<std::size_t>(lane.counters.parkings - parkings_before);
      continue;
    }
    if (!fits(lane, id, budget, result)) break;
    lane.hand_out(id, terms, budget, result);
  }
  result.status = result.events.empty() ? claim_status::empty : claim_status::some;
  result.next = lane.time_until_due(now);
  return result;
}

std::vector<bool> memory_backend::extend(std::size_t lane_number, fence token,
                                         std::span<const settlement> events,
                                         std::chrono::milliseconds lease) {
  const std::scoped_lock guard(mutex_);
  auto& lane = lane_at(lane_number);
  const auto deadline = now_ms() + lease.count();
  std::vector<bool> result;
  for (const auto& event : events) {
    const bool held = lane.held_claim(event.id, event.key, token, true) != nullptr;
    if (held) lane.pending.put(event.key.empty() ? event.id : lane.heads[event.key], deadline);
    result.push_back(held);
  }
  return result;
}

settled memory_backend::settle(std::size_t lane_number, fence token,
                               std::span<const settlement> settlements,
                               const std::optional<run_request>& next, const publish_terms& terms) {
  const std::scoped_lock guard(mutex_);
  auto& lane = lane_at(lane_number);
  const auto now = now_ms();
  const auto first_before = lane.pending.first_score();
  settled result;
  result.next.now = timestamp_at(now);
  memory_settling settling(lane, token, now, terms);
  for (const auto& settlement : settlements) settling.settle(settlement, result);
  if (settling.acknowledged()) lane.trim_done(terms, now);
  if (next) claim_next_runs(lane, *next, settling.finished_keys(), now, result.next);
  wake_if_earlier(lane, first_before);
  return result;
}

void memory_backend::claim_next_runs(memory_lane& lane, const run_request& request,
                                     const std::vector<std::string>& keys, std::int64_t now,
                                     claimed& result) {
  if (const auto refusal = claim_refusal(lane, request.owner, now)) {
    result.status = *refusal;
  } else {
    claim_budget budget{.events = max_events_per_call, .bytes = request.bytes};
    for (const auto& key : keys) {
      const auto head = lane.heads.find(key);
      if (head == lane.heads.end() || budget.events == 0) continue;
      const std::string id = head->second;
      const bool is_ready =
          lane.pending.score(id).value_or(now + 1) <= now && lane.claims[id].token == 0;
      if (!is_ready || !fits(lane, id, budget, result)) continue;
      if (result.fence == 0) result.fence = lane.next_token(clock_->now());
      lane.hand_out(id,
                    {.token = result.fence, .now = now, .lease = request.lease, .run = request.run},
                    budget, result);
    }
    if (!result.events.empty()) result.status = claim_status::some;
  }
  result.next = lane.time_until_due(now);
}

std::size_t memory_backend::park_followers(std::size_t lane, std::string_view key,
                                           std::size_t most) {
  const std::scoped_lock guard(mutex_);
  return lane_at(lane).park_followers_of(std::string(key), most, now_ms());
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
