#include "outbox/recurring/calendar.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::outbox {
namespace {

using std::chrono::seconds;
using std::chrono::sys_seconds;

/// Local time, in the type that `cron` understands.
sys_seconds local_time(sys_seconds time, seconds offset) { return time + offset; }

/// More due times in one search than this are found by halving the search.
constexpr std::size_t search_surplus = 1000;

std::size_t count_fields(std::string_view expression) {
  std::size_t fields = 0;
  bool inside = false;
  for (const char c : expression) {
    const bool blank = c == ' ' || c == '\t';
    if (!blank && !inside) ++fields;
    inside = !blank;
  }
  return fields;
}

cron parse_expression(std::string_view expression) {
  if (count_fields(expression) == 5) return cron::parse("0 " + std::string(expression));
  return cron::parse(expression);
}

}  // namespace

calendar::calendar(std::string_view expression, time_zone zone)
    : expression_(parse_expression(expression)), zone_(std::move(zone)) {}

std::optional<sys_seconds> calendar::next(sys_seconds after) const {
  return expression_.matches_every_hour() ? next_elapsed(after) : next_local(after);
}

std::optional<sys_seconds> calendar::next_elapsed(sys_seconds after) const {
  // From one change of the offset to the next, local time is elapsed time.
  for (sys_seconds start = after;;) {
    const auto offset = zone_.offset_at(start + seconds(1));
    const auto local = expression_.next(local_time(start, offset));
    if (!local) return std::nullopt;
    const auto due = *local - offset;
    const auto change = zone_.next_transition(start + seconds(1));
    if (!change || due < change->begin) return due;
    start = change->begin - seconds(1);
  }
}

std::optional<sys_seconds> calendar::next_local(sys_seconds after) const {
  auto local = expression_.next(local_time(after, zone_.offset_at(after)));
  // In the second pass of a repeated hour, times of the first pass come first.
  while (local && moment_of(*local) <= after) local = expression_.next(*local);
  if (!local) return std::nullopt;
  return moment_of(*local);
}

sys_seconds calendar::moment_of(sys_seconds local) const {
  // No offset is more than 26 hours. The first offset at which it is this time, or later.
  constexpr auto widest_offset = std::chrono::hours(27);
  auto begin = local - widest_offset;
  for (;;) {
    const auto moment = local - zone_.offset_at(begin);
    const auto change = zone_.next_transition(begin);
    if (!change || moment < change->begin) return std::max(moment, begin);
    begin = change->begin;
  }
}

std::vector<sys_seconds> calendar::earliest(sys_seconds after, sys_seconds until,
                                            std::size_t most) const {
  std::vector<sys_seconds> times;
  while (times.size() < most) {
    const auto time = next(times.empty() ? after : times.back());
    if (!time || *time > until) break;
    times.push_back(*time);
  }
  return times;
}

std::vector<sys_seconds> calendar::latest(sys_seconds after, sys_seconds until,
                                          std::size_t most) const {
  const std::size_t limit = most + search_surplus;
  auto times = earliest(after, until, limit + 1);
  // There are too many after `low`, and too few after `high`.
  for (auto low = after, high = until; times.size() > limit;) {
    const auto middle = low + (high - low) / 2;
    if (middle == low) break;
    auto candidates = earliest(middle, until, limit + 1);
    if (candidates.size() < most) {
      high = middle;
    } else {
      low = middle;
      times = std::move(candidates);
    }
  }
  if (times.size() > most)
    times.erase(times.begin(), times.end() - static_cast<std::ptrdiff_t>(most));
  return times;
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
