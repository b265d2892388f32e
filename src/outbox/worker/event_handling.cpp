#include "outbox/worker/event_handling.hpp"

#include <holdfast/error.hpp>

#include "base/deadline.hpp"
#include "base/thread.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::outbox {

namespace {

using std::chrono::milliseconds;

/// A batch with slow handlers sends its settlements in parts, so that they are known soon.
constexpr milliseconds longest_unsettled{50};
/// After the time limit of a handler, until its thread is given up.
constexpr milliseconds longest_grace{5000};
/// Delay of events of a type with a limit of its handlers, if many wait already.
constexpr milliseconds refused_slot_delay{1000};

call_result breaker_result(outcome::kind kind) {
  switch (kind) {
    case outcome::kind::done:
    case outcome::kind::permanent:  // the receiver did answer
      return call_result::success;
    case outcome::kind::retry:
    case outcome::kind::ambiguous:
      return call_result::failure;
    case outcome::kind::throttled:
      return call_result::none;
  }
  return call_result::none;
}

/// The event is gone, and the next one of its key may be delivered.
bool frees_key(const settlement& settlement) {
  return settlement.action == settlement::kind::ack ||
         (settlement.action == settlement::kind::park && settlement.policy == park_policy::skip);
}

settlement release_of(const std::string& id, const std::string& key) {
  return {.id = id, .key = key, .action = settlement::kind::release};
}

}  // namespace

void event_handling::post(const std::vector<std::shared_ptr<event_batch>>& batches,
                          std::size_t first) {
  for (std::size_t i = first; i < batches.size(); ++i) {
    auto task = [alive = context_.keep_alive(), this, batch = batches[i]] { handle(batch); };
    // If the executor is full, this thread handles the batch. That delays the next claim, as it
    // should.
    if (!context_.executor->post(task)) task();
  }
}

void event_handling::handle(std::shared_ptr<event_batch> batch) {
  {
    const std::scoped_lock lock(context_.mutex);
    // A worker that stops only releases events, which any thread may do.
    if (busy_threads_ >= context_.options.concurrency && !context_.stopping) {
      waiting_.push_back(std::move(batch));
      return;
    }
    ++busy_threads_;
  }
  handle_until_idle(std::move(batch));
}

void event_handling::handle_until_idle(std::shared_ptr<event_batch> batch) {
  while (batch) {
    auto step = handle_batch(batch);
    if (step.given_up) {
      // The thread that continues with the batch is the busy one.
      const std::scoped_lock lock(context_.mutex);
      --given_up_;
      return;
    }
    batch = std::move(step.batch);
    if (batch) continue;
    const std::scoped_lock lock(context_.mutex);
    if (waiting_.empty()) {
      --busy_threads_;
      return;
    }
    batch = std::move(waiting_.front());
    waiting_.pop_front();
  }
}

void event_handling::release_waiting(steady_time deadline) {
  std::vector<std::shared_ptr<event_batch>> batches;
  {
    const std::scoped_lock lock(context_.mutex);
    batches.assign(waiting_.begin(), waiting_.end());
    waiting_.clear();
  }
  std::vector<std::shared_ptr<event_batch>> suspended;
  {
    const std::scoped_lock lock(context_.mutex);
    suspended = routes_.take_waiting();
  }
  for (const auto& batch : suspended) leases_.resume(*batch);
  batches.insert(batches.end(), suspended.begin(), suspended.end());
  for (const auto& batch : batches) {
    if (std::chrono::steady_clock::now() >= deadline) return;
    (void)handle_batch(batch);
  }
}

event_handling::next_step event_handling::handle_batch(const std::shared_ptr<event_batch>& batch) {
  continued_claim next;
  auto status = batch_status::finished;
  try {
    status = handle_events(batch, next);
  } catch (const std::exception& problem) {
    // Only if memory is exhausted. The events become due again when their leases end.
    context_.log.write_limited("outbox.batch", log_level::error,
                               "events were not settled; they come again when their leases end",
                               {{"why", problem.what()}});
  }
  if (status == batch_status::given_up) return {.given_up = true};
  if (status == batch_status::waiting) return {};
  std::vector<std::shared_ptr<event_batch>> next_batches;
  if (!next.claim.events.empty()) {
    context_.metrics.claims.add();
    next_batches = leases_.add(std::move(next.claim), batch->lane, next.claimed_at, next.lease);
  }
  leases_.remove(batch);
  // This thread continues with the first key. Other threads take the others.
  post(next_batches, 1);
  return {.batch = next_batches.empty() ? nullptr : next_batches.front()};
}

event_handling::batch_status event_handling::handle_events(
    const std::shared_ptr<event_batch>& shared_batch, continued_claim& next) {
  auto& batch = *shared_batch;
  auto& state = batch.state;
  const auto& events = batch.events;
  if (!std::exchange(state.started, true)) {
    state.settlements.reserve(events.size());
    state.settled_at = context_.now();
  }
  while (state.next < events.size()) {
    const auto& event = events[state.next].event;
    if (!event.key.empty() && event.key == state.ended_key) {
      ++state.next;
      continue;
    }
    if (context_.stopping) {
      state.settlements.push_back(release_of(event.id, event.key));
      state.ended_key = event.key;
      ++state.next;
      continue;
    }
    const auto status = deliver_next(shared_batch);
    if (status != batch_status::finished) return status;
    if (context_.now() - state.settled_at > longest_unsettled && state.next < events.size())
      settle(batch, false, next);
  }
  settle(batch, !context_.stopping, next);
  return batch_status::finished;
}

event_handling::batch_status event_handling::deliver_next(
    const std::shared_ptr<event_batch>& shared_batch) {
  auto& batch = *shared_batch;
  auto& state = batch.state;
  const auto& event = batch.events[state.next].event;
  auto* const route = routes_.find(event.type);
  const std::size_t count =
      begin_events(batch, state.next, route != nullptr ? group_size(batch, state.next, *route) : 1);
  if (count == 0) {
    if (route != nullptr) wake_waiting(*route);  // this batch may have been woken for a free slot
    state.ended_key = event.key;
    ++state.next;
    return batch_status::finished;
  }
  const auto postpone = [&](milliseconds delay, const char* reason) {
    add_outcomes(batch, {outcome::throttled(delay, reason)});
    return batch_status::finished;
  };
  if (route == nullptr) {
    context_.metrics.unhandled.add();
    context_.log.write_limited("outbox.type." + event.type, log_level::warning,
                               "no handler for a type of events; they wait for another worker",
                               {{"type", event.type}});
    return postpone(context_.options.handling.backoff.longest, "no handler for its type");
  }
  switch (acquire_slot(*route, shared_batch)) {
    case slot_status::acquired:
      break;
    case slot_status::waiting:
      return batch_status::waiting;
    case slot_status::refused:
      return postpone(refused_slot_delay, "enough handlers of its type are running");
  }
  const auto began_at = context_.now();
  auto call = std::make_shared<handler_call>();
  call->route = route;
  if (route->guard) {
    call->permission = route->guard->ask(began_at);
    if (!call->permission.allowed) {
      release_slot(*route);
      return postpone(route->open_time, "the breaker of its type is open");
    }
  }
  if (const auto limit = route->options.time_limit; limit.count() > 0) {
    call->limit = moment_after(began_at, limit);
    call->give_up_at = moment_after(call->limit, std::min<milliseconds>(limit / 4, longest_grace));
  }
  const auto outcomes = call_handler(batch, count, call);
  if (!outcomes) return batch_status::given_up;
  const auto duration = context_.now() - began_at;
  context_.metrics.handle_seconds->observe(std::chrono::duration<double>(duration).count());
  state.handled += outcomes->size();
  state.handle_time += duration;
  record_outcomes(batch, *call, *outcomes, duration);
  add_outcomes(batch, *outcomes);
  return batch_status::finished;
}

/// Tells the log, the breaker and the limit of the type that a handler returned or was given up.
/// The outcomes are those of the events from `state.next` on.
void event_handling::record_outcomes(const event_batch& batch, const handler_call& call,
                                     const std::vector<outcome>& outcomes,
                                     std::chrono::nanoseconds duration) {
  for (std::size_t i = 0; i < outcomes.size(); ++i)
    delivery_log_.record(batch.events[batch.state.next + i].event.type, outcomes[i]);
  if (call.route->guard) {
    const auto failure =
        std::ranges::find(outcomes, call_result::failure,
                          [](const outcome& result) { return breaker_result(result.code()); });
    const auto result =
        failure != outcomes.end() ? call_result::failure : breaker_result(outcomes.front().code());
    call.route->guard->ended(call.permission, context_.now(), result, duration);
  }
  release_slot(*call.route);
}

std::size_t event_handling::begin_events(event_batch& batch, std::size_t first, std::size_t count) {
  const auto now = context_.now();
  std::size_t expired = 0;
  std::size_t deliverable = 0;
  {
    const std::scoped_lock lock(batch.mutex);
    batch.current = first;
    if (batch.stop_source.stop_requested()) batch.stop_source = std::stop_source();
    // The thread that renews leases may hang in a call. The end of a lease is known without it.
    if (now >= batch.lease_end) {
      for (std::size_t i = first; i < batch.lost.size(); ++i) expired += batch.lost[i] ? 0 : 1;
      batch.lost.assign(batch.events.size(), true);
    }
    while (deliverable < count && !batch.lost[first + deliverable]) ++deliverable;
    batch.current_count = std::max<std::size_t>(deliverable, 1);
  }
  if (expired > 0) {
    context_.metrics.fenced.add(expired);
    context_.log.write_limited("outbox.lease", log_level::warning,
                               "leases ended before their events were handled; they are delivered "
                               "again",
                               {{"events", std::to_string(expired)}});
  }
  return deliverable;
}

std::size_t event_handling::group_size(const event_batch& batch, std::size_t first,
                                       const handler_route& route) const {
  const auto& events = batch.events;
  std::size_t count = 1;
  while (count < route.most && first + count < events.size()) {
    const auto& event = events[first + count].event;
    if (routes_.find(event.type) != &route) break;
    if (event.type != events[first].event.type && !routes_.mixes_types(route)) break;
    if (!event.key.empty() && event.key == batch.state.ended_key) break;
    ++count;
  }
  return count;
}

std::optional<std::vector<outcome>> event_handling::call_handler(
    event_batch& batch, std::size_t count, const std::shared_ptr<handler_call>& call) {
  // From the moment the call is known, another thread may take the batch over.
  const auto events = std::span(batch.events).subspan(batch.state.next, count);
  std::stop_token lost;
  {
    const std::scoped_lock lock(batch.mutex);
    lost = batch.stop_source.get_token();
    batch.call = call;
  }
  context_.metrics.deliveries.add(count);
  std::vector<outcome> outcomes;
  try {
    outcomes = call_route(*call->route, events, batch.token, lost);
  } catch (const error& problem) {
    outcomes.assign(count, problem.in_doubt() ? outcome::ambiguous(problem.what())
                                              : outcome::retry(problem.what()));
  } catch (const std::exception& problem) {
    outcomes.assign(count, outcome::retry(problem.what()));
  } catch (...) {
    outcomes.assign(count,
                    outcome::retry("the handler threw an exception that is not a std::exception"));
  }
  const std::scoped_lock lock(batch.mutex);
  if (call->given_up) return std::nullopt;
  batch.call.reset();
  return outcomes;
}

std::vector<outcome> event_handling::call_route(const handler_route& route,
                                                std::span<const claimed_event> events,
                                                holdfast::fence token,
                                                const std::stop_token& lost) const {
  if (route.handler) return {route.handler(delivery(context_.outbox, events.front(), token, lost))};
  std::deque<delivery> deliveries;  // a delivery cannot be moved
  std::vector<const delivery*> pointers;
  for (const auto& event : events)
    pointers.push_back(&deliveries.emplace_back(context_.outbox, event, token, lost));
  auto outcomes = route.handle_batch(pointers);
  if (outcomes.size() == events.size()) return outcomes;
  return std::vector<outcome>(
      events.size(), outcome::retry("the handler returned " + std::to_string(outcomes.size()) +
                                    " outcomes for " + std::to_string(events.size()) + " events"));
}

void event_handling::add_outcomes(event_batch& batch, const std::vector<outcome>& outcomes) {
  auto& state = batch.state;
  const auto& events = batch.events;
  for (const auto& result : outcomes) {
    const std::size_t i = state.next++;
    const std::string& key = events[i].event.key;
    // An event of a key that was not done before it. It comes again after that one.
    if (!key.empty() && key == state.ended_key) continue;
    state.settlements.push_back(settling_.decide(batch, i, result));
    const bool last_of_run = i + 1 == events.size() || events[i + 1].event.key != key;
    if (!frees_key(state.settlements.back())) {
      state.ended_key = key;
    } else if (last_of_run && !key.empty()) {
      for (const auto& [left_out_id, left_out_key] : batch.left_out) {
        if (left_out_key == key) state.settlements.push_back(release_of(left_out_id, key));
      }
    }
  }
}

void event_handling::settle(event_batch& batch, bool claim_next_runs, continued_claim& next) {
  auto& state = batch.state;
  const auto began_at = context_.now();
  settling_.settle(batch, state.settlements, state.next, claim_next_runs, next);
  state.settled_at = context_.now();
  context_.sizing.record(state.handled, state.handle_time, state.settled_at - began_at);
  state.handled = 0;
  state.handle_time = {};
}

// ---- the limit of a type ----

event_handling::slot_status event_handling::acquire_slot(
    handler_route& route, const std::shared_ptr<event_batch>& batch) {
  const std::size_t limit = route.options.concurrency;
  if (limit == 0) return slot_status::acquired;
  {
    const std::scoped_lock lock(context_.mutex);
    if (route.running < limit) {
      ++route.running;
      return slot_status::acquired;
    }
  }
  // Outcomes so far must not wait for other handlers.
  continued_claim ignored;
  if (!batch->state.settlements.empty()) settle(*batch, false, ignored);
  if (!leases_.suspend(*batch)) return slot_status::refused;
  bool acquired = false;
  {
    const std::scoped_lock lock(context_.mutex);
    acquired = route.running < limit;
    if (acquired) {
      ++route.running;
    } else if (!context_.stopping) {
      route.waiting.push_back(batch);
      return slot_status::waiting;
    }
  }
  leases_.resume(*batch);
  return acquired ? slot_status::acquired : slot_status::refused;
}

void event_handling::release_slot(handler_route& route) {
  if (route.options.concurrency == 0) return;
  {
    const std::scoped_lock lock(context_.mutex);
    --route.running;
  }
  wake_waiting(route);
}

void event_handling::wake_waiting(handler_route& route) {
  std::shared_ptr<event_batch> batch;
  {
    const std::scoped_lock lock(context_.mutex);
    if (route.waiting.empty() || route.running >= route.options.concurrency) return;
    batch = std::move(route.waiting.front());
    route.waiting.pop_front();
  }
  leases_.resume(*batch);
  if (context_.executor->post([alive = context_.keep_alive(), this, batch] { handle(batch); }))
    return;
  const std::scoped_lock lock(context_.mutex);
  waiting_.push_back(std::move(batch));  // this thread takes it when it is done
}

// ---- time limits ----

void event_handling::check_time_limits(steady_time now) {
  std::vector<late_call> late_calls;
  std::vector<std::stop_source> handlers;
  std::size_t hanging = 0;
  for (const auto& batch : leases_.batches()) {
    const std::scoped_lock lock(context_.mutex, batch->mutex);
    if (!batch->call || now < batch->call->limit) continue;
    auto& call = *batch->call;
    if (!std::exchange(call.stop_requested, true)) {
      handlers.push_back(batch->stop_source);
      call.give_up_at = moment_after(now, call.give_up_at - call.limit);  // this check may be late
    }
    if (now < call.give_up_at) continue;
    if (given_up_ >= context_.options.concurrency) {
      ++hanging;
      continue;
    }
    ++given_up_;
    batch->call->given_up = true;
    late_calls.push_back({.batch = batch,
                          .call = std::exchange(batch->call, nullptr),
                          .count = batch->current_count});
  }
  // Stop is requested without a lock: callbacks of handlers may do anything.
  for (auto& handler : handlers) handler.request_stop();
  if (hanging > 0) {
    context_.log.write_limited(
        "outbox.hang", log_level::error,
        "too many handlers hang after their time limit; the worker delivers with fewer threads",
        {{"handlers", std::to_string(hanging + context_.options.concurrency)}});
  }
  for (const auto& late : late_calls) replace_thread(late);
}

/// Another thread continues with the batch of a handler that was given up.
void event_handling::replace_thread(const late_call& late) {
  context_.metrics.timed_out.add();
  context_.log.write_limited(
      "outbox.time_limit", log_level::warning,
      "a handler did not return after its time limit; its event counts as failed",
      {{"type", late.batch->events[late.batch->state.next].event.type}});
  auto task = [alive = context_.keep_alive(), this, late] { continue_batch(late); };
  if (context_.executor->post(task)) return;
  try {
    start_quiet_thread("holdfast-event", std::move(task)).detach();
  } catch (const std::exception& problem) {
    context_.log.write_limited("outbox.batch", log_level::error,
                               "events were not settled; they come again when their leases end",
                               {{"why", problem.what()}});
    release_slot(*late.call->route);
    leases_.remove(late.batch);
    const std::scoped_lock lock(context_.mutex);
    --busy_threads_;
  }
}

void event_handling::continue_batch(const late_call& late) {
  const auto limit = late.call->route->options.time_limit;
  const std::vector<outcome> outcomes(late.count,
                                      outcome::ambiguous("the handler exceeded its time limit of " +
                                                         std::to_string(limit.count()) + " ms"));
  record_outcomes(*late.batch, *late.call, outcomes, limit);
  add_outcomes(*late.batch, outcomes);
  handle_until_idle(late.batch);
}

std::size_t event_handling::given_up() const {
  const std::scoped_lock lock(context_.mutex);
  return given_up_;
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
