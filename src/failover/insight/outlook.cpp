#include "failover/insight/outlook.hpp"

#include "failover/insight/call_notes.hpp"

#include <algorithm>
#include <map>

namespace HOLDFAST_NAMESPACE::detail::failover {

namespace {

using namespace std::chrono_literals;
using steady_time = std::chrono::steady_clock::time_point;

constexpr std::array<std::chrono::minutes, 11> outlook_steps{1min, 10min, 30min, 60min, 3h,  6h,
                                                             12h,  24h,   72h,   168h,  720h};

/// The questions to the store, and its answers.
struct outlook_work : store_work {
  std::vector<recent_calls::sampled_key> keys{};
  std::optional<std::string> realm{};  ///< of the profile
  timestamp now{};
  std::vector<std::optional<entry>> rows{};  ///< of the keys
  std::optional<expiry_profile> profile{};
};

void ask_store(engine_core& engine, const point_core& point, outlook_work& work) {
  std::map<std::string, std::vector<std::size_t>> by_realm;
  for (std::size_t i = 0; i < work.keys.size(); ++i) by_realm[work.keys[i].realm].push_back(i);
  std::vector<std::optional<entry>> rows(work.keys.size());
  for (const auto& [realm, indices] : by_realm) {
    std::vector<std::string> keys;
    for (const auto index : indices) keys.push_back(work.keys[index].key);
    auto answers = engine.front_store->find_many(place(point.effective_name, realm), keys);
    for (std::size_t i = 0; i < indices.size() && i < answers.size(); ++i)
      rows[indices[i]] = std::move(answers[i]);
  }
  std::optional<expiry_profile> profile;
  if (work.realm) {
    std::vector<timestamp> times{work.now};
    for (const auto step : outlook_steps) times.push_back(work.now + step);
    // The store under the queue: the queue would write everything before it counts.
    profile = engine.base_store->expiring(place(point.effective_name, *work.realm), times);
  }
  const std::scoped_lock lock(work.mutex);
  work.rows = std::move(rows);
  work.profile = std::move(profile);
}

/// Waits for its turn, asks the store on a thread if it may block, and waits for the answer.
void run_outlook(engine_core& engine, const point_core& point,
                 const std::shared_ptr<outlook_work>& work, steady_time deadline) {
  const auto late = [] {
    return error(errc::timeout, "the store did not answer in time; ask again later",
                 {.transient = true});
  };
  if (!engine.reads_block) {
    ask_store(engine, point, *work);
    return;
  }
  if (!engine.guard.answers())
    throw error(errc::unavailable, "the store does not answer, so the outlook is not known",
                {.transient = true});
  auto& turn = engine.outlooks;
  {
    std::unique_lock lock(turn.mutex);
    if (!engine.wait(lock, turn.changed, deadline, [&] { return !turn.busy; })) throw late();
    turn.busy = true;
  }
  const auto core = engine.shared_from_this();
  // Ends the turn when the work has ended, or is dropped.
  std::shared_ptr<void> guard(nullptr, [core](void*) { core->outlooks.give_back(); });
  executor::task task = [core, guard, &point, work = work.get()] {
    ask_store(*core, point, *work);
  };
  guard.reset();
  if (!engine.start_upkeep(work, std::move(task), deadline) ||
      engine.wait_for(*work, deadline) != engine_core::wait_result::ended)
    throw late();
  if (work->error) std::rethrow_exception(work->error);
}

/// The expiry of a key that covers calls, and the calls that it represents.
struct covering_key {
  timestamp expires;
  double weight;
};

/// When this part of the calls is not covered any more. The keys are sorted by their expiry.
timestamp expired_part(const std::vector<covering_key>& keys, double whole, double part) {
  double expired = 0;
  for (const auto& each : keys) {
    expired += each.weight;
    if (expired >= whole * part) return each.expires;
  }
  return keys.back().expires;
}

void describe_calls(const point_core& point, const outlook_work& work, point_outlook& result) {
  double all = 0;
  double covered = 0;
  std::vector<covering_key> covering;
  for (std::size_t i = 0; i < work.keys.size(); ++i) {
    const auto weight = work.keys[i].weight;
    all += weight;
    const auto& row = work.rows[i];
    if (!row || judge_row(point, &*row, work.now, std::nullopt) != coverage_result::covered)
      continue;
    covered += weight;
    covering.push_back({row->expire_on, weight});
  }
  if (all <= 0) return;
  result.covered = covered / all;
  std::ranges::sort(covering, {}, &covering_key::expires);
  if (!covering.empty()) {
    result.first = covering.front().expires;
    result.half = expired_part(covering, covered, 0.5);
    result.most = expired_part(covering, covered, 0.9);
  }
  for (const auto step : outlook_steps) {
    const auto until = work.now + step;
    double remaining = 0;
    for (const auto& each : covering) remaining += each.expires >= until ? each.weight : 0;
    result.calls_covered.push_back({.until = until, .part = remaining / all});
  }
}

void describe_entries(const expiry_profile& profile, timestamp now, point_outlook& result) {
  if (profile.counts.size() != outlook_steps.size() + 1) return;
  result.entries = profile.entries - std::min(profile.entries, profile.counts.front());
  result.entries_at_least = profile.at_least;
  if (result.entries == 0) return;
  for (std::size_t i = 0; i < outlook_steps.size(); ++i) {
    const auto remaining = profile.entries - std::min(profile.entries, profile.counts[i + 1]);
    result.entries_left.push_back(
        {.until = now + outlook_steps[i],
         .part = static_cast<double>(remaining) / static_cast<double>(result.entries)});
  }
}

void set_gauges(const point_core& point, const point_outlook& outlook) {
  if (!point.meters || !outlook.covered) return;
  const auto seconds_until = [&](std::optional<timestamp> time) {
    return time ? std::chrono::duration<double>(*time - outlook.time).count() : 0.0;
  };
  point.meters->outlook({.first = seconds_until(outlook.first),
                         .half = seconds_until(outlook.half),
                         .most = seconds_until(outlook.most)});
}

}  // namespace

point_outlook outlook_of(engine_core& engine, const point_core& point, steady_time deadline) {
  const auto work = std::make_shared<outlook_work>();
  work->now = engine.clock->now();
  point_outlook result{.point = point.name, .time = work->now};
  if (point.insight) {
    work->keys = point.insight->recent.keys(work->now);
    result.calls = point.insight->recent.calls(work->now);
  }
  result.sampled_keys = work->keys.size();
  try {
    work->realm = engine.options.caller.tenant ? engine.options.caller.tenant() : std::string();
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // No tenant is current: the entries of all tenants are not counted.
  }
  run_outlook(engine, point, work, deadline);
  const std::scoped_lock lock(work->mutex);
  describe_calls(point, *work, result);
  if (const auto& profile = work->profile) describe_entries(*profile, result.time, result);
  set_gauges(point, result);
  return result;
}

void update_outlook_gauges(engine_core& engine) noexcept {
  try {
    const auto points = engine.all_points();
    const auto deadline = engine.clock->steady() + 2s;
    auto& turn = engine.outlooks;
    for (std::size_t i = 0; i < points.size(); ++i) {
      std::size_t index = 0;
      {
        // The next update begins after the last point of this one, which may reach its deadline.
        const std::scoped_lock lock(turn.mutex);
        index = turn.next_point++ % points.size();
      }
      const auto& point = *points[index];
      if (const auto part = coverage_of(point).part(); part && point.meters)
        point.meters->coverage(*part);
      (void)outlook_of(engine, point, deadline);
      if (engine.clock->steady() >= deadline) return;
    }
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // The store does not answer: the gauges keep their values.
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail::failover
