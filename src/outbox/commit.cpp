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
  if (!request.events.empty()) return state.lane_of(request.events.front());
  if (!request.writes.empty()) return lane_of_data_key(state, request.writes.front().key);
  if (!request.conditions.empty()) return lane_of_data_key(state, request.conditions.front().key);
  return 0;
}

}  // namespace

committed outbox::commit(commit_request request) const {
  const auto& state = *state_;
  for (auto& event : request.events) state.prepare(event);
  const auto lane = lane_of_commit(state, request);
  const auto prefix = state.shared_backend->key_prefix(lane);
  if (prefix.empty()) {
    throw error(errc::unsupported_type,
                "commit is only possible on Redis; on a database, publish in the transaction of "
                "your own data");
  }
  for (const auto& event : request.events) {
    if (!event.key.empty() && lane_of(event.key) != lane) {
      throw error(errc::invalid_argument, "the event of key '" + event.key +
                                              "' is in another lane than the rest of its commit");
    }
  }
  detail::outbox::check_commit(request, prefix);
  return state.backend().commit(lane, request, state.terms());
}

std::string outbox::key_of(std::string_view ordering_key, std::string_view name) const {
  const auto prefix = state_->shared_backend->key_prefix(lane_of(ordering_key));
  if (prefix.empty())
    throw error(errc::unsupported_type, "this outbox does not have keys: it is not on Redis");
  return prefix + ":data:" + std::string(name);
}

}  // namespace HOLDFAST_NAMESPACE
