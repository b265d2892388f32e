#include "outbox/worker/event_handling.hpp"

#include <holdfast/error.hpp>

#include <chrono>
#include <exception>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::outbox {

namespace {

/// A batch with slow handlers sends its settlements in parts, so that they are known soon.
constexpr std::chrono::milliseconds longest_unsettled{50};

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
  while (batch) {
    batch = handle_batch(batch);
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
  std::deque<std::shared_ptr<event_batch>> batches;
  {
    const std::scoped_lock lock(context_.mutex);
    batches.swap(waiting_);
  }
  for (const auto& batch : batches) {
    if (std::chrono::steady_clock::now() >= deadline) return;
    (void)handle_batch(batch);
  }
}

std::shared_ptr<event_batch> event_handling::handle_batch(
    const std::shared_ptr<event_batch>& batch) {
  continued_claim next;
  try {
    handle_events(*batch, next);
  } catch (const std::exception& problem) {
    // Only if memory is exhausted. The events become due again when their leases end.
    context_.log.write_limited("outbox.batch", log_level::error,
                               "events were not settled; they come again when their leases end",
                               {{"why", problem.what()}});
  }
  std::vector<std::shared_ptr<event_batch>> next_batches;
  if (!next.claim.events.empty()) {
    context_.metrics.claims.add();
    next_batches = leases_.add(std::move(next.claim), batch->lane, next.claimed_at);
  }
  leases_.remove(batch);
  // This thread continues with the first key. Other threads take the others.
  post(next_batches, 1);
  return next_batches.empty() ? nullptr : next_batches.front();
}

void event_handling::handle_events(event_batch& batch, continued_claim& next) {
  const auto& events = batch.events;
  std::vector<settlement> settlements;
  settlements.reserve(events.size());
  std::string ended_key;  // the rest of its run is not delivered by this batch
  auto settled_at = context_.now();
  auto began_at = settled_at;
  std::size_t handled = 0;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const std::string& key = events[i].event.key;
    if (!key.empty() && key == ended_key) continue;
    if (context_.stopping) {
      settlements.push_back(release_of(events[i].event.id, key));
      ended_key = key;
      continue;
    }
    if (!begin_event(batch, i)) {
      ended_key = key;
      continue;
    }
    settlements.push_back(settling_.decide(batch, i, deliver(batch, i)));
    ++handled;
    const bool last_of_run = i + 1 == events.size() || events[i + 1].event.key != key;
    if (!frees_key(settlements.back())) {
      ended_key = key;
    } else if (last_of_run && !key.empty()) {
      for (const auto& [left_out_id, left_out_key] : batch.left_out) {
        if (left_out_key == key) settlements.push_back(release_of(left_out_id, key));
      }
    }
    const auto now = context_.now();
    if (now - settled_at > longest_unsettled && i + 1 < events.size()) {
      context_.sizing.record(handled, now - began_at);
      settling_.settle(batch, settlements, i + 1, false, next);
      handled = 0;
      settled_at = began_at = context_.now();
    }
  }
  context_.sizing.record(handled, context_.now() - began_at);
  settling_.settle(batch, settlements, events.size(), !context_.stopping, next);
}

bool event_handling::begin_event(event_batch& batch, std::size_t index) {
  const std::scoped_lock lock(batch.mutex);
  batch.current = index;
  if (batch.stop_source.stop_requested()) batch.stop_source = std::stop_source();
  return !batch.lost[index];
}

outcome event_handling::deliver(event_batch& batch, std::size_t index) {
  const auto& event = batch.events[index];
  auto* const route = routes_.find(event.event.type);
  if (route == nullptr) {
    context_.log.write_limited("outbox.type", log_level::warning,
                               "no handler for a type of events; they are left for other workers",
                               {{"type", event.event.type}});
    return outcome::throttled(context_.options.handling.backoff.longest, "no handler for its type");
  }
  breaker::ticket permission{};
  if (route->guard) {
    permission = route->guard->ask(context_.now());
    if (!permission.allowed)
      return outcome::throttled(route->open_time, "the breaker of its type is open");
  }
  std::stop_token lost;
  {
    const std::scoped_lock lock(batch.mutex);
    lost = batch.stop_source.get_token();
  }
  context_.metrics.deliveries.add();
  const auto began_at = context_.now();
  outcome result;
  try {
    result = route->handler(delivery(context_.outbox, event, batch.token, std::move(lost)));
  } catch (const error& problem) {
    result =
        problem.in_doubt() ? outcome::ambiguous(problem.what()) : outcome::retry(problem.what());
  } catch (const std::exception& problem) {
    result = outcome::retry(problem.what());
  } catch (...) {
    result = outcome::retry("the handler threw an exception that is not a std::exception");
  }
  const auto duration = context_.now() - began_at;
  context_.metrics.handle_seconds->observe(std::chrono::duration<double>(duration).count());
  if (route->guard)
    route->guard->ended(permission, context_.now(), breaker_result(result.code()), duration);
  return result;
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
