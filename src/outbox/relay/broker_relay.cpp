#include "outbox/relay/broker_relay.hpp"

#include <holdfast/error.hpp>

#include "base/deadline.hpp"
#include "outbox/relay/cloud_event.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::outbox {

namespace {

/// Limits what a client library buffers for one wave.
constexpr std::size_t most_bytes_of_wave = std::size_t{8} << 20U;

}  // namespace

broker_relay::broker_relay(std::unique_ptr<broker> target, std::string_view destination,
                           const relay::broker_options& options)
    : broker_(std::move(target)),
      destination_(options.destination.empty() ? destination : options.destination),
      options_(options),
      sessions_(*broker_, options.connect_timeout, options.pause) {}

broker_relay::~broker_relay() = default;

outcome broker_relay::publish(const delivery& delivery) {
  const holdfast::delivery* const pointer = &delivery;
  return publish(std::span(&pointer, 1)).front();
}

std::vector<outcome> broker_relay::publish(std::span<const delivery* const> deliveries) {
  publication work{.deliveries = deliveries};
  if (deliveries.empty()) return {};
  work.outcomes.assign(deliveries.size(),
                       outcome::throttled(options_.pause, "not sent: an earlier event failed"));
  work.pending.resize(deliveries.size());
  std::iota(work.pending.begin(), work.pending.end(), std::size_t{0});
  const auto deadline = moment_after(std::chrono::steady_clock::now(), options_.timeout);
  const auto& lost = deliveries.front()->lost();
  try {
    auto session = sessions_.acquire(lost);
    bool usable = true;
    while (usable && !work.pending.empty() && !lost.stop_requested()) {
      const auto next = next_wave(work);
      if (next.messages.empty()) continue;
      std::vector<confirmation> confirmations(next.messages.size());
      session->publish(next.messages, confirmations, deadline);
      usable = record(work, next, confirmations, *session);
    }
    if (usable) sessions_.release(std::move(session));
  } catch (const error& problem) {
    for (const auto i : work.pending)
      work.outcomes[i] = outcome::throttled(options_.pause, problem.message());
  }
  return work.outcomes;
}

broker_message broker_relay::message_of(const delivery& delivery) const {
  const auto& event = delivery.event();
  const auto format = broker_->format();
  broker_message message{.event = &event,
                         .created_at = std::chrono::floor<std::chrono::milliseconds>(
                             delivery.claimed().created_at.time_since_epoch()),
                         .destination = destination_.expand(event)};
  for (auto& [name, value] : cloud_event_attributes(delivery, options_.source))
    message.headers.emplace_back(std::string(format.attribute_prefix).append(name),
                                 format.percent_encoded ? percent_encoded(value) : value);
  if (!format.content_type.empty() && !event.content_type.empty())
    message.headers.emplace_back(format.content_type, event.content_type);
  for (const auto& [name, value] : headers_to_pass(event, options_.credentials)) {
    if (!broker_->is_reserved_header(normalized_name(name)))
      message.headers.emplace_back(name, value);
  }
  return message;
}

broker_relay::wave broker_relay::next_wave(publication& work) const {
  wave next;
  std::vector<std::size_t> later;
  // Of the last message of each key. Empty: an event of the key must wait for the next wave.
  std::map<std::string_view, std::string> destinations;
  std::size_t bytes = 0;
  for (const auto i : work.pending) {
    const auto& event = work.deliveries[i]->event();
    if (!event.key.empty() && work.failed_keys.contains(event.key)) continue;
    const auto previous = destinations.find(event.key);
    const bool key_is_sent = !event.key.empty() && previous != destinations.end();
    if (bytes >= most_bytes_of_wave || (key_is_sent && !broker_->format().pipelines_keys)) {
      later.push_back(i);
      // A later, shorter event of its key must not overtake it.
      if (!event.key.empty()) destinations.try_emplace(event.key);
      continue;
    }
    auto message = message_of(*work.deliveries[i]);
    // A broker keeps the order only within one destination.
    if (key_is_sent && previous->second != message.destination) {
      previous->second.clear();
      later.push_back(i);
      continue;
    }
    if (auto problem = broker_->problem_of(message); !problem.empty()) {
      work.outcomes[i] = outcome::permanent(std::move(problem));
      // The worker decides what happens to the events after a parked event.
      if (!event.key.empty()) work.failed_keys.insert(event.key);
      continue;
    }
    if (!event.key.empty()) destinations[event.key] = message.destination;
    bytes += event.payload.size();
    next.indices.push_back(i);
    next.messages.push_back(std::move(message));
  }
  work.pending = std::move(later);
  return next;
}

bool broker_relay::record(publication& work, const wave& sent,
                          std::span<const confirmation> confirmations, broker_session& session) {
  const bool disconnected = std::ranges::any_of(confirmations, [](const confirmation& answer) {
    return answer.status == confirmation::kind::disconnected;
  });
  const bool reachable = !disconnected || sessions_.is_reachable();
  for (std::size_t n = 0; n < confirmations.size(); ++n) {
    const auto i = sent.indices[n];
    work.outcomes[i] = outcome_of(confirmations[n], reachable);
    const auto& key = work.deliveries[i]->event().key;
    if (!work.outcomes[i].is_done() && !key.empty()) work.failed_keys.insert(key);
  }
  return session.usable();
}

outcome broker_relay::outcome_of(const confirmation& answer, bool reachable) const {
  const auto reason = broker_->name() + ": " + answer.reason;
  switch (answer.status) {
    case confirmation::kind::confirmed:
      return outcome::done();
    case confirmation::kind::rejected:
      return outcome::permanent(reason);
    case confirmation::kind::refused:
      return outcome::retry(reason);
    case confirmation::kind::disconnected:
      if (reachable) return outcome::ambiguous(reason);
      return outcome::throttled(options_.pause, reason);
    case confirmation::kind::unavailable:
    case confirmation::kind::unanswered:
      break;
  }
  return outcome::throttled(options_.pause, reason);
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
