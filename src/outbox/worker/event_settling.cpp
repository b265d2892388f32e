#include "outbox/worker/event_settling.hpp"

#include <holdfast/error.hpp>

#include "base/backoff.hpp"
#include "outbox/checks.hpp"

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::outbox {

namespace {

using std::chrono::milliseconds;

constexpr unsigned most_settle_attempts = 8;
constexpr milliseconds first_settle_pause{20};
constexpr milliseconds longest_settle_pause{1000};

}  // namespace

milliseconds event_settling::retry_delay(const backoff_options& backoff, std::uint32_t attempts) {
  const auto longest = static_cast<double>(backoff.longest.count());
  const double delay = std::min(longest, static_cast<double>(backoff.first.count()) *
                                             std::pow(backoff.factor, std::min(attempts, 64U)));
  const auto whole = [](double ms) { return milliseconds(static_cast<std::int64_t>(ms)); };
  return std::max(milliseconds(1), random_duration(whole(delay * (1 - backoff.jitter)),
                                                   whole(delay), thread_random()));
}

settlement event_settling::decide(const event_batch& batch, std::size_t index,
                                  const outcome& outcome) {
  const auto& event = batch.events[index];
  settlement result{.id = event.event.id, .key = event.event.key};
  if (outcome.is_done()) return result;
  const auto* const route = routes_.find(event.event.type);
  const auto& options = route != nullptr ? route->options : context_.options.handling;
  result.error = outcome.code() == outcome::kind::ambiguous ? "ambiguous: " + outcome.reason()
                                                            : outcome.reason();
  result.policy = options.parked;
  result.counts = outcome.code() != outcome::kind::throttled;
  const bool too_many_attempts =
      result.counts && options.max_attempts > 0 && event.attempts + 1 >= options.max_attempts;
  const auto age =
      batch.store_time - event.created_at +
      std::chrono::duration_cast<std::chrono::microseconds>(context_.now() - batch.claimed_at);
  const bool too_old = options.max_age.count() > 0 && age > options.max_age;
  if (outcome.code() == outcome::kind::permanent || too_many_attempts || too_old) {
    result.action = settlement::kind::park;
    context_.announce_parking(options, event, result.error);
    return result;
  }
  result.action = settlement::kind::retry;
  // The outbox refuses a delay out of range, and with it all settlements of the batch.
  const auto delay =
      outcome.after() ? *outcome.after() : retry_delay(options.backoff, event.attempts);
  result.delay = std::clamp<milliseconds>(delay, milliseconds(0), longest_time);
  return result;
}

void event_settling::report_parked(const claimed& claim) {
  context_.metrics.parked.add(claim.parked.size());
  for (const auto& [id, reason] : claim.parked) {
    claimed_event event{.event = {.id = id}, .lane = claim.lane};
    const handler_options* options = &context_.options.handling;
    try {
      if (routes_.has_parked_handlers()) {
        if (auto record = context_.outbox.backend()->find(claim.lane, id))
          event = std::move(record->details);
        if (const auto* const route = routes_.find(event.event.type)) options = &route->options;
      }
    } catch (const error& problem) {
      context_.metrics.errors.add();
      context_.set_problem(problem);
    }
    context_.announce_parking(*options, event, reason);
  }
}

void event_settling::settle(event_batch& batch, std::vector<settlement>& settlements,
                            std::size_t settled, bool claim_next_runs, continued_claim& next) {
  const bool has_keys =
      std::ranges::any_of(settlements, [](const settlement& s) { return !s.key.empty(); });
  std::optional<run_request> next_runs;
  if (claim_next_runs && has_keys) {
    next_runs = run_request{.run = context_.run_length(),
                            .lease = context_.continued_lease(),
                            .owner = context_.claim_owner()};
  }
  {
    const std::scoped_lock lock(batch.mutex);
    batch.settling = true;
  }
  const auto claimed_at = context_.now();
  if (!settlements.empty()) {
    if (auto result = send(batch, settlements, next_runs)) {
      record(batch, settlements, result->done);
      report_parked(result->next);
      if (result->next.status == claim_status::fenced)
        locks_.lose(batch.lane, "another worker holds it");
      next = {.claim = std::move(result->next),
              .claimed_at = claimed_at,
              .lease = context_.continued_lease()};
    }
  }
  const std::scoped_lock lock(batch.mutex);
  batch.settled = settled;
  batch.settling = false;
  settlements.clear();
}

std::optional<settled> event_settling::send(const event_batch& batch,
                                            const std::vector<settlement>& settlements,
                                            const std::optional<run_request>& next_runs) {
  // Released events become due again without help, when their leases end.
  const bool only_released = std::ranges::all_of(
      settlements, [](const settlement& s) { return s.action == settlement::kind::release; });
  const unsigned most_attempts = only_released ? 1 : most_settle_attempts;
  for (unsigned attempt = 1;; ++attempt) {
    try {
      return context_.outbox.settle(batch.lane, batch.token, settlements, next_runs);
    } catch (const error& problem) {
      context_.metrics.errors.add();
      const bool retry = (problem.transient() || problem.in_doubt()) && attempt < most_attempts;
      if (!retry) {
        if (problem.in_doubt()) context_.metrics.in_doubt.add(settlements.size());
        context_.log.write_limited(
            "outbox.settle", log_level::warning,
            "outcomes could not be sent to the outbox; their events may be delivered again",
            {{"why", problem.what()}});
        context_.set_problem(problem);
        return std::nullopt;
      }
    }
    // Repeating is safe: what is settled already is refused as stale.
    std::this_thread::sleep_for(
        doubled_pause(first_settle_pause, attempt - 1, longest_settle_pause));
  }
}

void event_settling::record(const event_batch& batch, const std::vector<settlement>& settlements,
                            const std::vector<bool>& done) {
  auto& metrics = context_.metrics;
  std::uint64_t acknowledged = 0;
  std::uint64_t stale = 0;
  auto search_from = batch.events.begin();  // settlements are in the order of their events
  for (std::size_t i = 0; i < settlements.size(); ++i) {
    const auto& settlement = settlements[i];
    const auto event = std::find_if(
        search_from, batch.events.end(),
        [&](const claimed_event& candidate) { return candidate.event.id == settlement.id; });
    if (event != batch.events.end()) search_from = event;
    if (!done[i]) {
      ++stale;
      continue;
    }
    switch (settlement.action) {
      case settlement::kind::ack:
        ++acknowledged;
        if (event != batch.events.end()) context_.outbox.drop_payload(event->event);
        break;
      case settlement::kind::retry:
        (settlement.counts ? metrics.retried : metrics.throttled).add();
        break;
      case settlement::kind::park:
        metrics.parked.add();
        break;
      case settlement::kind::release:
        metrics.released.add();
        break;
    }
  }
  metrics.done.add(acknowledged);
  metrics.fenced.add(stale);
  if (stale == 0) return;
  context_.log.write_limited(
      "outbox.stale", log_level::warning,
      "outcomes were refused as too late: the leases of their events were lost",
      {{"events", std::to_string(stale)}, {"lane", std::to_string(batch.lane)}});
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
