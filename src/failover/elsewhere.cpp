// A call with a deadline: the upstream runs on the executor and owns all it needs; its caller waits, and leaves in time.

#include "failover/point_core.hpp"

#include <utility>

namespace HOLDFAST_NAMESPACE::detail {

std::exception_ptr late_error(const point_core& point) {
  return std::make_exception_ptr(error(errc::timeout, "'" + point.name + "' did not answer within its deadline", {.transient = true}));
}

namespace {

/// Who waits at the deadline for nothing but the store gets its answer then.
void keep_elsewhere(const point_core& point, call_base& call) noexcept {
  if (call.gather() != nullptr) return keep(point, call);
  const auto kept = keep_later(point, call);
  if (!kept) return;
  {
    auto& meeting = *call.meeting;
    const std::scoped_lock lock(meeting.mutex);
    if (meeting.at == rendezvous::state::running) meeting.at = rendezvous::state::answered;
  }
  put(point, *kept);
}

/// On the executor. The value belongs to this thread until the caller is told, or finds it answered.
void attempt(const std::shared_ptr<point_core>& point, const std::shared_ptr<call_base>& call) {
  auto& engine = point->engine;
  auto& meeting = *call->meeting;
  // The engine's wish to stop reaches every call.
  const std::stop_callback on_close(engine.stop.get_token(), [&meeting] { meeting.stop.request_stop(); });
  call->attempt_began = engine.clock->steady();
  std::exception_ptr error;
  try {
    call->invoke({.point = point->name,
                  .deadline = engine.on_machine_clock(call->started + point->deadline),
                  .stop = meeting.stop.get_token(),
                  .attempt = ++call->attempt});
  } catch (...) {
    error = std::current_exception();
  }
  const auto result = error ? result_of(*point, error) : call_result::success;

  if (result == call_result::failure && point->retry) {
    const auto left = [&] {
      const std::scoped_lock lock(meeting.mutex);
      return meeting.at == rendezvous::state::left;
    };
    const bool refused = point->breaker && point->breaker->state(engine.clock->steady()) == breaker_state::open;
    if (!refused && !left() && !engine.closed.load(std::memory_order_relaxed)) {
      const auto next = point->retry->again(call->attempt);
      if (next.why == retry_plan::refusal::budget) point->count(tally::no_budget);
      // Not within this thread: it is needed by others meanwhile.
      if (next.why == retry_plan::refusal::none &&
          engine.calls().post_after(next.pause, engine.in_this_context([point, call] { attempt(point, call); }))) {
        point->count(tally::retries);
        return;
      }
    }
  }

  told(*point, *call, result);
  if (!error) keep_elsewhere(*point, *call);
  const std::scoped_lock lock(meeting.mutex);
  if (meeting.at == rendezvous::state::left || meeting.at == rendezvous::state::taken) {
    if (!error && meeting.at == rendezvous::state::left) point->count(tally::late_stored);
    point->late_running.fetch_sub(1, std::memory_order_relaxed);
    return;
  }
  meeting.at = rendezvous::state::ended;
  meeting.error = std::move(error);
  meeting.ended.notify_all();
}

}  // namespace

void run_elsewhere(const std::shared_ptr<point_core>& point, const std::shared_ptr<call_base>& call, call_base& mine, landing* how) {
  auto& engine = point->engine;
  const auto fail = [&](std::exception_ptr error, cause_code code) {
    if (how != nullptr) {
      how->error = error;
      how->code = code;
    }
    fail_with(point, mine, std::move(error), code, nullptr, how != nullptr ? &how->found : nullptr);
  };

  call->meeting = std::make_shared<rendezvous>();
  if (auto refusal = ask(point, *call)) return fail(std::move(refusal), cause_code::refused);
  if (!engine.calls().post(engine.in_this_context([point, call] { attempt(point, call); }))) {
    told(*point, *call, call_result::none);
    point->count(tally::full_refused);
    return fail(std::make_exception_ptr(error(errc::unavailable, "no thread is free for '" + point->name + "'", {.transient = true})),
                cause_code::refused);
  }

  auto& meeting = *call->meeting;
  std::exception_ptr error;
  bool ended = false;
  bool taken = false;
  {
    std::unique_lock lock(meeting.mutex);
    ended = engine.wait(lock, meeting.ended, call->started + point->deadline, [&] { return meeting.at == rendezvous::state::ended; });
    if (!ended) {
      taken = meeting.at == rendezvous::state::answered;
      meeting.at = taken ? rendezvous::state::taken : rendezvous::state::left;
      point->late_running.fetch_add(1, std::memory_order_relaxed);
    } else {
      error = meeting.error;
    }
  }
  // From here the call is ours alone if it has ended or was answered, and never ours again if not.
  if (taken) {
    point->warn("store_late",
                "the store did not take an answer within the deadline of its call; the caller has it, the store may get it yet");
    engine.note(point->id_of(mine), mine.from.as_of);  // given before it is there
  } else if (!ended) {
    told_late(*point, *call);
    point->count(tally::late);
    if (point->options.late == late_call::cancel) meeting.stop.request_stop();
    return fail(late_error(*point), cause_code::late);
  }
  if (error) return fail(std::move(error), cause_code::failed);
  if (how != nullptr) {
    how->live = true;
    how->from = call->from;
    how->usable = call->keeps_bytes;
    how->bytes = call->bytes;
  }
  mine.take(*call);
  answered(*point, mine);
}

}  // namespace HOLDFAST_NAMESPACE::detail
