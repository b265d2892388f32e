#include "outbox/recurring/plan.hpp"

#include <algorithm>

namespace HOLDFAST_NAMESPACE::detail::outbox {
namespace {

using std::chrono::seconds;
using std::chrono::sys_seconds;

/// Due times without an event are counted up to this number.
constexpr std::size_t most_counted = 1000;

/// Due times that are not older than the tolerance are not missed.
sys_seconds end_of_missed(const recurrence_definition& definition, sys_seconds now) {
  return now - std::chrono::ceil<seconds>(definition.options.tolerance) - seconds(1);
}

/// The due times after `after` until `now` that the policies select, in ascending order: all of
/// them, or the first `most`.
std::vector<sys_seconds> select_due_times(const recurrence_definition& definition,
                                          const calendar& calendar, sys_seconds after,
                                          sys_seconds now, bool last_is_undelivered,
                                          std::size_t most) {
  const auto& options = definition.options;
  const auto recent_after = std::max(after, end_of_missed(definition, now));
  if (options.overlap == overlap_policy::skip) {
    if (last_is_undelivered) return {};
    // The first event would be undelivered when the others become due.
    const bool missed_count = options.catch_up != catch_up_policy::none;
    return calendar.latest(missed_count ? after : recent_after, now, 1);
  }
  switch (options.catch_up) {
    case catch_up_policy::none:
      return calendar.earliest(recent_after, now, most);
    case catch_up_policy::last: {
      auto recent = calendar.earliest(recent_after, now, most);
      return recent.empty() ? calendar.latest(after, now, 1) : recent;
    }
    case catch_up_policy::all: {
      // Due times that are not missed are published beyond the limit.
      auto all = calendar.latest(after, now, options.catch_up_limit);
      auto recent = calendar.earliest(recent_after, now, most);
      if (!recent.empty() && !all.empty() && recent.front() < all.front()) return recent;
      return all;
    }
  }
  return {};
}

}  // namespace

sys_seconds review_time(const recurrence_progress& progress, sys_seconds now) {
  const auto latest = now + review_interval;
  return progress.next ? std::min(*progress.next, latest) : latest;
}

recurrence_progress restart_progress(const recurrence_progress& before, sys_seconds now) {
  auto progress = before;
  const bool clock_was_ahead = before.after > now + clock_horizon;
  progress.after = clock_was_ahead ? now : std::max(before.after, now);
  return progress;
}

recurrence_plan plan_recurrence(const recurrence_record& record, const calendar& calendar,
                                sys_seconds now, bool last_is_undelivered, std::size_t most) {
  recurrence_plan plan{.progress = record.progress};
  auto& progress = plan.progress;
  if (progress.after > now + clock_horizon) {
    plan.clock_was_ahead = true;
    progress.after = now;
  }
  progress.next = calendar.next(progress.after);
  plan.review = review_time(progress, now);
  if (!progress.next || *progress.next > now) return plan;

  const auto after = progress.after;
  plan.due_times =
      select_due_times(record.definition, calendar, after, now, last_is_undelivered, most);
  const bool is_cut = plan.due_times.size() >= most;
  if (plan.due_times.size() > most) plan.due_times.resize(most);
  // After a part, the next step continues behind its last due time.
  progress.after = is_cut ? plan.due_times.back() : now;
  const auto passed = calendar.earliest(after, progress.after, most_counted + most).size();
  progress.skipped += passed - std::min(passed, plan.due_times.size());
  progress.published += plan.due_times.size();
  if (!plan.due_times.empty()) progress.last = plan.due_times.back();
  progress.next = calendar.next(progress.after);
  plan.review = review_time(progress, now);
  return plan;
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
