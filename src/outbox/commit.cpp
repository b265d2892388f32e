// Small transactions on Redis: class outbox, commit.

#include <holdfast/error.hpp>
#include <holdfast/outbox.hpp>
#include <holdfast/outbox/commit.hpp>

#include "outbox/checks.hpp"
#include "outbox/state.hpp"

namespace HOLDFAST_NAMESPACE {

namespace {

using detail::outbox::outbox_state;

/// The lane of a commit without events: that of the key it writes or checks first.
std::size_t lane_of_data_key(const outbox_state& state, std::string_view key) {
  std::size_t lane = 0;
  for (std::size_t i = 0; i < state.lanes(); ++i) {
    if (key.starts_with(state.shared_backend->key_prefix(i) + ":data:")) lane = i;
  }
  return lane;
}

std::size_t lane_of_commit(const outbox_state& state, const commit_request& request) {
  if (!request.once.empty())
    return state.lane_of(request.once_key.empty() ? request.once : request.once_key);
  // An event without key and id can be in any lane.
  for (const auto& event : request.events) {
    if (!event.key.empty() || !event.id.empty()) return state.lane_of(event);
  }
  if (!request.writes.empty()) return lane_of_data_key(state, request.writes.front().key);
  if (!request.conditions.empty()) return lane_of_data_key(state, request.conditions.front().key);
  return 0;
}

/// Gives the events of a commit ids that belong to its lane: an id that is published again must
/// meet the first event. Expected are as many tries as there are lanes. Throws if an event belongs
/// to another lane.
void assign_ids_in_lane(const outbox_state& state, std::size_t lane, std::vector<event>& events) {
  for (auto& event : events) {
    detail::outbox::check_event(event, state.options);
    const bool has_id = !event.id.empty();
    if (!has_id) event.id = new_event_id();
    while (!has_id && event.key.empty() && state.lane_of(event.id) != lane)
      event.id = new_event_id();
    if (state.lane_of(event) == lane) continue;
    const std::string subject = event.key.empty() ? "the event " + event.id + " without a key"
                                                  : "the event of key '" + event.key + "'";
    const std::string_view advice = event.key.empty()
                                        ? "leave its id empty, or give it a key of that lane"
                                        : "publish it by itself, or give it a key of that lane";
    throw error(errc::invalid_argument, subject +
                                            " is in another lane than the rest of its commit: " +
                                            std::string(advice) + " (outbox::lane_of)");
  }
}

}  // namespace

committed outbox::commit(commit_request request) const {
  const auto lane = lane_of_commit(*state_, request);
  return commit_in(lane, std::move(request));
}

committed outbox::commit_in(std::size_t lane, commit_request request) const {
  const auto& state = *state_;
  const auto prefix = state.shared_backend->key_prefix(lane);
  if (prefix.empty()) {
    throw error(errc::unsupported_type,
                "commit is only possible on Redis; on a database, publish in the transaction of "
                "your own data");
  }
  assign_ids_in_lane(state, lane, request.events);
  detail::outbox::check_commit(request, prefix);
  state.prepare(request.events);
  try {
    auto result = state.backend().commit(lane, request, state.terms());
    if (result.status != commit_status::done) state.drop_payloads(request.events);
    else state.drop_unused_payloads(lane, request.events, result.receipts);
    return result;
  } catch (const error& problem) {
    if (!problem.in_doubt()) state.drop_payloads(request.events);
    throw;
  }
}

std::string outbox::key_of(std::string_view ordering_key, std::string_view name) const {
  const auto prefix = state_->shared_backend->key_prefix(lane_of(ordering_key));
  if (prefix.empty())
    throw error(errc::unsupported_type, "this outbox does not have keys: it is not on Redis");
  return prefix + ":data:" + std::string(name);
}

std::string outbox::key_of(const claimed_event& event, std::string_view name) const {
  state_->check_lane(event.lane);
  const auto prefix = state_->shared_backend->key_prefix(event.lane);
  if (prefix.empty())
    throw error(errc::unsupported_type, "this outbox does not have keys: it is not on Redis");
  return prefix + ":data:" + std::string(name);
}

}  // namespace HOLDFAST_NAMESPACE
