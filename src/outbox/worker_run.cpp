#include <holdfast/error.hpp>

#include "base/thread.hpp"
#include "outbox/worker_core.hpp"

#include <algorithm>
#include <exception>
#include <thread>
#include <utility>

namespace HOLDFAST_NAMESPACE {

namespace {

using std::chrono::milliseconds;

/// A thread with several lanes cannot wait for all of them at once: it waits for one after the other, longer and longer.
constexpr milliseconds shortest_slice{5};
constexpr milliseconds longest_slice{200};
constexpr milliseconds longest_error_pause{2000};

}  // namespace

void worker::core::stop() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
}

void worker::core::sleep(milliseconds longest) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, longest, [this] { return stopping_.load(); });
}

bool worker::core::wait_for_handlers(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, deadline, [this] { return turns_.empty(); });
}

worker::core::looked worker::core::step_safely(std::size_t lane, unsigned& failures) {
  try {
    const auto result = step(lane);
    if (lane == 0) sample();
    failures = 0;
    return result;
  } catch (const std::exception& wrong) {
    numbers_.errors.add();
    log_.write_limited("outbox.step", log_level::warning, "the outbox cannot be read; trying again", {{"why", wrong.what()}});
    const auto* ours = dynamic_cast<const error*>(&wrong);
    const std::scoped_lock lock(mutex_);
    problem_ = ours != nullptr ? *ours : error(errc::internal, wrong.what());
    failures = std::min(failures + 1, 8U);
    // With jitter: workers that lost the same server should not come back together.
    const auto longest = std::min(milliseconds(20) * (1U << failures), longest_error_pause);
    const auto pause = std::uniform_int_distribution<std::int64_t>(longest.count() / 2, longest.count())(random_);
    return {.what = found::paused, .wait = milliseconds(pause)};
  }
}

void worker::core::poll(std::size_t poller, std::size_t of, bool until_empty) {
  std::vector<std::size_t> mine;
  for (std::size_t lane = poller; lane < lanes_.size(); lane += of) mine.push_back(lane);
  unsigned failures = 0;
  std::size_t turn_of = 0;
  milliseconds slice = shortest_slice;
  while (!stopping_) {
    bool some = false;
    bool no_room = false;
    bool all_nothing = true;
    milliseconds wait = options_.idle;
    for (const std::size_t lane : mine) {
      const auto result = step_safely(lane, failures);
      some = some || result.what == found::events;
      no_room = no_room || result.what == found::no_room;
      all_nothing = all_nothing && result.what == found::nothing;
      wait = std::min(wait, std::max(result.wait, milliseconds(1)));
      if (!until_empty) continue;
      const std::scoped_lock lock(mutex_);
      if (result.what == found::events) quiet_.assign(quiet_.size(), false);
      else if (result.quiet) quiet_[lane] = true;
      if (std::ranges::all_of(quiet_, std::identity{})) stopping_ = true;
    }
    if (some) {
      slice = shortest_slice;
      continue;
    }
    if (stopping_) break;
    if (no_room || (until_empty && in_flight() > 0)) {
      std::unique_lock lock(mutex_);
      const std::size_t before = in_flight_;
      changed_.wait_for(lock, wait,
                        [&] { return stopping_ || (until_empty ? in_flight_ < before || in_flight_ == 0 : in_flight_ * 2 <= wanted()); });
      continue;
    }
    if (!all_nothing || (until_empty && of > 1)) {
      sleep(std::min(wait, until_empty ? longest_slice : wait));
      continue;
    }
    const std::size_t lane = mine[turn_of++ % mine.size()];
    if (mine.size() > 1) wait = std::min(wait, slice);
    slice = std::min(2 * slice, longest_slice);
    const moment slept = now();
    try {
      if (from_.wait(lane, wait)) {
        numbers_.wakes.add();
        numbers_.wake_seconds->observe(std::chrono::duration<double>(now() - slept).count());
      }
    } catch (const std::exception&) {
      numbers_.errors.add();
      sleep(wait);  // the next step says what is wrong
    }
  }
  changed_.notify_all();
}

void worker::core::keep_leases() {
  const auto tick = std::clamp<milliseconds>(std::min(options_.lease, options_.lock_time) / 9, milliseconds(2), milliseconds(1000));
  while (!ended_) {
    try {
      renew();
    } catch (const std::exception& wrong) {
      numbers_.errors.add();
      log_.write_limited("outbox.renew", log_level::error, "leases cannot be renewed", {{"why", wrong.what()}});
    }
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, tick, [this] { return ended_.load(); });
  }
}

worker_report worker::core::run(std::stop_token stop, bool until_empty) {
  if (running_.exchange(true)) throw error(errc::invalid_argument, "the worker runs already; make another one to run two");
  struct running {
    core& of;
    ~running() { of.running_ = false; }
  } const while_running{*this};
  stopping_ = false;
  ended_ = false;
  {
    const std::scoped_lock lock(mutex_);
    quiet_.assign(quiet_.size(), false);
  }
  const std::size_t pollers = std::min(options_.pollers, lanes_.size());
  std::jthread leases;
  std::vector<std::jthread> others;
  const auto finish = [&] {
    this->stop();
    for (auto& each : others) each.join();
    others.clear();
  };
  const std::stop_callback told(stop, [this] {
    this->stop();
    // Those who wait in the outbox hear it there; at the latest after `idle`.
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
      try {
        from_.wake(lane);
      } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
      }
    }
  });
  try {
    leases = start_quiet_thread("holdfast-lease", [this] { keep_leases(); });
    for (std::size_t i = 1; i < pollers; ++i)
      others.push_back(start_quiet_thread("holdfast-outbox", [this, i, pollers, until_empty] { poll(i, pollers, until_empty); }));
    poll(0, pollers, until_empty);
  } catch (...) {
    finish();
    ended_ = true;
    changed_.notify_all();
    throw;
  }
  finish();
  worker_report report;
  if (!wait_for_handlers(std::chrono::steady_clock::now() + options_.stop_within)) {
    abandon();
    wait_for_handlers(std::chrono::steady_clock::now() + milliseconds(100));
    const std::scoped_lock lock(mutex_);
    report.still_running = turns_.size();
  }
  {
    const std::scoped_lock lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  leases.join();
  unlock_all();
  try {
    sample(true);
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
  }
  if (report.still_running > 0) {
    log_.write(log_level::warning, "handlers did not end in time; their events come again when their leases end",
               {{"handlers", std::to_string(report.still_running)}});
  }
  report.did = count();
  return report;
}

}  // namespace HOLDFAST_NAMESPACE
