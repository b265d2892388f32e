#include <holdfast/error.hpp>
#include <holdfast/outbox.hpp>

#include "outbox/checks.hpp"
#include "outbox/outbox_state.hpp"

#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace HOLDFAST_NAMESPACE {

using outboxes::most_in_a_call;

namespace {

std::string sha256_text(std::string_view bytes) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest.data());
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const auto byte : digest) {
    text += digits[byte >> 4U];
    text += digits[byte & 0x0FU];
  }
  return text;
}

std::vector<receipt> unsent(std::span<const event> events) {
  const error why(errc::unavailable, "it was not sent, for events before it may not be kept; publish them again, in their order",
                  {.transient = true});
  std::vector<receipt> made;
  made.reserve(events.size());
  for (const auto& one : events) made.push_back({.id = one.id, .status = publish_status::refused, .problem = why});
  return made;
}

settlement as_settlement(const claimed_event& what) { return {.id = what.event.id, .key = what.event.key}; }

}  // namespace

/// Checks it, gives it an id, and takes a payload that is too big out of it.
void outbox::state::prepare(event& what) const {
  outboxes::check_event(what, options);
  if (what.id.empty()) what.id = new_event_id();
  if (what.payload.size() <= options.inline_limit) return;
  what.payload_sha256 = sha256_text(what.payload);
  what.payload_size = what.payload.size();
  what.payload_ref = options.claim_check->put(what.id, what.payload);
  if (what.payload_ref.empty()) throw error(errc::invalid_argument, "the claim check gave an empty reference");
  what.payload.clear();
}

void outbox::state::fetch(event& what) const {
  if (what.payload_ref.empty()) return;
  if (!options.claim_check) {
    throw error(errc::invalid_argument, "the payload of event " + what.id + " lies elsewhere: give outbox_options::claim_check");
  }
  what.payload = options.claim_check->get(what.payload_ref);
  if (what.payload.size() != what.payload_size || sha256_text(what.payload) != what.payload_sha256) {
    throw error(errc::tampered, "the payload of event " + what.id + " is not the one that was published");
  }
}

outbox::outbox(std::shared_ptr<outbox_backend> backend, outbox_options options, log_sink log, std::shared_ptr<metrics_sink> metrics) {
  if (!backend) throw error(errc::invalid_argument, "the outbox has no backend");
  outboxes::check_options(options);
  if (backend->lanes() != options.lanes) {
    throw error(errc::invalid_argument, "the outbox has " + std::to_string(backend->lanes()) + " lanes, not " +
                                            std::to_string(options.lanes) + ": their number is fixed when it is made");
  }
  backend->require(options.safe);
  auto made = std::make_shared<state>();
  made->backend = std::move(backend);
  made->options = std::move(options);
  made->metrics = isolate(std::move(metrics));
  made->log = std::make_shared<const logger>(std::move(log));
  made->count_metrics();
  state_ = std::move(made);
}

receipt outbox::publish(event what) const { return publish(std::move(what), state_->options.safe); }

receipt outbox::publish(event what, const durability& how) const {
  std::vector<event> one;
  one.push_back(std::move(what));
  auto result = publish_all(std::move(one), how).front();
  if (result.safe() || !result.problem) return result;
  const auto& why = *result.problem;
  throw error(why.code(), why.message(),
              {.path = result.id, .backend_code = why.backend_code(), .transient = why.transient(), .in_doubt = why.in_doubt()});
}

std::vector<receipt> outbox::publish_all(std::vector<event> what) const { return publish_all(std::move(what), state_->options.safe); }

std::vector<receipt> outbox::publish_all(std::vector<event> what, const durability& how) const {
  const auto& own = *state_;
  if (how != own.options.safe) own.backend->require(how);
  for (auto& one : what) own.prepare(one);
  const auto lanes = own.backend->lanes();
  std::vector<std::vector<std::size_t>> places(lanes);
  for (std::size_t i = 0; i < what.size(); ++i) {
    const auto& one = what[i];
    places[outboxes::lane_of(one.key.empty() ? one.id : one.key, lanes)].push_back(i);
  }
  std::vector<receipt> result(what.size());
  const auto terms = own.terms(how);
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    bool all_safe = true;
    for (std::size_t from = 0; from < places[lane].size(); from += most_in_a_call) {
      const auto end = std::min(places[lane].size(), from + most_in_a_call);
      std::vector<event> part;
      part.reserve(end - from);
      for (auto i = from; i < end; ++i) part.push_back(std::move(what[places[lane][i]]));
      // What comes behind a part that is published again would be in front of it.
      auto receipts = all_safe ? own.backend->publish(lane, part, terms) : unsent(part);
      for (auto i = from; i < end; ++i) {
        auto& one = receipts.at(i - from);
        all_safe = all_safe && one.safe();
        switch (one.status) {
          case publish_status::added:
            own.published->add();
            break;
          case publish_status::duplicate:
            own.duplicates->add();
            break;
          case publish_status::in_doubt:
            own.in_doubt->add();
            break;
          case publish_status::refused:
            own.refused->add();
            break;
        }
        result[places[lane][i]] = std::move(one);
      }
    }
  }
  return result;
}

claimed outbox::claim(const claim_request& request) const {
  const auto& own = *state_;
  own.check_lane(request.lane);
  own.check_batch("claim_request::most", request.most);
  own.check_batch("claim_request::run", request.run);
  outboxes::check_duration("lease", request.lease, std::chrono::milliseconds(1));
  auto result = own.backend->claim(request);
  own.handed_out->add(result.events.size());
  return sift(std::move(result));
}

claimed outbox::sift(claimed result) const {
  const auto& own = *state_;
  std::vector<settlement> bad;
  std::vector<std::string> broken_keys;
  std::vector<claimed_event> good;
  for (std::size_t i = 0; i < result.events.size(); ++i) {
    auto& one = result.events[i];
    // Behind one of its run that is parked now: its place depends on the policy, so it comes with a later claim.
    const bool behind = !one.event.key.empty() && std::find(broken_keys.begin(), broken_keys.end(), one.event.key) != broken_keys.end();
    if (behind) continue;
    std::string why;
    auto kind = settlement::kind::park;
    if (one.event.type.empty()) {
      why = one.last_error;  // the backend could not read it
    } else if (one.deliveries > one.attempts + own.options.max_deliveries) {
      why = "handed out " + std::to_string(one.deliveries - one.attempts - 1) + " times without a word from its handler";
    } else if (one.replays == 0 && one.event.time_to_live.count() > 0 && one.created_at + one.event.time_to_live < result.now) {
      why = "too late: its time to live of " + std::to_string(one.event.time_to_live.count()) + " ms is over";
    } else if (const auto problem = outboxes::inline_size_problem(one.event.payload.size(), own.options)) {
      why = *problem;  // written to the store by another program
    } else {
      try {
        own.fetch(one.event);
      } catch (const error& problem) {
        // Where payloads lie may come back; a payload that was changed does not.
        if (problem.code() != errc::tampered) kind = settlement::kind::retry;
        why = problem.what();
      } catch (const std::exception& problem) {
        kind = settlement::kind::retry;
        why = problem.what();
      }
    }
    if (why.empty()) {
      good.push_back(std::move(one));
      continue;
    }
    // In the middle of a run: those before it are not settled yet, so it is not its turn. It will come as the head of its key.
    const bool in_a_run = !good.empty() && !one.event.key.empty() && good.back().event.key == one.event.key;
    if (!one.event.key.empty()) broken_keys.push_back(one.event.key);
    if (in_a_run) {
      result.left_out.emplace_back(one.event.id, one.event.key);
      continue;
    }
    auto item = as_settlement(one);
    item.what = kind;
    item.policy = own.options.poison;
    item.counts = false;
    item.delay = std::chrono::seconds(5);
    item.error = std::move(why);
    bad.push_back(std::move(item));
    if (kind == settlement::kind::park && own.options.poison == park_policy::skip) {
      // The rest of its run is still covered; give it back at once.
      const auto rest = i + 1;
      if (rest < result.events.size() && !one.event.key.empty() && result.events[rest].event.key == one.event.key) {
        auto back = as_settlement(result.events[rest]);
        back.what = settlement::kind::release;
        bad.push_back(std::move(back));
      }
    }
  }
  result.events = std::move(good);
  if (!bad.empty()) {
    const auto lane = result.lane;
    try {
      const auto done = settle(lane, result.fence, bad).done;
      for (std::size_t i = 0; i < bad.size(); ++i) {
        if (done[i] && bad[i].what == settlement::kind::park) result.parked.emplace_back(std::move(bad[i].id), std::move(bad[i].error));
      }
    } catch (const error& problem) {
      // The others are to be delivered all the same. These come again when their leases end.
      own.log->write_limited("outbox.sift", log_level::warning, "events could not be parked; they come again when their leases end",
                             {{"events", std::to_string(bad.size())}, {"why", problem.what()}});
    }
    if (result.events.empty()) {
      result.status = claim_status::empty;
      result.next = std::chrono::milliseconds(0);
    }
  }
  return result;
}

std::vector<bool> outbox::extend(fence token, std::span<const claimed_event> events, std::chrono::milliseconds lease) const {
  const auto& own = *state_;
  if (events.empty()) return {};
  own.check_batch("the number of events to extend", events.size());
  outboxes::check_duration("lease", lease, std::chrono::milliseconds(1));
  std::vector<settlement> items;
  items.reserve(events.size());
  for (const auto& one : events) {
    if (one.lane != events.front().lane) throw error(errc::invalid_argument, "the events to extend are of different lanes");
    items.push_back(as_settlement(one));
  }
  return own.backend->extend(events.front().lane, token, items, lease);
}

settled outbox::settle(std::size_t lane, fence token, std::vector<settlement> what, const std::optional<run_request>& next) const {
  const auto& own = *state_;
  own.check_lane(lane);
  if (what.empty()) return {};
  own.check_batch("the number of settlements", what.size());
  if (next) {
    own.check_batch("run_request::run", next->run);
    outboxes::check_duration("lease", next->lease, std::chrono::milliseconds(1));
  }
  for (auto& one : what) {
    outboxes::check_duration("delay of a retry", one.delay, std::chrono::milliseconds(0));
    one.error = outboxes::kept_error(one.error);
  }
  auto result = own.backend->settle(lane, token, what, next, own.terms(durability::memory()));
  try {
    for (const auto& key : result.more) {
      while (own.backend->park_followers(lane, key, most_in_a_call) > 0) {
      }
    }
  } catch (const error& problem) {
    // What was settled is. Whoever claims next goes on with the parking.
    own.log->write_limited("outbox.park", log_level::warning, "those behind a parked event are parked later", {{"why", problem.what()}});
  }
  for (std::size_t i = 0; i < what.size(); ++i) {
    if (!result.done.at(i)) {
      own.stale->add();
    } else if (what[i].what == settlement::kind::ack) {
      own.acked->add();
    } else if (what[i].what == settlement::kind::retry) {
      own.retried->add();
    } else if (what[i].what == settlement::kind::park) {
      own.parked->add();
    }
  }
  if (next) {
    result.next.lane = lane;
    own.handed_out->add(result.next.events.size());
    result.next = sift(std::move(result.next));
  }
  return result;
}

bool outbox::ack(fence token, const claimed_event& what) const {
  const bool done = settle(what.lane, token, {as_settlement(what)}).done.front();
  if (done) drop_payload(what.event);
  return done;
}

bool outbox::fail(fence token, const claimed_event& what, std::chrono::milliseconds delay, std::string_view why) const {
  auto item = as_settlement(what);
  item.what = settlement::kind::retry;
  item.delay = delay;
  item.error = why;
  return settle(what.lane, token, {std::move(item)}).done.front();
}

bool outbox::park(fence token, const claimed_event& what, park_policy policy, std::string_view why) const {
  auto item = as_settlement(what);
  item.what = settlement::kind::park;
  item.policy = policy;
  item.error = why;
  return settle(what.lane, token, {std::move(item)}).done.front();
}

}  // namespace HOLDFAST_NAMESPACE
