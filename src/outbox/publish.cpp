// Publishing of class outbox, by itself and in a transaction of the caller.

#include <holdfast/error.hpp>
#include <holdfast/outbox.hpp>

#include "outbox/checks.hpp"
#include "outbox/state.hpp"

#include <utility>

namespace HOLDFAST_NAMESPACE {

namespace {

using detail::outbox::outbox_state;

std::vector<event> single(event event) {
  std::vector<holdfast::event> events;
  events.push_back(std::move(event));
  return events;
}

/// Prepares the events. Returns for each lane the indexes of its events.
std::vector<std::vector<std::size_t>> prepare_by_lane(const outbox_state& state,
                                                      std::vector<event>& events) {
  state.prepare(events);
  std::vector<std::vector<std::size_t>> indexes(state.lanes());
  for (std::size_t i = 0; i < events.size(); ++i) indexes[state.lane_of(events[i])].push_back(i);
  return indexes;
}

std::vector<event> take_events(std::vector<event>& events, std::span<const std::size_t> indexes) {
  std::vector<event> taken;
  taken.reserve(indexes.size());
  for (const auto i : indexes) taken.push_back(std::move(events[i]));
  return taken;
}

/// Approximate size of an event in a request.
std::size_t request_size(const event& event) {
  std::size_t size = event.payload.size() + event.key.size() + event.type.size() + 256;
  for (const auto& [name, value] : event.headers) size += name.size() + value.size() + 8;
  return size;
}

/// Number of events from the front that one call of the backend gets, limited by number and size:
/// a server works on nothing else meanwhile. An event that is larger than the limit goes alone.
std::size_t part_size(const std::vector<event>& events, std::span<const std::size_t> indexes) {
  std::size_t count = 0;
  std::size_t bytes = 0;
  for (const auto i : indexes) {
    bytes += request_size(events[i]);
    if (count > 0 && (count == detail::outbox::max_events_per_call ||
                      bytes > detail::outbox::max_bytes_per_call))
      break;
    ++count;
  }
  return count;
}

std::vector<receipt> refuse(std::span<const event> events, const error& problem) {
  std::vector<receipt> receipts;
  receipts.reserve(events.size());
  for (const auto& event : events)
    receipts.push_back({.id = event.id, .status = publish_status::refused, .problem = problem});
  return receipts;
}

std::vector<receipt> refuse_after_failure(std::span<const event> events) {
  return refuse(events, {errc::unavailable,
                         "it was not sent, because earlier events may not be kept; publish them "
                         "again, in their order",
                         {.transient = true}});
}

std::vector<receipt> send(const outbox_state& state, std::size_t lane,
                          std::span<const event> events, const publish_terms& terms) {
  outbox_backend* backend = nullptr;
  try {
    backend = &state.backend();
  } catch (const error& problem) {
    return refuse(events, problem);  // the server cannot be reached, or not be used
  }
  return backend->publish(lane, events, terms);
}

std::vector<receipt> publish_joined(const outbox_state& state, join::transaction& transaction,
                                    std::size_t lane, std::span<const event> events) {
  try {
    return state.joining_backend().publish_in(transaction, lane, events, state.terms());
  } catch (...) {
    state.drop_payloads(events);
    throw;
  }
}

void count_receipt(const outbox_state& state, publish_status status) {
  switch (status) {
    case publish_status::added:
      return state.published->add();
    case publish_status::duplicate:
      return state.duplicates->add();
    case publish_status::in_doubt:
      return state.in_doubt->add();
    case publish_status::refused:
      return state.refused->add();
  }
}

}  // namespace

receipt outbox::publish(event event) const {
  return publish(std::move(event), state_->options.safe);
}

receipt outbox::publish(event event, const durability& durability) const {
  auto result = publish_all(single(std::move(event)), durability).front();
  if (result.safe() || !result.problem) return result;
  const auto& problem = *result.problem;
  throw error(problem.code(), problem.message(),
              {.path = result.id,
               .backend_code = problem.backend_code(),
               .transient = problem.transient(),
               .in_doubt = problem.in_doubt()});
}

std::vector<receipt> outbox::publish_all(std::vector<event> events) const {
  return publish_all(std::move(events), state_->options.safe);
}

std::vector<receipt> outbox::publish_all(std::vector<event> events,
                                         const durability& durability) const {
  const auto& state = *state_;
  if (durability != state.options.safe) {
    (void)state.backend();
    state.require(durability);
  }
  const auto indexes_by_lane = prepare_by_lane(state, events);
  const auto terms = state.terms(durability);
  std::vector<receipt> result(events.size());
  for (std::size_t lane = 0; lane < state.lanes(); ++lane) {
    std::span<const std::size_t> indexes = indexes_by_lane[lane];
    bool all_safe = true;
    while (!indexes.empty()) {
      const auto part = indexes.first(part_size(events, indexes));
      indexes = indexes.subspan(part.size());
      const auto part_events = take_events(events, part);
      // If a part is not safe, its publisher repeats it. Events published after it now would be
      // delivered before it.
      auto receipts =
          all_safe ? send(state, lane, part_events, terms) : refuse_after_failure(part_events);
      state.drop_unused_payloads(lane, part_events, receipts);
      for (std::size_t i = 0; i < part.size(); ++i) {
        auto& receipt = receipts.at(i);
        all_safe = all_safe && receipt.safe();
        count_receipt(state, receipt.status);
        result[part[i]] = std::move(receipt);
      }
    }
  }
  return result;
}

receipt outbox::publish(join::transaction& transaction, event event) const {
  return publish_all(transaction, single(std::move(event))).front();
}

std::vector<receipt> outbox::publish_all(join::transaction& transaction,
                                         std::vector<event> events) const {
  const auto& state = *state_;
  (void)state.joining_backend();  // throws before a payload is moved
  const auto indexes_by_lane = prepare_by_lane(state, events);
  std::vector<receipt> result(events.size());
  for (std::size_t lane = 0; lane < state.lanes(); ++lane) {
    const auto& indexes = indexes_by_lane[lane];
    if (indexes.empty()) continue;
    const auto lane_events = take_events(events, indexes);
    auto receipts = publish_joined(state, transaction, lane, lane_events);
    for (std::size_t i = 0; i < receipts.size(); ++i) {
      if (receipts[i].status == publish_status::duplicate) state.drop_payload(lane_events[i]);
      count_receipt(state, receipts[i].status);
      result[indexes[i]] = std::move(receipts[i]);
    }
  }
  return result;
}

}  // namespace HOLDFAST_NAMESPACE
