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
constexpr milliseconds quiet_look_every{1000};
constexpr milliseconds longest_wake{1000};  // of all lanes together, where it fails

/// Whether nothing of a lane is due or in somebody's hands. What waits for a later time does not count.
bool is_quiet(outbox_backend& in, std::size_t lane) {
  const auto seen = in.stats(lane);
  if (seen.paused) return true;
  if (seen.overdue.count() > 0) return false;
  if (seen.pending == 0) return true;
  const auto is_open = [](const outbox_record& one) { return one.state == event_state::due || one.state == event_state::claimed; };
  std::string after;
  // Who looks every moment does not look at everything.
  for (int pages = 0; pages < 4; ++pages) {
    auto page = in.scan(lane, scan_what::all, after, 500);
    if (std::ranges::any_of(page.records, is_open)) return false;
    after = std::move(page.after);
    if (after.empty()) return true;
  }
  return false;
}

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

/// What waits for a handler does not wait for one that hangs. What cannot be given back in time is left to its leases.
void worker::core::give_back(moment until) {
  std::deque<std::shared_ptr<turn>> waiting;
  {
    const std::scoped_lock lock(mutex_);
    waiting.swap(ready_);
  }
  for (const auto& each : waiting) {
    if (std::chrono::steady_clock::now() >= until) return;
    (void)handle_one(each);
  }
}

bool worker::core::wait_for_handlers(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, deadline, [this] { return turns_.empty(); });
}

/// By itself: what was claimed just now is not to be forgotten because a look at the numbers failed.
void worker::core::sample_safely() {
  try {
    sample();
  } catch (const std::exception& wrong) {
    numbers_.errors.add();
    log_.write_limited("outbox.sample", log_level::warning, "the numbers of the outbox cannot be read", {{"why", wrong.what()}});
  }
}

/// Whether another worker's lane is quiet is not asked every moment: it has work to do.
bool worker::core::is_time_to_look(std::size_t lane) {
  const std::scoped_lock lock(mutex_);
  if (now() < lanes_[lane].look_at) return false;
  lanes_[lane].look_at = now() + quiet_look_every;
  return true;
}

worker::core::looked worker::core::step_safely(std::size_t lane, poller& which) {
  try {
    auto result = step(lane, which.may_pass);
    // Another worker may stay for ever, with nothing to do.
    if (which.until_empty && result.what == found::locked_out && in_flight() == 0 && is_time_to_look(lane)) {
      result.quiet = is_quiet(*from_.backend(), lane);
      if (!result.quiet) {
        log_.write_limited("outbox.held." + std::to_string(lane), log_level::warning,
                           "a lane is held by another worker; waiting for it (or let workers compete)", {{"lane", std::to_string(lane)}});
      }
    }
    if (lane == 0) sample_safely();
    which.failures = 0;
    return result;
  } catch (const std::exception& wrong) {
    numbers_.errors.add();
    log_.write_limited("outbox.step", log_level::warning, "the outbox cannot be read; trying again", {{"why", wrong.what()}});
    const auto* ours = dynamic_cast<const error*>(&wrong);
    const std::scoped_lock lock(mutex_);
    problem_ = ours != nullptr ? *ours : error(errc::internal, wrong.what());
    which.failures = std::min(which.failures + 1, 8U);
    // With jitter: workers that lost the same server should not come back together.
    const auto longest = std::min(milliseconds(20) * (1U << which.failures), longest_error_pause);
    const auto pause = std::uniform_int_distribution<std::int64_t>(longest.count() / 2, longest.count())(random_);
    return {.what = found::paused, .wait = milliseconds(pause)};
  }
}

void worker::core::poll(const std::shared_ptr<poller>& which) {
  while (!stopping_ && which->run == run_) {
    if (!look(which)) return;
  }
  {
    const std::scoped_lock lock(mutex_);
    if (which->run == run_) --pollers_;
  }
  changed_.notify_all();
}

/// False: another thread goes on.
bool worker::core::look(const std::shared_ptr<poller>& shared) {
  poller& which = *shared;
  bool some = false;
  bool no_room = false;
  bool all_nothing = true;
  milliseconds wait = options_.idle;
  const std::size_t first = which.first;
  for (std::size_t i = 0; i < which.lanes.size() && !stopping_; ++i) {
    const std::size_t place = (first + i) % which.lanes.size();
    const std::size_t lane = which.lanes[place];
    auto result = step_safely(lane, which);
    if (result.what == found::events) which.first = (place + 1) % which.lanes.size();
    some = some || result.what == found::events;
    no_room = no_room || result.what == found::no_room;
    all_nothing = all_nothing && result.what == found::nothing;
    wait = std::min(wait, std::max(result.wait, milliseconds(1)));
    if (which.until_empty) {
      const std::scoped_lock lock(mutex_);
      if (result.what == found::events) quiet_.assign(quiet_.size(), false);
      else if (result.quiet) quiet_[lane] = true;
      if (std::ranges::all_of(quiet_, std::identity{})) stopping_ = true;
    }
    if (result.what == found::events && which.woken.has_value()) {
      const moment woken = *which.woken;
      which.woken.reset();
      numbers_.wake_seconds->observe(std::chrono::duration<double>(now() - woken).count());
    }
    if (!result.mine) continue;
    // What was claimed is handled here, without waiting for another thread; that one looks on meanwhile.
    which.slice = shortest_slice;
    const bool passed = executor_->post([self = shared_from_this(), shared] { self->poll(shared); });
    handle(std::move(result.mine));
    if (passed) return false;
  }
  if (some) {
    which.slice = shortest_slice;
    return true;
  }
  if (stopping_) return true;
  if (no_room || (which.until_empty && in_flight() > 0)) {
    std::unique_lock lock(mutex_);
    const std::size_t before = in_flight_;
    changed_.wait_for(
        lock, wait, [&] { return stopping_ || (which.until_empty ? in_flight_ < before || in_flight_ == 0 : in_flight_ * 2 <= wanted()); });
    return true;
  }
  if (!all_nothing || (which.until_empty && !which.alone)) {
    sleep(std::min(wait, which.until_empty ? longest_slice : wait));
    return true;
  }
  wait_for_news(which, wait);
  return true;
}

void worker::core::wait_for_news(poller& which, milliseconds wait) {
  const std::size_t lane = which.lanes[which.rounds++ % which.lanes.size()];
  if (which.lanes.size() > 1) wait = std::min(wait, which.slice);
  which.slice = std::min(2 * which.slice, longest_slice);
  try {
    if (!from_.wait(lane, wait)) return;
    numbers_.wakes.add();
    {
      const std::scoped_lock lock(mutex_);
      lanes_[lane].news = true;
    }
    which.woken = now();
  } catch (const std::exception&) {
    numbers_.errors.add();
    sleep(wait);  // the next step says what is wrong
  }
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

worker_report worker::core::run(const std::stop_token& stop, bool until_empty) {
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
    pollers_ = 0;
    ++run_;
  }
  const std::size_t pollers = std::min(options_.pollers, lanes_.size());
  std::jthread leases;
  std::vector<std::jthread> others;
  const auto finish = [&] {
    this->stop();
    give_back(std::chrono::steady_clock::now() + options_.stop_within);
    const auto until = std::chrono::steady_clock::now() + options_.stop_within;
    const auto ended_by = [this](std::chrono::steady_clock::time_point when) {
      std::unique_lock lock(mutex_);
      return changed_.wait_until(lock, when, [this] { return pollers_ == 0; });
    };
    bool all = ended_by(until);
    // An executor that was given, and was full, left a handler to the thread that polls.
    if (!all && !others.empty()) abandon();
    // Those that wait in the outbox come back after `idle` at the latest.
    all = all || ended_by(until + options_.idle);
    for (auto& each : others) all ? each.join() : each.detach();
    others.clear();
  };
  const std::stop_callback told(stop, [this] {
    this->stop();
    // Those who wait in the outbox hear it there; at the latest after `idle`. A server that stands still is not asked for every lane: whoever
    // stops us waits here.
    const auto enough = std::chrono::steady_clock::now() + longest_wake;
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
      try {
        from_.wake(lane);
      } catch (const std::exception&) {
        if (std::chrono::steady_clock::now() >= enough) break;
      }
    }
  });
  try {
    leases = start_quiet_thread("holdfast-lease", [this] { keep_leases(); });
    for (std::size_t i = 0; i < pollers; ++i) {
      auto one = std::make_shared<poller>();
      for (std::size_t lane = i; lane < lanes_.size(); lane += pollers) one->lanes.push_back(lane);
      one->run = run_;
      one->alone = pollers == 1;
      one->until_empty = until_empty;
      one->may_pass = !options_.executor;
      one->slice = shortest_slice;
      {
        const std::scoped_lock lock(mutex_);
        ++pollers_;
      }
      // An executor that was given is for handlers; waiting happens on threads of our own.
      if (!one->may_pass) others.push_back(start_quiet_thread("holdfast-outbox", [self = shared_from_this(), one] { self->poll(one); }));
      else if (!executor_->post([self = shared_from_this(), one] { self->poll(one); }))
        throw error(errc::unavailable, "no thread can be started for the worker; try again later", {.transient = true});
    }
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return stopping_.load(); });
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
