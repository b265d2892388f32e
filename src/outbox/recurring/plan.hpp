#pragma once

/// \file
/// Decides for which due times of a recurring event something is published. Asks no store and no
/// clock, so that every worker decides the same.

#include <holdfast/outbox/recurring.hpp>
#include <holdfast/version.hpp>

#include "outbox/recurring/calendar.hpp"
#include "outbox/recurring/definition.hpp"

#include <chrono>
#include <cstddef>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::outbox {

/// A worker reads each recurring event at least once in this time: the time zone data may have
/// changed.
inline constexpr std::chrono::hours review_interval{24};
/// One that is to be read later than this from now was written while the clock was ahead.
inline constexpr std::chrono::hours clock_horizon = review_interval + std::chrono::hours(1);

/// What one step does.
struct recurrence_plan {
  /// To be published, in this order.
  std::vector<std::chrono::sys_seconds> due_times{};
  /// After the step; without the ids of the events.
  recurrence_progress progress{};
  /// When the recurring event is to be read again.
  std::chrono::sys_seconds review{};
  /// The clock of the store was set back by more than a day: due times repeat.
  bool clock_was_ahead = false;
};

/// `last_is_undelivered`: the outbox has the last event of this recurring event. Publishes at most
/// `most` events; if more are due, `review` has come already.
[[nodiscard]] HOLDFAST_API recurrence_plan plan_recurrence(const recurrence_record& record,
                                                           const calendar& calendar,
                                                           std::chrono::sys_seconds now,
                                                           bool last_is_undelivered,
                                                           std::size_t most);

/// The progress of a definition that is new, or whose due times have changed: nothing before `now`
/// is due, and no due time comes twice.
[[nodiscard]] HOLDFAST_API recurrence_progress restart_progress(const recurrence_progress& before,
                                                                std::chrono::sys_seconds now);

/// When to read it again, if nothing is due.
[[nodiscard]] HOLDFAST_API std::chrono::sys_seconds review_time(const recurrence_progress& progress,
                                                                std::chrono::sys_seconds now);

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
