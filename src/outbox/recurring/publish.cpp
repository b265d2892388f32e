#include "outbox/recurring/publish.hpp"

#include <holdfast/error.hpp>

#include "outbox/checks.hpp"
#include "outbox/recurring/plan.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::outbox {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::sys_seconds;

/// When a recurring event that cannot be understood is tried again: the time zone may be installed,
/// or a newer program may read it.
constexpr seconds problem_delay{60};
/// When one is tried again whose key a transaction has locked.
constexpr milliseconds busy_delay{100};
constexpr std::size_t most_events_per_step = 100;

/// How many copies of the event one step may publish.
std::size_t events_per_step(const event& event) {
  std::size_t bytes = event.payload.size() + event.key.size() + 1024;
  for (const auto& [name, value] : event.headers) bytes += name.size() + value.size();
  return std::clamp<std::size_t>(max_bytes_per_call / bytes, 1, most_events_per_step);
}

class recurring_publisher {
 public:
  recurring_publisher(const outbox_state& state, std::size_t lane, sys_seconds now)
      : state_(state), lane_(lane), now_(now) {}

  /// Returns how many events were published.
  std::size_t run(const stored_recurrence& stored) {
    recurrence_record record;
    std::optional<calendar> times;
    try {
      record = read_recurrence(stored.text);
      times.emplace(record.definition.cron, time_zone::load(record.definition.options.zone));
    } catch (const error& problem) {
      postpone(stored, problem);
      return 0;
    }
    return publish(stored, std::move(record), *times);
  }
  /// A transaction publishes for the key of one of them.
  [[nodiscard]] bool busy() const noexcept { return busy_; }

 private:
  std::size_t publish(const stored_recurrence& stored, recurrence_record record,
                      const calendar& times) {
    const auto plan = plan_recurrence(record, times, now_, last_is_undelivered(record),
                                      events_per_step(record.definition.event));
    if (plan.clock_was_ahead) {
      state_.log.write_limited(
          "outbox-recurring-clock", log_level::warning,
          "the clock of the store was set back by more than a day: due times of a recurring event "
          "are repeated",
          {{"name", stored.name}});
    }
    recurrence_update update{.name = stored.name, .expected = stored.text};
    for (const auto due : plan.due_times)
      update.events.push_back(event_of(stored.name, record.definition.event, due));
    record.progress = plan.progress;
    record.progress.step = new_event_id();
    if (!update.events.empty()) record.progress.last_id = update.events.back().id;
    update.replacement =
        stored_recurrence{.name = stored.name, .due = plan.review, .text = recurrence_text(record)};
    return apply(update) ? update.events.size() : 0;
  }

  void postpone(const stored_recurrence& stored, const error& problem) {
    state_.log.write_limited("outbox-recurring", log_level::warning,
                             "a recurring event cannot be published: define it again, or cancel it",
                             {{"name", stored.name}, {"error", problem.what()}});
    auto later = stored;
    later.due = now_ + problem_delay;
    (void)apply({.name = stored.name, .expected = stored.text, .replacement = std::move(later)});
  }

  /// Returns false if another worker was faster, or has to wait.
  bool apply(const recurrence_update& update) {
    const auto status =
        state_.backend().update_recurrence(lane_, update, state_.terms(durability::memory()));
    busy_ = busy_ || status == update_status::busy;
    return status == update_status::done;
  }

  [[nodiscard]] bool last_is_undelivered(const recurrence_record& record) const {
    if (record.definition.options.overlap != overlap_policy::skip) return false;
    if (record.progress.last_id.empty()) return false;
    const auto last = state_.backend().find(lane_, record.progress.last_id);
    return last && last->state != event_state::parked && last->state != event_state::blocking;
  }

  const outbox_state& state_;
  std::size_t lane_;
  sys_seconds now_;
  bool busy_ = false;
};

}  // namespace

recurring_step publish_recurring(const outbox_state& state, std::size_t lane) {
  const auto page = state.backend().read_recurrences(
      lane, {.selection = recurrence_query::kind::due, .horizon = clock_horizon});
  recurring_step step{.next = page.next};
  if (page.recurrences.empty()) return step;
  recurring_publisher publisher(state, lane, std::chrono::floor<seconds>(page.now));
  for (const auto& stored : page.recurrences) step.published += publisher.run(stored);
  // What was read has a new time. The next call finds it.
  step.next = publisher.busy() && step.published == 0 ? busy_delay : milliseconds(0);
  return step;
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
