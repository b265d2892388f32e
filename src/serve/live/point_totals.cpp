#include "serve/live/point_totals.hpp"

#include <algorithm>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

constexpr std::chrono::hours forgotten_after{1};
/// Turns after which a source that reports no more is forgotten.
constexpr std::uint64_t source_turns = 3'600;

/// What was counted since the last report. A smaller number is one of a new start.
std::uint64_t growth(std::uint64_t last, std::uint64_t now) {
  return now < last ? now : now - last;
}

void add_growth(call_counts& total, const call_counts& last, const call_counts& now) {
  total.started += growth(last.started, now.started);
  total.ended += growth(last.ended, now.ended);
  total.stale += growth(last.stale, now.stale);
  total.unserved += growth(last.unserved, now.unserved);
}

double part_of(std::uint64_t part, std::uint64_t all) {
  return all == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(all);
}

/// An open breaker is worse than one that is half open.
int badness(breaker_state state) {
  return state == breaker_state::open ? 2 : state == breaker_state::half_open ? 1 : 0;
}

}  // namespace

call_counts counts_of(const point_numbers& numbers) noexcept {
  return {
      .started = numbers.started,
      .ended = numbers.live + numbers.fresh + numbers.stale + numbers.substituted + numbers.failed,
      .stale = numbers.stale + numbers.substituted,
      .unserved = numbers.failed};
}

void point_totals::add(std::string_view instance, const std::vector<reported_point>& points) {
  for (const auto& reported : points) {
    const std::pair<std::string, std::string> id{instance, reported.name};
    auto source = sources_.find(id);
    auto& point = points_[reported.name];
    if (source == sources_.end()) {
      if (sources_.size() >= max_sources) continue;
      // What it counted before the server looked is not in the rates.
      source = sources_.emplace(id, source_entry{.last = reported.counts}).first;
    }
    add_growth(point.total, source->second.last, reported.counts);
    source->second = {.last = reported.counts, .turn = turn_};
    auto& current = point.current;
    ++current.instances;
    current.running += reported.running;
    if (badness(reported.breaker) > badness(current.breaker)) current.breaker = reported.breaker;
  }
}

std::vector<point_sample> point_totals::finish(std::chrono::steady_clock::time_point now) {
  std::vector<point_sample> samples;
  for (auto it = points_.begin(); it != points_.end();) {
    auto& [name, point] = *it;
    if (point.current.instances > 0 || point.reported == std::chrono::steady_clock::time_point{})
      point.reported = now;
    if (now - point.reported > forgotten_after) {
      it = points_.erase(it);
      continue;
    }
    point.past.push_back({.moment = now, .counts = point.total});
    while (point.past.size() > 2 && now - point.past[1].moment >= window) point.past.pop_front();
    const auto& first = point.past.front();
    auto sample = std::exchange(point.current, {});
    sample.name = name;
    sample.calls = point.total.ended - first.counts.ended;
    sample.stale = point.total.stale - first.counts.stale;
    sample.unserved = point.total.unserved - first.counts.unserved;
    sample.stale_ratio = part_of(sample.stale, sample.calls);
    sample.unserved_ratio = part_of(sample.unserved, sample.calls);
    const std::chrono::duration<double> passed = now - first.moment;
    if (passed.count() > 0)
      sample.rate =
          static_cast<double>(point.total.started - first.counts.started) / passed.count();
    samples.push_back(std::move(sample));
    ++it;
  }
  std::erase_if(sources_,
                [this](const auto& entry) { return turn_ - entry.second.turn > source_turns; });
  ++turn_;
  return samples;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
