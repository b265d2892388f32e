#include "failover/executor_call.hpp"

#include "failover/call.hpp"
#include "failover/keep.hpp"
#include "failover/recover.hpp"

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

/// Runs one attempt, on the executor. This thread owns the value of the call until the state is
/// `answered` or `ended`.
void attempt(const std::shared_ptr<point_core>& point, const std::shared_ptr<call_base>& call) {
  auto& engine = point->engine;
  auto& handover = *call->handover;
  const std::stop_callback on_close(engine.stop.get_token(),
                                    [&handover] { handover.stop.request_stop(); });
  call->attempt_started = engine.clock->steady();
  std::exception_ptr error;
  try {
    call->invoke({.point = point->name,
                  .deadline = engine.on_system_clock(call->started + point->deadline),
                  .stop = handover.stop.get_token(),
                  .attempt = ++call->attempt});
  } catch (...) {
    error = std::current_exception();
  }
  const auto result = error ? result_of(*point, error) : call_result::success;

  const auto abandoned = [&] {
    const std::scoped_lock lock(handover.mutex);
    return handover.state == phase::abandoned;
  };
  if (result == call_result::failure && point->retry && !abandoned()) {
    // A timer, not a sleep: other calls need this thread.
    const auto pause = retry_pause(*point, *call, result);
    if (pause && engine.calls().post_after(
                     *pause, engine.in_this_context([point, call] { attempt(point, call); }))) {
      point->count(counter::retries);
      return;
    }
  }

  record_result(*point, *call, result);
  if (!error) keep_on_executor(*point, *call);
  const std::scoped_lock lock(handover.mutex);
  if (handover.state == phase::abandoned || handover.state == phase::taken) {
    if (!error && handover.state == phase::abandoned) point->count(counter::late_stored);
    point->detached_calls.fetch_sub(1, std::memory_order_relaxed);
    return;
  }
  handover.state = phase::ended;
  handover.error = std::move(error);
  handover.changed.notify_all();
}

/// Tells the breaker that a call is late. The call still counts for the concurrency limit.
void record_late(const point_core& point, const call_base& call) noexcept {
  if (!point.breaker || call.handover->breaker_informed.exchange(true)) return;
  const auto now = point.engine.clock->steady();
  point.breaker->ended({.allowed = true, .period = call.breaker_period}, now, call_result::failure,
                       now - call.started);
}

/// Waits for the call until the deadline. Afterwards the call belongs to the caller if the state is
/// `ended` or `taken`, and to the thread of the call if it is `abandoned`.
phase wait_for_call(const point_core& point, const call_base& call) {
  auto& handover = *call.handover;
  std::unique_lock lock(handover.mutex);
  if (!point.engine.wait(lock, handover.changed, call.started + point.deadline,
                         [&] { return handover.state == phase::ended; })) {
    handover.state = handover.state == phase::answered ? phase::taken : phase::abandoned;
    point.detached_calls.fetch_add(1, std::memory_order_relaxed);
  }
  return handover.state;
}

}  // namespace

void run_on_executor(const std::shared_ptr<point_core>& point,
                     const std::shared_ptr<call_base>& call, call_base& caller_call,
                     shared_result* shared) {
  auto& engine = point->engine;
  const auto fail = [&](std::exception_ptr error, cause_code code) {
    answer_failure(point, caller_call, std::move(error), code, shared);
  };

  call->handover = std::make_shared<handover>();
  if (auto refused = admit(point, *call)) return fail(std::move(refused), cause_code::refused);
  if (!engine.calls().post(engine.in_this_context([point, call] { attempt(point, call); }))) {
    record_result(*point, *call, call_result::none);
    point->count(counter::full_refused);
    return fail(refusal("no thread is free for '" + point->name + "'"), cause_code::refused);
  }

  const auto state = wait_for_call(*point, *call);
  if (state == phase::abandoned) {
    record_late(*point, *call);
    point->count(counter::late);
    if (point->options.late == late_call::cancel) call->handover->stop.request_stop();
    return fail(late_error(*point), cause_code::late);
  }
  if (state == phase::taken) {
    point->warn("store_late",
                "the store did not take an answer within the deadline of its call; the caller has "
                "the answer, and the store may still get it");
    engine.note_served(point->row_id(caller_call), caller_call.provenance.as_of);
  } else if (call->handover->error) {
    return fail(call->handover->error, cause_code::failed);
  }
  if (shared != nullptr) shared->set_live(*call);
  caller_call.move_result(*call);
  finish_answer(*point, caller_call);
}

}  // namespace HOLDFAST_NAMESPACE::detail::failover
