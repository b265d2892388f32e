#include "outbox/worker_core.hpp"

#include <holdfast/error.hpp>

#include "base/deadline.hpp"
#include "outbox/checks.hpp"

#include <algorithm>
#include <random>
#include <utility>

namespace HOLDFAST_NAMESPACE {

namespace {

using std::chrono::milliseconds;

/// Asks for nothing shorter: a lane that is about to be free, an event that is about to be due.
constexpr milliseconds shortest_wait{1};
constexpr milliseconds shortest_lock_wait{20};
constexpr std::chrono::seconds sample_every{5};
constexpr std::size_t tickets_at_once = 100;

void check(const handler_options& how) {
  const auto refuse = [](const std::string& what) { throw error(errc::invalid_argument, what); };
  if (how.backoff.first.count() < 0 || how.backoff.longest < how.backoff.first)
    refuse("backoff.longest must not be shorter than backoff.first");
  if (!(how.backoff.factor >= 1)) refuse("backoff.factor must be at least 1");
  if (!(how.backoff.jitter >= 0 && how.backoff.jitter <= 1)) refuse("backoff.jitter must be from 0 to 1");
  if (how.max_age.count() < 0) refuse("max_age must not be negative");
  if (how.breaker) {
    if (const std::string problem = breaker::problem_of(*how.breaker); !problem.empty()) refuse(problem);
  }
}

worker_options checked(worker_options options) {
  const auto refuse = [](const std::string& what) { throw error(errc::invalid_argument, what); };
  if (options.concurrency == 0 || options.concurrency > 1024) refuse("worker.concurrency must be from 1 to 1024");
  // As every claim asks: a worker that may never claim would only find errors.
  const auto is_time = [](milliseconds time) { return time >= milliseconds(10) && time <= outboxes::longest_time; };
  if (!is_time(options.lease)) refuse("worker.lease must be from 10 milliseconds to ten years");
  if (!is_time(options.lock_time)) refuse("worker.lock_time must be from 10 milliseconds to ten years");
  if (options.batch == 0 || options.batch > 1000) refuse("worker.batch must be from 1 to 1000");
  if (options.run == 0 || options.run > 1000) refuse("worker.run must be from 1 to 1000");
  if (options.idle < milliseconds(1)) refuse("worker.idle must be at least a millisecond");
  if (options.pollers == 0) refuse("worker.pollers must be at least 1");
  if (options.stop_within.count() < 0 || options.batch_time.count() <= 0) refuse("worker.stop_within and worker.batch_time are times");
  check(options.handling);
  for (auto* const each : {&options.idle, &options.stop_within, &options.batch_time}) *each = std::min<milliseconds>(*each, longest_wait);
  return options;
}

std::shared_ptr<executor> executor_of(const worker_options& options) {
  if (options.executor) return options.executor;
  // Room for all that may be in flight: a turn of each claim, and the continuations of runs.
  // A thread more for each poller: one looks while the others handle.
  return make_thread_pool(
      {.threads = options.concurrency + options.pollers, .queue = 16 * options.batch + 1024, .name = "holdfast-event", .log = options.log});
}

}  // namespace

worker::core::core(holdfast::outbox from, event_handler handler, worker_options options)
    : from_(std::move(from)),
      options_(checked(std::move(options))),
      clock_(options_.clock ? options_.clock : system_clock()),
      owner_(new_event_id()),
      log_(options_.log, {.clock = clock_}),
      numbers_(*(options_.metrics ? isolate(options_.metrics) : from_.metrics())),
      executor_(executor_of(options_)),
      pace_({.concurrency = options_.concurrency, .most = options_.batch, .target = options_.batch_time}),
      lanes_(from_.lanes()),
      quiet_(from_.lanes(), false),
      random_(std::random_device{}()) {
  if (handler) others_ = make_route(std::move(handler), options_.handling);
}

std::unique_ptr<worker::core::route> worker::core::make_route(event_handler handler, const handler_options& how) {
  check(how);
  auto made = std::make_unique<route>();
  made->call = std::move(handler);
  if (how.breaker) {
    made->guard = std::make_unique<breaker>(*how.breaker);
    made->open_for = std::max(std::chrono::duration_cast<milliseconds>(how.breaker->open_for), milliseconds(1));
  }
  made->how = how;
  return made;
}

void worker::core::on(const std::string& type, event_handler handler, const handler_options& how) {
  if (running_) throw error(errc::invalid_argument, "handlers are added before the worker runs");
  if (type.empty() || !handler) throw error(errc::invalid_argument, "a handler needs a type and something to call");
  auto made = make_route(std::move(handler), how);
  if (!routes_.try_emplace(type, std::move(made)).second)
    throw error(errc::duplicate, "there is a handler for events of the type " + type + " already");
}

worker::core::route* worker::core::route_of(const std::string& type) const {
  const auto known = routes_.find(type);
  return known != routes_.end() ? known->second.get() : others_.get();
}

std::optional<milliseconds> worker::core::own(std::size_t lane) {
  if (options_.compete) return {};
  {
    const std::scoped_lock lock(mutex_);
    if (lanes_[lane].held) return {};
  }
  const moment asked = now();
  const auto grant = from_.lock(lane, owner_, options_.lock_time);
  if (!grant.held) return std::clamp(grant.remaining, shortest_lock_wait, std::max(options_.idle, shortest_lock_wait));
  const std::scoped_lock lock(mutex_);
  auto& mine = lanes_[lane];
  mine.held = true;
  mine.ends = asked + options_.lock_time;
  mine.renew_at = asked + options_.lock_time / 3;
  return {};
}

void worker::core::lose(std::size_t lane, std::string_view why) {
  {
    const std::scoped_lock lock(mutex_);
    if (!std::exchange(lanes_[lane].held, false)) return;
  }
  numbers_.fenced.add();
  log_.write_limited("outbox.lock", log_level::warning, "the lock of a lane of the outbox was lost; it is taken again when it is free",
                     {{"lane", std::to_string(lane)}, {"why", why}});
}

milliseconds worker::core::drain(std::size_t lane) {
  if (!options_.drain_tickets) return options_.idle;
  const moment at = now();
  {
    const std::scoped_lock lock(mutex_);
    if (at < lanes_[lane].drain_at) return std::chrono::ceil<milliseconds>(lanes_[lane].drain_at - at);
  }
  const auto result = from_.drain(lane, tickets_at_once);
  numbers_.tickets.add(result.tickets);
  const milliseconds next =
      result.tickets == tickets_at_once ? milliseconds(0) : std::min(result.next.value_or(options_.idle), options_.idle);
  const std::scoped_lock lock(mutex_);
  lanes_[lane].drain_at = at + next;
  lanes_[lane].held_up = result.held_up;
  return result.tickets > 0 ? milliseconds(0) : next;
}

/// Those that no handler got to see.
void worker::core::note_parked(const claimed& what) {
  numbers_.parked.add(what.parked.size());
  for (const auto& [id, why] : what.parked)
    log_.write_limited("outbox.park", log_level::warning, "an event is parked; see holdfast outbox parked", {{"id", id}, {"why", why}});
}

worker::core::looked worker::core::step(std::size_t lane, bool keep_one) {
  if (const auto wait = own(lane)) return {.what = found::locked_out, .wait = *wait};
  bool news = false;
  {
    const std::scoped_lock lock(mutex_);
    news = std::exchange(lanes_[lane].news, false);
    if (news) lanes_[lane].drain_at = moment::min();
  }
  // News is an event most of the time, which need not wait for a look at the tickets.
  milliseconds ticket = news ? options_.idle : drain(lane);
  const std::size_t busy = in_flight();
  const std::size_t most = wanted();
  if (busy * 2 > most) return {.what = found::no_room, .wait = options_.idle};

  const moment asked = now();
  auto result = from_.claim({.lane = lane,
                             .most = std::min(most - busy, options_.batch),
                             .run = std::clamp<std::size_t>(pace_.turn(), 1, options_.run),
                             .lease = options_.lease,
                             .owner = options_.compete ? std::string() : owner_});
  {
    const std::scoped_lock lock(mutex_);
    problem_.reset();
  }
  note_parked(result);
  if (news && result.status == claim_status::empty) ticket = drain(lane);
  milliseconds wait = std::min(result.next.value_or(options_.idle), options_.idle);
  wait = std::max(std::min(wait, ticket), shortest_wait);
  switch (result.status) {
    case claim_status::fenced:
      lose(lane, "another worker has it");
      return {.what = found::locked_out, .wait = shortest_lock_wait};
    case claim_status::paused:
      return {.what = found::paused, .wait = options_.idle, .quiet = busy == 0};
    case claim_status::empty: {
      const std::scoped_lock lock(mutex_);
      const bool tickets = ticket.count() == 0 || lanes_[lane].held_up;
      // Empty with something due: all that was claimed was parked on the way, and there may be more behind it.
      return {.what = found::nothing, .wait = wait, .quiet = busy == 0 && (!result.next || result.next->count() > 0) && !tickets};
    }
    case claim_status::some:
      break;
  }
  numbers_.claims.add();
  auto turns = take(std::move(result), asked, lane);
  hand_out(turns, keep_one ? 1 : 0);
  return {.what = found::events, .mine = keep_one ? turns.front() : nullptr};
}

std::vector<std::shared_ptr<turn>> worker::core::take(claimed&& what, moment asked, std::size_t lane) {
  const std::size_t together = pace_.turn();
  std::vector<std::shared_ptr<turn>> made;
  for (auto& each : what.events) {
    // A key stays with one thread: its events are handled one after the other.
    const bool same_key = !made.empty() && !each.event.key.empty() && each.event.key == made.back()->events.back().event.key;
    if (made.empty() || (made.back()->events.size() >= together && !same_key)) {
      auto fresh = std::make_shared<turn>();
      fresh->lane = lane;
      fresh->token = what.fence;
      fresh->claimed_at = asked;
      fresh->store_time = what.now;
      fresh->lease_end = asked + options_.lease;
      fresh->renew_at = asked + options_.lease / 3;
      made.push_back(std::move(fresh));
    }
    if (each.deliveries == 1) {
      const auto lag = std::chrono::duration<double>(what.now - each.created_at).count();
      numbers_.lag_seconds->observe(std::max(lag, 0.0));
    }
    made.back()->events.push_back(std::move(each));
  }
  for (const auto& each : made) {
    each->lost.assign(each->events.size(), false);
    for (const auto& one : what.left_out) {
      const auto of_its_run = [&](const claimed_event& other) { return other.event.key == one.second; };
      if (std::ranges::any_of(each->events, of_its_run)) each->left_out.push_back(one);
    }
  }
  const std::scoped_lock lock(mutex_);
  for (const auto& each : made) {
    in_flight_ += each->events.size();
    turns_.push_back(each);
  }
  numbers_.in_flight->set(static_cast<double>(in_flight_));
  return made;
}

void worker::core::hand_out(const std::vector<std::shared_ptr<turn>>& turns, std::size_t from) {
  for (std::size_t i = from; i < turns.size(); ++i) {
    auto task = [self = shared_from_this(), which = turns[i]] { self->handle(which); };
    // An executor that is full gives the work back: done here, it holds up the next claim, as it should.
    if (!executor_->post(task)) task();
  }
}

void worker::core::end(const std::shared_ptr<turn>& which) {
  {
    const std::scoped_lock lock(mutex_);
    turns_.remove(which);
    in_flight_ -= which->events.size();
    numbers_.in_flight->set(static_cast<double>(in_flight_));
  }
  changed_.notify_all();
}

void worker::core::sample(bool at_once) {
  const moment at = now();
  {
    const std::scoped_lock lock(mutex_);
    if (!at_once && at < sample_at_) return;
    sample_at_ = at + sample_every;
  }
  const auto seen = from_.stats();
  numbers_.looked(seen);
  const std::scoped_lock lock(mutex_);
  sampled_ = seen;
}

std::size_t worker::core::in_flight() const {
  const std::scoped_lock lock(mutex_);
  return in_flight_;
}

worker_numbers worker::core::count() const {
  auto all = numbers_.count();
  all.in_flight = in_flight();
  return all;
}

worker_health worker::core::health() const {
  worker_health how;
  const auto closed = [this](const std::unique_ptr<route>& one) {
    return !one || !one->guard || one->guard->state(now()) == breaker_state::closed;
  };
  for (const auto& [type, one] : routes_) {
    if (!closed(one)) how.open.push_back(type);
  }
  if (!closed(others_)) how.open.emplace_back("*");
  const std::scoped_lock lock(mutex_);
  how.available = !problem_;
  if (problem_) how.problem = problem_->what();
  how.locks = options_.compete ? lanes_.size() : static_cast<std::size_t>(std::ranges::count(lanes_, true, &lane_state::held));
  how.depth = sampled_.pending + sampled_.following;
  how.parked = sampled_.parked;
  how.overdue = sampled_.overdue;
  return how;
}

}  // namespace HOLDFAST_NAMESPACE
