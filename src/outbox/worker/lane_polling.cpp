#include "outbox/worker/lane_polling.hpp"

#include <algorithm>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::outbox {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds shortest_poll_wait{1};
constexpr std::size_t tickets_per_drain = 100;

}  // namespace

lane_polling::lane_polling(worker_context& context, lane_locks& locks, event_leases& leases,
                           event_handling& handling, event_settling& settling)
    : context_(context),
      locks_(locks),
      leases_(leases),
      handling_(handling),
      settling_(settling),
      lanes_(context.outbox.lanes()) {}

void lane_polling::set_signalled(std::size_t lane) {
  const std::scoped_lock lock(context_.mutex);
  lanes_[lane].signalled = true;
}

bool lane_polling::take_signal(std::size_t lane) {
  const std::scoped_lock lock(context_.mutex);
  if (!std::exchange(lanes_[lane].signalled, false)) return false;
  lanes_[lane].drain_at = steady_time::min();
  return true;
}

milliseconds lane_polling::drain_tickets(std::size_t lane) {
  const auto idle = context_.options.idle;
  if (!context_.options.drain_tickets) return idle;
  const auto now = context_.now();
  {
    const std::scoped_lock lock(context_.mutex);
    if (now < lanes_[lane].drain_at)
      return std::chrono::ceil<milliseconds>(lanes_[lane].drain_at - now);
  }
  const auto result = context_.outbox.drain(lane, tickets_per_drain);
  context_.metrics.tickets.add(result.tickets);
  const auto next = result.tickets == tickets_per_drain
                        ? milliseconds(0)
                        : std::min(result.next.value_or(idle), idle);
  const std::scoped_lock lock(context_.mutex);
  lanes_[lane].drain_at = now + next;
  lanes_[lane].ticket_held_up = result.held_up;
  return result.tickets > 0 ? milliseconds(0) : next;
}

poll_result lane_polling::poll_lane(std::size_t lane, bool keep_first) {
  const auto& options = context_.options;
  if (const auto wait = locks_.acquire(lane))
    return {.status = poll_status::locked_out, .wait = *wait};
  // A signal is a new event most of the time, which need not wait for the tickets.
  const bool signalled = take_signal(lane);
  milliseconds next_ticket = signalled ? options.idle : drain_tickets(lane);
  const std::size_t in_flight = leases_.in_flight();
  const std::size_t active = leases_.active();
  const std::size_t limit = context_.sizing.in_flight_limit();
  if (active * 2 > limit) return {.status = poll_status::no_room, .wait = options.idle};

  const auto claimed_at = context_.now();
  auto claim = context_.outbox.claim({.lane = lane,
                                      .most = std::min(limit - active, options.batch),
                                      .run = context_.run_length(),
                                      .lease = options.lease,
                                      .owner = context_.claim_owner()});
  context_.clear_problem();
  settling_.report_parked(claim);
  if (signalled && claim.status == claim_status::empty) next_ticket = drain_tickets(lane);
  switch (claim.status) {
    case claim_status::fenced:
      locks_.lose(lane, "another worker holds it");
      return {.status = poll_status::locked_out, .wait = lane_locks::shortest_wait};
    case claim_status::paused:
      return {.status = poll_status::paused, .wait = options.idle, .quiet = in_flight == 0};
    case claim_status::empty: {
      const auto next_event = std::min(claim.next.value_or(options.idle), options.idle);
      const std::scoped_lock lock(context_.mutex);
      const bool tickets_due = next_ticket.count() == 0 || lanes_[lane].ticket_held_up;
      // If something is due nevertheless, the claim parked all its events. There may be more.
      const bool events_due = claim.next && claim.next->count() <= 0;
      return {.status = poll_status::nothing,
              .wait = std::max(std::min(next_event, next_ticket), shortest_poll_wait),
              .quiet = in_flight == 0 && !events_due && !tickets_due};
    }
    case claim_status::some:
      break;
  }
  context_.metrics.claims.add();
  const auto batches = leases_.add(std::move(claim), lane, claimed_at, options.lease);
  handling_.post(batches, keep_first ? 1 : 0);
  return {.status = poll_status::events, .first_batch = keep_first ? batches.front() : nullptr};
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
