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

point_totals::source_entry* point_totals::find_or_add(point_entry& point,
                                                      const instance_entry& instance,
                                                      const call_counts& counts) {
  const auto it =
      std::ranges::lower_bound(point.sources, &instance, std::less<>(), &source_entry::instance);
  if (it != point.sources.end() && it->instance == &instance) return &*it;
  if (source_count_ >= max_sources) return nullptr;
  ++source_count_;
  // What it counted before the server looked is not in the rates.
  return &*point.sources.insert(it, {.instance = &instance, .counts = counts});
}

void point_totals::add(std::string_view instance, const std::vector<reported_point>& points) {
  auto it = instances_.find(instance);
  if (it == instances_.end()) it = instances_.emplace(instance, instance_entry{}).first;
  auto& entry = it->second;
  ++entry.report;
  entry.turn = turn_;
  for (const auto& reported : points) {
    auto& point = points_[reported.name];
    auto* const source = find_or_add(point, entry, reported.counts);
    if (source == nullptr) continue;
    add_growth(point.total, source->counts, reported.counts);
    source->report = entry.report;
    source->turn = turn_;
    source->breaker = reported.breaker;
    source->running = reported.running;
    source->counts = reported.counts;
  }
}

void point_totals::repeat(std::string_view instance) {
  if (const auto it = instances_.find(instance); it != instances_.end()) it->second.turn = turn_;
}

point_sample point_totals::sum_sources(point_entry& point) {
  point_sample sum;
  std::erase_if(point.sources, [&](const source_entry& source) {
    const bool reports = source.instance->turn == turn_ && source.report == source.instance->report;
    if (!reports) {
      const bool is_old = turn_ - source.turn > source_turns;
      source_count_ -= is_old ? 1 : 0;
      return is_old;
    }
    ++sum.instances;
    sum.running += source.running;
    if (badness(source.breaker) > badness(sum.breaker)) sum.breaker = source.breaker;
    return false;
  });
  return sum;
}

std::vector<point_sample> point_totals::finish(std::chrono::steady_clock::time_point now) {
  std::vector<point_sample> samples;
  samples.reserve(points_.size());
  for (auto it = points_.begin(); it != points_.end();) {
    auto& [name, point] = *it;
    auto sample = sum_sources(point);
    if (sample.instances > 0 || point.reported == std::chrono::steady_clock::time_point{})
      point.reported = now;
    if (now - point.reported > forgotten_after) {
      source_count_ -= point.sources.size();
      it = points_.erase(it);
      continue;
    }
    point.past.push_back({.moment = now, .counts = point.total});
    while (point.past.size() > 2 && now - point.past[1].moment >= window) point.past.pop_front();
    const auto& first = point.past.front();
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
  // Later than their sources, which refer to them.
  std::erase_if(instances_,
                [this](const auto& entry) { return turn_ - entry.second.turn > 2 * source_turns; });
  ++turn_;
  return samples;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
