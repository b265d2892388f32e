#include "outbox/sql_wake.hpp"

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

namespace HOLDFAST_NAMESPACE::outboxes {

namespace {

using namespace std::chrono_literals;

/// Between two looks where nobody tells: soon after there was something, seldom when there was nothing for long.
constexpr auto shortest_pause = 2ms;
constexpr auto longest_pause = 200ms;
/// With a connection that listens; only what was published while it was broken has to be looked for.
constexpr auto listening_pause = 1000ms;
/// The one who listens looks so often whether it is told to end.
constexpr auto slice = 50ms;
constexpr auto deaf_for = 1s;
/// So many notices are taken at once; the rest with the next look.
constexpr int most_notices = 10'000;
/// A connection that nobody reads is given up after so long: what it is told would pile up in the server.
constexpr auto unheard_for = 30s;

}  // namespace

sql_wake::sql_wake(std::size_t lanes, std::string channel, std::function<std::unique_ptr<sql::connection>()> listen)
    : channel_(std::move(channel)), listen_(std::move(listen)), places_(lanes) {}

void sql_wake::signal(std::size_t lane) {
  {
    const std::scoped_lock lock(mutex_);
    places_.at(lane).marked = true;
  }
  changed_.notify_all();
}

void sql_wake::published(std::size_t lane) {
  std::unique_ptr<sql::connection> unheard;  // closed without the lock
  {
    const std::scoped_lock lock(mutex_);
    if (ear_ && clock::now() - heard_ > unheard_for) unheard = std::move(ear_);
    if (ear_ || listening_) return;  // the database says it, too
  }
  signal(lane);
}

void sql_wake::found(std::size_t lane) {
  std::unique_ptr<sql::connection> unheard;
  const std::scoped_lock lock(mutex_);
  places_.at(lane).pause = 0ms;
  if (ear_ && clock::now() - heard_ > unheard_for) unheard = std::move(ear_);
}

/// Listens for a moment, for all. False: it cannot.
bool sql_wake::hear(std::unique_lock<std::mutex>& lock, clock::time_point until) {
  if (!listen_ || clock::now() < deaf_until_) return false;
  listening_ = true;
  auto ear = std::move(ear_);
  lock.unlock();
  std::set<std::size_t> lanes;
  bool well = true;
  bool fresh = false;
  try {
    if (!ear) {
      ear = listen_();
      ear->listen(channel_);
      fresh = true;  // what was said before is not heard any more
    } else {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock::now());
      auto said = ear->notice(std::clamp<std::chrono::milliseconds>(left, 0ms, slice));
      // All that are there: one look at a lane answers any number of them.
      for (int heard = 1; said; ++heard) {
        std::size_t lane = 0;
        const auto [end, problem] = std::from_chars(said->data(), said->data() + said->size(), lane);
        if (problem == std::errc() && lane < places_.size()) lanes.insert(lane);
        if (heard == most_notices) break;
        said = ear->notice(0ms);
      }
    }
  } catch (...) {  // whatever it is: nobody else would ever listen if this one left
    well = false;
  }
  lock.lock();
  listening_ = false;
  heard_ = clock::now();
  if (!well) {
    deaf_until_ = clock::now() + deaf_for;
  } else {
    ear_ = std::move(ear);
  }
  if (fresh || !well) {
    for (auto& each : places_) each.marked = true;
  }
  for (const auto lane : lanes) places_[lane].marked = true;
  changed_.notify_all();
  return well;
}

bool sql_wake::wait(std::size_t lane, std::chrono::milliseconds longest) {
  const auto start = clock::now();
  const auto end = start + longest;
  std::unique_lock lock(mutex_);
  auto& here = places_.at(lane);
  const bool told = listen_ && start >= deaf_until_;
  here.pause = std::clamp<std::chrono::milliseconds>(2 * here.pause, shortest_pause, longest_pause);
  const auto look = start + (told ? std::chrono::milliseconds(listening_pause) : here.pause);
  const auto until = std::min(end, look);
  while (!here.marked && clock::now() < until) {
    if (!listening_ && hear(lock, until)) continue;
    changed_.wait_until(lock, std::min(until, clock::now() + (listen_ ? clock::duration(slice) : clock::duration(longest_pause))),
                        [&] { return here.marked || (listen_ && !listening_ && clock::now() >= deaf_until_); });
  }
  return std::exchange(here.marked, false);
}

}  // namespace HOLDFAST_NAMESPACE::outboxes
