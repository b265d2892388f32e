#include "serve/api/claim_polls.hpp"

#include <holdfast/error.hpp>
#include <holdfast/executor.hpp>

#include "base/thread.hpp"
#include "serve/api/outbox_json.hpp"
#include "serve/api/problem_mapping.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

using std::chrono::milliseconds;
using steady_time = std::chrono::steady_clock::time_point;

constexpr std::size_t drained_tickets = 100;

/// One claim of a client. `mutex` guards what follows it.
struct claim_poll {
  claim_poll(outbox_service& target, claim_request request_claim,
             std::shared_ptr<api_request> origin, responder channel,
             std::shared_ptr<std::atomic<std::size_t>> counter)
      : service(target),
        claim(std::move(request_claim)),
        request(std::move(origin)),
        answer(std::move(channel)),
        active(std::move(counter)) {
    ++*active;
  }
  claim_poll(const claim_poll&) = delete;
  claim_poll& operator=(const claim_poll&) = delete;
  ~claim_poll() { --*active; }

  outbox_service& service;
  const claim_request claim;
  const std::shared_ptr<api_request> request;
  responder answer;
  /// A connection may keep the poll for longer than the polls exist.
  const std::shared_ptr<std::atomic<std::size_t>> active;
  steady_time deadline{};

  std::mutex mutex{};
  bool gone = false;
  /// What the client was sent, for the case that it is gone before it has it.
  claimed sent_claim{};
};

/// Gives claimed events back, in their order. Without it they are due when their leases end.
void release(const outbox_service& service, const claimed& claim) {
  std::vector<settlement> settlements;
  const auto add = [&](const std::string& id, const std::string& key) {
    settlements.push_back({.id = id, .key = key, .action = settlement::kind::release});
  };
  for (const auto& event : claim.events) add(event.event.id, event.event.key);
  for (const auto& [id, key] : claim.left_out) add(id, key);
  if (settlements.empty()) return;
  constexpr std::size_t most = 1000;
  for (std::size_t begin = 0; begin < settlements.size(); begin += most) {
    const auto end = std::min(settlements.size(), begin + most);
    (void)service.outbox.settle(claim.lane, claim.fence,
                                {settlements.begin() + static_cast<std::ptrdiff_t>(begin),
                                 settlements.begin() + static_cast<std::ptrdiff_t>(end)});
  }
}

void release_quietly(const services& shared, const outbox_service& service, const claimed& claim) {
  try {
    release(service, claim);
  } catch (const std::exception& failure) {
    if (!shared.log) return;
    const std::array<log_field, 2> fields{{{"outbox", service.name}, {"why", failure.what()}}};
    shared.log({.level = log_level::warning,
                .message = "events of a client that is gone are due when their leases end",
                .fields = fields});
  }
}

bool is_gone(claim_poll& poll) {
  const std::scoped_lock lock(poll.mutex);
  return poll.gone;
}

/// The events of a claim without their payloads: enough to release them.
claimed without_payloads(claimed claim) {
  for (auto& event : claim.events) {
    event.event.payload.clear();
    event.event.headers.clear();
  }
  return claim;
}

server_response claim_response(const claimed& claim) {
  json_writer out;
  write_claim(out, claim);
  return json_response(200, out.take());
}

/// The polls of one lane, and the thread that serves them.
struct lane_polls {
  lane_polls(outbox_service& target, std::size_t number) : service(target), lane(number) {}

  outbox_service& service;
  const std::size_t lane;
  /// In the order of their arrival.
  std::list<std::shared_ptr<claim_poll>> waiting{};
  std::condition_variable changed{};
  /// Polls that were added since the start.
  std::uint64_t arrivals = 0;
  /// The thread waits for the signal of the lane.
  bool waits_for_signal = false;
  /// Of the last round; used on the thread only.
  claim_status status = claim_status::empty;
  std::jthread thread{};
};

}  // namespace

struct claim_polls::state : std::enable_shared_from_this<claim_polls::state> {
  state(services& parts, claim_polls_options chosen) : shared(parts), options(chosen) {}

  /// On hf-claims.
  void try_first(const std::shared_ptr<claim_poll>& poll);
  void add_to_lane(const std::shared_ptr<claim_poll>& poll);
  /// On hf-lane.
  void run_lane(lane_polls& lane);
  void serve_lane(lane_polls& lane);
  [[nodiscard]] milliseconds serve_round(lane_polls& lane);
  [[nodiscard]] bool begin_wait(lane_polls& lane, std::uint64_t arrivals);
  void end_wait(lane_polls& lane);
  void drain_tickets(lane_polls& lane, milliseconds& wait) const;
  [[nodiscard]] std::shared_ptr<claim_poll> remove_waiting(lane_polls& lane,
                                                           const std::shared_ptr<claim_poll>& poll);
  void answer_expired(lane_polls& lane);
  void answer_all(lane_polls& lane, const std::function<server_response(claim_poll&)>& make);

  void finish(claim_poll& poll, claimed claim);
  void fail(claim_poll& poll, const std::exception_ptr& failure) const;
  void on_gone(const std::shared_ptr<claim_poll>& poll);
  void withdraw(const std::shared_ptr<claim_poll>& poll);

  services& shared;
  claim_polls_options options;
  std::shared_ptr<std::atomic<std::size_t>> active = std::make_shared<std::atomic<std::size_t>>(0);
  std::mutex mutex{};
  bool draining = false;
  bool stopping = false;
  std::size_t running_lanes = 0;
  std::condition_variable lane_ended{};
  /// Never erased before the end.
  std::map<std::pair<const outbox_service*, std::size_t>, std::unique_ptr<lane_polls>> lanes{};
  std::shared_ptr<thread_pool> pool =
      make_thread_pool({.threads = 4, .queue = 4'096, .name = "hf-claims"});
};

void claim_polls::state::finish(claim_poll& poll, claimed claim) {
  auto response = claim_response(claim);
  claim = without_payloads(std::move(claim));
  bool gone = false;
  {
    const std::scoped_lock lock(poll.mutex);
    gone = poll.gone;
    if (!gone) poll.sent_claim = claim;
  }
  if (gone) {
    release_quietly(shared, poll.service, claim);
    response = claim_response({.lane = poll.claim.lane});
  }
  poll.answer.answer(std::move(response));
}

void claim_polls::state::fail(claim_poll& poll, const std::exception_ptr& failure) const {
  poll.answer.answer(problem_of(failure, poll.request->caller, poll.request->reference));
}

/// On a loop thread.
void claim_polls::state::on_gone(const std::shared_ptr<claim_poll>& poll) {
  {
    const std::scoped_lock lock(poll->mutex);
    poll->gone = true;
  }
  // A full queue leaves the events to the end of their leases, and the poll to its deadline.
  (void)pool->post([this, poll] { withdraw(poll); });
}

/// On hf-claims: takes back what the client was sent, or ends its waiting.
void claim_polls::state::withdraw(const std::shared_ptr<claim_poll>& poll) {
  claimed sent_claim;
  {
    const std::scoped_lock lock(poll->mutex);
    sent_claim = std::exchange(poll->sent_claim, {});
  }
  release_quietly(shared, poll->service, sent_claim);
  lane_polls* lane = nullptr;
  {
    const std::scoped_lock lock(mutex);
    const auto it = lanes.find({&poll->service, poll->claim.lane});
    if (it != lanes.end()) lane = it->second.get();
  }
  // A client that has closed its side only still gets an answer.
  if (lane != nullptr && remove_waiting(*lane, poll)) finish(*poll, {.lane = poll->claim.lane});
}

void claim_polls::state::try_first(const std::shared_ptr<claim_poll>& poll) {
  if (is_gone(*poll)) return finish(*poll, {.lane = poll->claim.lane});
  try {
    auto claim = poll->service.outbox.claim(poll->claim);
    const bool can_wait =
        claim.status == claim_status::empty || claim.status == claim_status::paused;
    if (can_wait && poll->claim.lane < poll->service.outbox.lanes() &&
        std::chrono::steady_clock::now() < poll->deadline)
      add_to_lane(poll);
    else finish(*poll, std::move(claim));
  } catch (...) {
    fail(*poll, std::current_exception());
  }
}

void claim_polls::state::add_to_lane(const std::shared_ptr<claim_poll>& poll) {
  std::unique_lock lock(mutex);
  if (draining || is_gone(*poll)) {
    lock.unlock();
    finish(*poll, {.lane = poll->claim.lane});
    return;
  }
  auto& lane = lanes[{&poll->service, poll->claim.lane}];
  if (!lane) lane = std::make_unique<lane_polls>(poll->service, poll->claim.lane);
  if (!lane->thread.joinable()) {
    lane->thread =
        start_quiet_thread("hf-lane", [this, target = lane.get()] { run_lane(*target); });
    ++running_lanes;
  }
  lane->waiting.push_back(poll);
  ++lane->arrivals;
  lane->changed.notify_all();
  if (!lane->waits_for_signal) return;
  // The thread may have claimed after this poll found nothing, and before it was added.
  lock.unlock();
  try {
    poll->service.outbox.wake(poll->claim.lane);
  } catch (const error&) {  // NOLINT(bugprone-empty-catch)
    // The thread claims again soon anyway.
  }
}

/// Takes the poll out of its lane. Null: another thread has done so.
std::shared_ptr<claim_poll> claim_polls::state::remove_waiting(
    lane_polls& lane, const std::shared_ptr<claim_poll>& poll) {
  const std::scoped_lock lock(mutex);
  const auto it = std::ranges::find(lane.waiting, poll);
  if (it == lane.waiting.end()) return nullptr;
  auto result = std::move(*it);
  lane.waiting.erase(it);
  return result;
}

void claim_polls::state::answer_all(lane_polls& lane,
                                    const std::function<server_response(claim_poll&)>& make) {
  std::list<std::shared_ptr<claim_poll>> polls;
  {
    const std::scoped_lock lock(mutex);
    polls.swap(lane.waiting);
  }
  for (const auto& poll : polls) poll->answer.answer(make(*poll));
}

void claim_polls::state::answer_expired(lane_polls& lane) {
  const auto now = std::chrono::steady_clock::now();
  std::vector<std::shared_ptr<claim_poll>> expired;
  {
    const std::scoped_lock lock(mutex);
    for (auto it = lane.waiting.begin(); it != lane.waiting.end();) {
      if ((*it)->deadline > now) {
        ++it;
        continue;
      }
      expired.push_back(std::move(*it));
      it = lane.waiting.erase(it);
    }
  }
  for (const auto& poll : expired)
    finish(*poll, {.status = lane.status == claim_status::paused ? claim_status::paused
                                                                 : claim_status::empty,
                   .lane = lane.lane});
}

void claim_polls::state::drain_tickets(lane_polls& lane, milliseconds& wait) const {
  const auto drained = lane.service.outbox.drain(lane.lane, drained_tickets);
  if (drained.tickets == drained_tickets || drained.held_up) wait = milliseconds(1);
  else if (drained.next) wait = std::min(wait, *drained.next);
}

/// Claims for the polls in turn, until the lane is empty. Returns how long to wait for its signal.
milliseconds claim_polls::state::serve_round(lane_polls& lane) {
  auto wait = options.idle;
  drain_tickets(lane, wait);
  std::vector<std::shared_ptr<claim_poll>> polls;
  {
    const std::scoped_lock lock(mutex);
    polls.assign(lane.waiting.begin(), lane.waiting.end());
  }
  for (const auto& poll : polls) {
    if (is_gone(*poll)) continue;
    auto claim = lane.service.outbox.claim(poll->claim);
    lane.status = claim.status;
    if (claim.status == claim_status::empty || claim.status == claim_status::paused) {
      if (claim.next) wait = std::min(wait, *claim.next);
      // Everything that was due was parked: there may be more.
      if (claim.next && claim.next->count() <= 0) continue;
      break;
    }
    if (const auto taken = remove_waiting(lane, poll)) finish(*taken, std::move(claim));
    else release_quietly(shared, lane.service, claim);
  }
  answer_expired(lane);
  const std::scoped_lock lock(mutex);
  const auto now = std::chrono::steady_clock::now();
  for (const auto& poll : lane.waiting)
    wait = std::min(wait, std::chrono::ceil<milliseconds>(poll->deadline - now));
  return std::max(wait, milliseconds(1));
}

/// Returns false if a poll was added since the round began, or none waits.
bool claim_polls::state::begin_wait(lane_polls& lane, std::uint64_t arrivals) {
  const std::scoped_lock lock(mutex);
  if (stopping || lane.waiting.empty() || lane.arrivals != arrivals) return false;
  lane.waits_for_signal = true;
  return true;
}

void claim_polls::state::end_wait(lane_polls& lane) {
  const std::scoped_lock lock(mutex);
  lane.waits_for_signal = false;
}

void claim_polls::state::run_lane(lane_polls& lane) {
  serve_lane(lane);
  const std::scoped_lock lock(mutex);
  --running_lanes;
  lane_ended.notify_all();
}

void claim_polls::state::serve_lane(lane_polls& lane) {
  for (;;) {
    std::uint64_t arrivals = 0;
    {
      std::unique_lock lock(mutex);
      lane.changed.wait(lock, [&] { return stopping || !lane.waiting.empty(); });
      if (stopping) return;
      arrivals = lane.arrivals;
    }
    try {
      const auto wait = serve_round(lane);
      if (!begin_wait(lane, arrivals)) continue;
      (void)lane.service.outbox.wait(lane.lane, wait);
      end_wait(lane);
    } catch (...) {
      end_wait(lane);
      const auto failure = std::current_exception();
      answer_all(lane, [&](claim_poll& poll) {
        return problem_of(failure, poll.request->caller, poll.request->reference);
      });
    }
  }
}

claim_polls::claim_polls(services& shared, claim_polls_options options)
    : state_(std::make_shared<state>(shared, options)) {}

claim_polls::~claim_polls() { (void)close(std::chrono::steady_clock::time_point::max()); }

bool claim_polls::close(std::chrono::steady_clock::time_point deadline) {
  drain();
  std::vector<std::jthread> threads;
  {
    std::unique_lock lock(state_->mutex);
    state_->stopping = true;
    for (auto& [key, lane] : state_->lanes) lane->changed.notify_all();
    const auto have_ended = [&] { return state_->running_lanes == 0; };
    if (deadline == std::chrono::steady_clock::time_point::max())
      state_->lane_ended.wait(lock, have_ended);
    else if (!state_->lane_ended.wait_until(lock, deadline, have_ended)) return false;
    for (auto& [key, lane] : state_->lanes) threads.push_back(std::move(lane->thread));
  }
  threads.clear();  // joins them
  return state_->pool->close(deadline).still_running == 0;
}

void claim_polls::start(outbox_service& service, claim_request claim, milliseconds wait,
                        std::shared_ptr<api_request> request, responder answer) {
  if (*state_->active >= state_->options.max_polls) {
    auto busy = problem_response(503, "too many claims are in progress; repeat the request later");
    busy.fields.add("Retry-After", "1");
    answer.answer(std::move(busy));
    return;
  }
  const auto poll = std::make_shared<claim_poll>(service, std::move(claim), std::move(request),
                                                 std::move(answer), state_->active);
  poll->deadline = std::chrono::steady_clock::now() + wait;
  // The connection keeps the poll until its answer was sent.
  poll->answer.watch_client([weak = std::weak_ptr(state_), poll] {
    if (const auto self = weak.lock()) self->on_gone(poll);
  });
  if (!state_->pool->post([self = state_.get(), poll] { self->try_first(poll); })) {
    auto busy = problem_response(503, "the server is busy; repeat the request later");
    busy.fields.add("Retry-After", "1");
    poll->answer.answer(std::move(busy));
  }
}

void claim_polls::drain() {
  std::vector<lane_polls*> lanes;
  {
    const std::scoped_lock lock(state_->mutex);
    state_->draining = true;
    for (const auto& [key, lane] : state_->lanes) lanes.push_back(lane.get());
  }
  for (auto* lane : lanes) {
    state_->answer_all(*lane,
                       [](claim_poll& poll) { return claim_response({.lane = poll.claim.lane}); });
  }
}

std::size_t claim_polls::count() const noexcept { return *state_->active; }

}  // namespace HOLDFAST_NAMESPACE::detail::serve
