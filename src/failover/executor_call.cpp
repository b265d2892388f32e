#include "failover/executor_call.hpp"

#include "failover/call.hpp"
#include "failover/keep.hpp"
#include "failover/recover.hpp"

#include <cxxabi.h>

namespace HOLDFAST_NAMESPACE::detail::failover {

namespace {

using phase = handover::phase;

/// Stores a live answer. A caller whose deadline passes during the put gets the answer at once.
void keep_on_executor(const point_core& point, call_base& call) noexcept {
  if (call.gather() != nullptr) return keep(point, call);
  const auto answer = encode_answer(point, call);
  if (!answer) return;
  {
    const std::scoped_lock lock(call.handover->mutex);
    if (call.handover->state == phase::running) call.handover->state = phase::answered;
  }
  put_encoded(point, *answer);
}

bool is_abandoned(handover& handover) {
  const std::scoped_lock lock(handover.mutex);
  return handover.state == phase::abandoned;
}

/// Gives the result to the caller, or counts the end of a call without a caller.
void end_call(const point_core& point, handover& handover, phase state, std::exception_ptr error) {
  const std::scoped_lock lock(handover.mutex);
  handover.job.reset();
  if (handover.state == phase::abandoned || handover.state == phase::taken) {
    if (state == phase::ended && !error && handover.state == phase::abandoned)
      point.count(counter::late_stored);
    point.detached_calls.fetch_sub(1, std::memory_order_relaxed);
    return;
  }
  handover.state = state;
  handover.error = std::move(error);
  handover.changed.notify_all();
}

void attempt(const std::shared_ptr<point_core>& point, const std::shared_ptr<call_base>& call);

/// Asks for a thread for an attempt. Returns false if there will be none in time.
bool start_attempt(const std::shared_ptr<point_core>& point, const std::shared_ptr<call_base>& call,
                   executor::task work) {
  auto& engine = point->engine;
  auto& handover = *call->handover;
  const auto refused = [point, call] {
    record_result(*point, *call, call_result::none);
    end_call(*point, *call->handover, phase::refused, nullptr);
  };
  // The lock makes the job visible to a caller that leaves.
  const std::scoped_lock lock(handover.mutex);
  if (handover.state != phase::running) return false;
  handover.job = engine.calls().post(point->call_group(), std::move(work),
                                     engine.on_system_clock(call->upstream_deadline), refused);
  return handover.job != nullptr;
}

/// Sets a timer for the next attempt: other calls need this thread. Returns false if there is none.
bool retry_later(const std::shared_ptr<point_core>& point, const std::shared_ptr<call_base>& call,
                 const std::exception_ptr& error) {
  auto& engine = point->engine;
  const auto pause = retry_pause(*point, *call, call_result::failure);
  if (!pause || engine.clock->steady() + *pause >= call->upstream_deadline) return false;
  {
    const std::scoped_lock lock(call->handover->mutex);
    call->handover->job.reset();
  }
  auto work = engine.in_this_context([point, call] { attempt(point, call); });
  const auto retry = [point, call, work = std::move(work), error] {
    if (start_attempt(point, call, work)) return;
    record_result(*point, *call, call_result::failure);
    end_call(*point, *call->handover, phase::ended, error);
  };
  if (!engine.calls().post_after(*pause, retry)) return false;
  point->count(counter::retries);
  return true;
}

/// Runs one attempt, on a thread of the engine. This thread owns the value of the call until the
/// state is `answered` or `ended`.
void attempt(const std::shared_ptr<point_core>& point, const std::shared_ptr<call_base>& call) {
  auto& engine = point->engine;
  auto& handover = *call->handover;
  const std::stop_callback on_close(engine.stop.get_token(),
                                    [&handover] { handover.stop.request_stop(); });
  call->attempt_started = engine.clock->steady();
  std::exception_ptr error;
  try {
    call->invoke({.point = point->name,
                  .deadline = engine.on_system_clock(call->upstream_deadline),
                  .stop = handover.stop.get_token(),
                  .attempt = ++call->attempt});
  } catch (const abi::__forced_unwind&) {  // thread cancellation must not be swallowed
    record_result(*point, *call, call_result::none);
    end_call(*point, handover, phase::ended, refusal("the thread of the call was cancelled"));
    throw;
  } catch (...) {
    error = std::current_exception();
  }
  const auto result = error ? result_of(*point, error) : call_result::success;
  if (result == call_result::failure && point->retry && !is_abandoned(handover) &&
      retry_later(point, call, error))
    return;

  record_result(*point, *call, result);
  if (!error) keep_on_executor(*point, *call);
  end_call(*point, handover, phase::ended, std::move(error));
}

/// Tells the breaker that a call is late. The call still counts for the concurrency limit.
void record_late(const point_core& point, const call_base& call) noexcept {
  if (!point.breaker || call.handover->breaker_informed.exchange(true)) return;
  const auto now = point.engine.clock->steady();
  point.breaker->ended({.allowed = true, .period = call.breaker_period}, now, call_result::failure,
                       now - call.started);
}

/// Waits for the result until the deadline. Returns whether the caller need not wait any longer.
bool wait_for_result(const point_core& point, const call_base& call,
                     std::chrono::steady_clock::time_point deadline) {
  auto& handover = *call.handover;
  std::unique_lock lock(handover.mutex);
  return point.engine.wait(lock, handover.changed, deadline, [&] {
    return handover.state == phase::ended || handover.state == phase::refused;
  });
}

/// The caller stops waiting. Afterwards the call belongs to the caller if the state is `ended`,
/// `refused` or `taken`, and to the thread of the call if it is `abandoned`.
phase leave(const point_core& point, call_base& call) {
  auto& handover = *call.handover;
  std::unique_lock lock(handover.mutex);
  if (handover.state == phase::ended || handover.state == phase::refused) return handover.state;
  const auto state = handover.state =
      handover.state == phase::answered ? phase::taken : phase::abandoned;
  point.detached_calls.fetch_add(1, std::memory_order_relaxed);
  const auto job = handover.job;
  lock.unlock();
  if (!job || !point.engine.calls().leave(*job)) return state;
  // It was still waiting for a thread.
  point.detached_calls.fetch_sub(1, std::memory_order_relaxed);
  record_result(point, call, call_result::none);
  return phase::refused;
}

}  // namespace

void run_on_executor(const std::shared_ptr<point_core>& point,
                     const std::shared_ptr<call_base>& call, call_base& caller_call,
                     shared_result* shared) {
  auto& engine = point->engine;
  const auto fail = [&](std::exception_ptr error, cause_code code) {
    answer_failure(point, caller_call, std::move(error), code, shared);
  };
  const auto refuse = [&] {
    point->count(counter::full_refused);
    fail(refusal("too many calls of '" + point->name + "' are running to answer this one in time"),
         cause_code::refused);
  };
  /// Serves the stored answer instead of a late one, if there is one.
  const auto serve_instead = [&] {
    caller_call.attempt = 1;
    if (!serve_stored(point, caller_call, late_error(*point), shared)) return false;
    point->count(counter::late);
    if (leave(*point, *call) == phase::abandoned) record_late(*point, *call);
    if (point->options.late == late_call::cancel) call->handover->stop.request_stop();
    return true;
  };

  call->handover = std::make_shared<handover>();
  if (auto refused = admit(point, *call)) return fail(std::move(refused), cause_code::refused);
  if (!start_attempt(point, call,
                     engine.in_this_context([point, call] { attempt(point, call); }))) {
    record_result(*point, *call, call_result::none);
    return refuse();
  }

  const auto& soft_timeout = point->options.soft_timeout;
  if (soft_timeout) {
    const auto early = moment_after(call->started, *soft_timeout);
    // The caller may have less time than that.
    if (early < call->upstream_deadline && !wait_for_result(*point, *call, early) &&
        serve_instead())
      return;
  }
  bool recovery_tried = false;
  if (!wait_for_result(*point, *call, call->upstream_deadline) &&
      call->upstream_deadline < call->deadline && caller_call.gather() == nullptr) {
    if (serve_instead()) return;
    // There is nothing to serve, so the rest of the time is for the upstream.
    recovery_tried = true;
    (void)wait_for_result(*point, *call, call->deadline);
  }
  const auto state = leave(*point, *call);
  // Unless the call has ended, its thread still counts the attempts.
  caller_call.attempt = state == phase::ended ? call->attempt : state == phase::refused ? 0 : 1;
  if (state == phase::refused) return refuse();
  if (state == phase::abandoned) {
    record_late(*point, *call);
    point->count(counter::late);
    if (point->options.late == late_call::cancel) call->handover->stop.request_stop();
    const shared_result nothing_served;
    return answer_failure(point, caller_call, late_error(*point), cause_code::late, shared,
                          recovery_tried ? &nothing_served : nullptr);
  }
  if (state == phase::taken) {
    point->warn("store_late",
                "the store did not take an answer within the deadline of its call; the caller has "
                "the answer, and the store may still get it");
  } else if (call->handover->error) {
    return fail(call->handover->error, cause_code::failed);
  }
  if (shared != nullptr) shared->set_live(*call);
  caller_call.move_result(*call);
  finish_answer(*point, caller_call);
}

}  // namespace HOLDFAST_NAMESPACE::detail::failover
