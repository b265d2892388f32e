#include <holdfast/error.hpp>
#include <holdfast/outbox/admin.hpp>

#include "outbox/checks.hpp"
#include "outbox/state.hpp"

#include <algorithm>
#include <charconv>
#include <vector>

namespace HOLDFAST_NAMESPACE {

namespace {

/// Calls `operation(lane, part)` in every lane with parts of the ids, since the lane of a parked
/// event is not known. Returns how many results are true.
template <class Operation>
std::size_t count_successes(const detail::outbox::outbox_state& state,
                            std::span<const std::string> ids, Operation operation) {
  constexpr auto limit = detail::outbox::max_events_per_call;
  std::size_t count = 0;
  for (std::size_t begin = 0; begin < ids.size(); begin += limit) {
    const auto part = ids.subspan(begin, std::min(limit, ids.size() - begin));
    for (const auto& id : part) detail::outbox::check_id(id);
    for (std::size_t lane = 0; lane < state.lanes(); ++lane) {
      const std::vector<bool> results = operation(lane, part);
      count += static_cast<std::size_t>(std::count(results.begin(), results.end(), true));
    }
  }
  return count;
}

/// Says in one sentence why this event is not delivered yet.
std::string explain_state(const outbox_record& record, bool paused) {
  const auto& details = record.details;
  switch (record.state) {
    case event_state::due:
      if (paused) return "the outbox is paused: resume it";
      return "it is due, and the next claim of a worker delivers it; if that does not happen, no "
             "worker runs, or none holds the lock of lane " +
             std::to_string(details.lane);
    case event_state::waiting:
      if (details.attempts == 0) return "its delay has not passed";
      return "it failed " + std::to_string(details.attempts) +
             " times and waits for its next attempt";
    case event_state::claimed:
      return "a worker has claimed it (claim number " + std::to_string(details.deliveries) +
             ") and its lease has not ended";
    case event_state::following:
      return "it waits behind event " + record.behind + " of the same key '" + details.event.key +
             "'";
    case event_state::parked:
      return "it is parked: replay or discard it";
    case event_state::blocking:
      return "it is parked, and its key '" + details.event.key +
             "' waits for it: replay or discard it";
    case event_state::stuck:
      return "the event " + details.event.id + " is the first of its key '" + details.event.key +
             "', but no claim finds it: repair the outbox with holdfast outbox fsck --repair";
  }
  return "its state is unknown";
}

/// Where a scan continues: `after` of a page is `<lane>:<position of the backend>`.
struct scan_position {
  std::size_t lane = 0;
  std::string_view inside_lane{};
};

scan_position parse_scan_position(std::string_view after) {
  if (after.empty()) return {};
  scan_position position;
  const auto colon = after.find(':');
  const auto digits = after.substr(0, colon);
  const auto* const digits_end = digits.data() + digits.size();
  const auto [end, code] =
      std::from_chars(digits.data(), digits.data() + digits.size(), position.lane);
  if (colon == std::string_view::npos || code != std::errc{} || end != digits_end) {
    throw error(errc::invalid_argument, "'" + std::string(after.substr(0, 64)) +
                                            "' is not the `after` of a page: pass it unchanged");
  }
  position.inside_lane = after.substr(colon + 1);
  return position;
}

}  // namespace

std::size_t outbox_admin::replay(std::span<const std::string> ids) const {
  return count_successes(*state_, ids, [&](std::size_t lane, auto part) {
    return state_->backend().replay(lane, part);
  });
}

std::size_t outbox_admin::discard(std::span<const std::string> ids) const {
  return count_successes(*state_, ids, [&](std::size_t lane, std::span<const std::string> part) {
    // Their payloads may be in the claim check. That is known only before they are discarded.
    std::vector<event> events(part.size());
    for (std::size_t i = 0; state_->options.claim_check && i < part.size(); ++i) {
      if (auto record = state_->backend().find(lane, part[i]))
        events[i] = std::move(record->details.event);
    }
    auto discarded = state_->backend().discard(lane, part);
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (discarded[i]) state_->drop_payload(events[i]);
    }
    return discarded;
  });
}

void outbox_admin::pause() const {
  for (std::size_t lane = 0; lane < state_->lanes(); ++lane) state_->backend().pause(lane, true);
}

void outbox_admin::resume() const {
  for (std::size_t lane = 0; lane < state_->lanes(); ++lane) state_->backend().pause(lane, false);
}

outbox_stats outbox_admin::stats() const {
  outbox_stats sum;
  for (std::size_t lane = 0; lane < state_->lanes(); ++lane) sum += stats(lane);
  return sum;
}

outbox_stats outbox_admin::stats(std::size_t lane) const {
  state_->check_lane(lane);
  auto result = state_->backend().stats(lane);
  const auto alarm = state_->options.lane_alarm;
  if (alarm != 0 && result.events > alarm) {
    state_->log.write_limited(
        "outbox-lane", log_level::warning,
        "a lane has more events than lane_alarm: add workers, or use more lanes",
        {{"lane", std::to_string(lane)}, {"events", std::to_string(result.events)}});
  }
  return result;
}

std::string outbox_admin::explain(std::string_view id) const {
  const auto record = state_->find(id);
  if (!record) return "there is no such event: it was delivered, discarded, or never published";
  const bool paused = state_->backend().stats(record->details.lane).paused;
  const auto& last_error = record->details.last_error;
  auto reason = explain_state(*record, paused);
  if (record->state == event_state::following) {
    const auto head = state_->find(record->behind);
    if (head && head->state == event_state::stuck) reason += "; " + explain_state(*head, paused);
  }
  return reason + (last_error.empty() ? "" : " (last error: " + last_error + ")");
}

scan_page outbox_admin::scan(scan_what selection, std::string_view after, std::size_t most) const {
  detail::outbox::check_batch_size("the size of a page", most);
  const auto [lane, inside_lane] = parse_scan_position(after);
  state_->check_lane(lane);
  auto page = state_->backend().scan(lane, selection, inside_lane, most);
  if (!page.after.empty()) {
    page.after = std::to_string(lane) + ':' + page.after;
  } else if (lane + 1 < state_->lanes()) {
    page.after = std::to_string(lane + 1) + ':';
  }
  return page;
}

check_report outbox_admin::check(bool repair) const {
  check_report sum;
  for (std::size_t lane = 0; lane < state_->lanes(); ++lane)
    sum += state_->backend().check(lane, repair);
  return sum;
}

std::optional<error> outbox_admin::health() const noexcept {
  try {
    return state_->backend().health();
  } catch (const error& problem) {
    return problem;
  } catch (...) {
    return state_->shared_backend->health();  // out of memory
  }
}

}  // namespace HOLDFAST_NAMESPACE
