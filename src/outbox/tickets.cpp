// Tickets of class outbox: events in the future that can be cancelled.

#include <holdfast/error.hpp>
#include <holdfast/outbox.hpp>

#include "outbox/checks.hpp"
#include "outbox/recurring/publish.hpp"
#include "outbox/state.hpp"

#include <algorithm>

namespace HOLDFAST_NAMESPACE {

namespace {

using std::chrono::milliseconds;

/// The year 9970: far enough from the end of all time types.
constexpr auto latest_expiry = std::chrono::hours(24) * 365 * 8000;

scheduled schedule_ticket(const detail::outbox::outbox_state& state, std::string_view ticket,
                          std::optional<timestamp> expires_at, milliseconds delay,
                          const event& becomes) {
  detail::outbox::check_name("ticket", ticket, false);
  detail::outbox::check_event(becomes, state.options);
  if (!becomes.id.empty())
    throw error(errc::invalid_argument,
                "the id of a ticket's event is made from the ticket and its time: leave it empty");
  if (becomes.delay.count() != 0)
    throw error(errc::invalid_argument,
                "the event of a ticket is due when the ticket expires: leave its delay empty");
  if (becomes.payload.size() > state.options.inline_limit) {
    throw error(errc::too_large,
                "the payload of a ticket's event is larger than inline_limit, and tickets cannot "
                "use a claim check");
  }
  const auto lane = state.lane_of(becomes.key.empty() ? ticket : std::string_view(becomes.key));
  return state.backend().schedule(lane, ticket, expires_at, delay, becomes, state.terms());
}

}  // namespace

scheduled outbox::schedule(std::string_view ticket, timestamp expires_at,
                           const event& becomes) const {
  const auto since_epoch = expires_at.time_since_epoch();
  if (since_epoch.count() <= 0 || since_epoch > latest_expiry) {
    throw error(errc::invalid_argument,
                "the expiry of a ticket is not between 1970 and the year 9970");
  }
  return schedule_ticket(*state_, ticket, expires_at, milliseconds(0), becomes);
}

scheduled outbox::schedule(std::string_view ticket, milliseconds after,
                           const event& becomes) const {
  detail::outbox::check_duration("time until a ticket expires", after, milliseconds(0));
  return schedule_ticket(*state_, ticket, std::nullopt, after, becomes);
}

cancel_status outbox::cancel(std::string_view ticket, std::string_view event_key) const {
  detail::outbox::check_name("ticket", ticket, false);
  return state_->backend().cancel(lane_of(event_key.empty() ? ticket : event_key), ticket);
}

drained outbox::drain(std::size_t lane, std::size_t most) const {
  state_->check_lane(lane);
  detail::outbox::check_batch_size("the number of tickets", most);
  auto result = state_->backend().drain(lane, most, state_->terms(durability::memory()));
  state_->fired->add(result.tickets);
  const auto step = detail::outbox::publish_recurring(*state_, lane);
  result.recurring = step.published;
  if (step.next) result.next = std::min(*step.next, result.next.value_or(*step.next));
  return result;
}

}  // namespace HOLDFAST_NAMESPACE
