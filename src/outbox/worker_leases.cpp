#include <holdfast/error.hpp>

#include "outbox/worker_core.hpp"

#include <map>
#include <utility>

namespace HOLDFAST_NAMESPACE {

namespace {

constexpr std::chrono::seconds longest_unlock{1};  // of all lanes together, where it fails

}  // namespace

void worker::core::renew() {
  // Leases first: a handler waits for each.
  renew_turns(now());
  renew_locks(now());
}

void worker::core::renew_locks(moment at) {
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
    {
      const std::scoped_lock lock(mutex_);
      if (!lanes_[lane].held || at < lanes_[lane].renew_at) continue;
    }
    try {
      if (!from_.renew(lane, owner_, options_.lock_time).held) {
        lose(lane, "it was not renewed in time");
        continue;
      }
      const std::scoped_lock lock(mutex_);
      lanes_[lane].ends = at + options_.lock_time;
      lanes_[lane].renew_at = at + options_.lock_time / 3;
    } catch (const error& wrong) {
      numbers_.errors.add();
      bool over = false;
      {
        const std::scoped_lock lock(mutex_);
        problem_ = wrong;
        over = now() >= lanes_[lane].ends;
        lanes_[lane].renew_at = at + options_.lock_time / 10;
      }
      if (over) lose(lane, wrong.what());
    }
  }
}

void worker::core::renew_turns(moment at) {
  // Those of one claim have one token: one call extends them all.
  std::map<std::pair<std::size_t, holdfast::fence>, std::vector<std::shared_ptr<turn>>> due;
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& each : turns_) {
      const std::scoped_lock inner(each->mutex);
      if (at >= each->renew_at) due[{each->lane, each->token}].push_back(each);
    }
  }
  for (const auto& [token, turns] : due) extend(turns, at);
}

void worker::core::extend(const std::vector<std::shared_ptr<turn>>& turns, moment at) {
  struct place {
    turn* in;
    std::size_t index;
  };
  std::vector<settlement> asked;
  std::vector<place> places;
  for (const auto& each : turns) {
    const std::scoped_lock lock(each->mutex);
    std::string_view key;  // the events of a run share one lease
    for (std::size_t i = each->settled; i < each->events.size(); ++i) {
      const auto& what = each->events[i].event;
      if (each->lost[i] || (!what.key.empty() && what.key == key)) continue;
      key = what.key;
      asked.push_back({.id = what.id, .key = what.key});
      places.push_back({.in = each.get(), .index = i});
    }
  }
  if (asked.empty()) return;
  // Told when no lock is held: what a handler hung on it may do anything.
  std::vector<std::stop_source> told;
  std::vector<bool> kept;
  try {
    kept = from_.backend()->extend(turns.front()->lane, turns.front()->token, asked, options_.lease);
  } catch (const error& wrong) {
    numbers_.errors.add();
    {
      const std::scoped_lock lock(mutex_);
      problem_ = wrong;
    }
    for (const auto& each : turns) {
      const std::scoped_lock lock(each->mutex);
      each->renew_at = at + options_.lease / 10;
    }
    // A server that stands still took its time: others may have outlived their leases meanwhile, and the next call may take as long.
    lose_turns(now());
    return;
  }
  std::uint64_t lost = 0;
  for (const auto& each : turns) {
    const std::scoped_lock lock(each->mutex);
    each->lease_end = at + options_.lease;
    each->renew_at = at + options_.lease / 3;
  }
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (kept[i]) continue;
    turn& in = *places[i].in;
    const std::scoped_lock lock(in.mutex);
    // Settled while we asked: not lost, but over.
    if (in.settling || places[i].index < in.settled) continue;
    const std::string& key = in.events[places[i].index].event.key;
    for (std::size_t k = places[i].index; k < in.events.size() && (k == places[i].index || (!key.empty() && in.events[k].event.key == key));
         ++k) {
      in.lost[k] = true;
      ++lost;
      if (k == in.at) told.push_back(in.source);
    }
  }
  for (auto& each : told) each.request_stop();
  if (lost == 0) return;
  numbers_.fenced.add(lost);
  log_.write_limited("outbox.lease", log_level::warning, "leases were lost: their events may be delivered to another worker",
                     {{"events", std::to_string(lost)}});
}

void worker::core::abandon() { lose_turns(moment::max()); }

/// Their handlers are told.
void worker::core::lose_turns(moment whose_lease_ends_by) {
  std::vector<std::stop_source> told;
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& each : turns_) {
      const std::scoped_lock inner(each->mutex);
      if (each->lease_end > whose_lease_ends_by) continue;
      each->lost.assign(each->events.size(), true);
      told.push_back(each->source);
    }
  }
  for (auto& each : told) each.request_stop();
}

void worker::core::unlock_all() {
  const auto enough = std::chrono::steady_clock::now() + longest_unlock;
  bool gone = false;
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
    {
      const std::scoped_lock lock(mutex_);
      if (!std::exchange(lanes_[lane].held, false)) continue;
    }
    if (gone) continue;
    try {
      from_.unlock(lane, owner_);
    } catch (const error&) {
      // It ends by itself. A server that stands still is not asked for every lane.
      gone = std::chrono::steady_clock::now() >= enough;
    }
  }
}

}  // namespace HOLDFAST_NAMESPACE
