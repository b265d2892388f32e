// A call: soft expiry -> single flight -> upstream -> keep the answer (keep.cpp), or recover
// (recover.cpp). Calls with a deadline run on the executor (executor_call.cpp).

#include "failover/call.hpp"

#include "base/duration_limit.hpp"
#include "failover/executor_call.hpp"
#include "failover/insight/call_notes.hpp"
#include "failover/insight/drill.hpp"
#include "failover/keep.hpp"
#include "failover/recover.hpp"
#include "failover/report.hpp"

#include <cxxabi.h>

namespace HOLDFAST_NAMESPACE::detail::failover {

call_base::~call_base() = default;

call_mode mode_of(const point_core& point) noexcept { return point.mode; }
bool has_retries(const point_core& point) noexcept { return point.retry != nullptr; }
const holdfast::key::failover_keys& keys_of(const point_core& point) noexcept { return point.keys; }
bool varies(const point_core& point) noexcept { return !point.options.vary.empty(); }

std::string vary_text(const point_core& point) {
  std::string text;
  // Values are escaped, so two callers with different values never have the same key.
  for (const auto& dimension : point.options.vary) {
    const auto value = point.engine.options.caller.vary(dimension);
    if (!value)
      throw error(errc::not_found,
                  "the caller has no '" + dimension + "', which this point varies by");
    text.append("|").append(dimension).append("=");
    for (const char c : *value) {
      if (c == '|' || c == '\\' || c == '=') text += '\\';
      text += c;
    }
  }
  return text;
}

std::string varied_key(const point_core& point, std::string raw) {
  return point.keys.of_raw(raw += vary_text(point));
}

void record_missing_key(const point_core& point, call_base& call) noexcept {
  call.key.clear();
  point.count(counter::unkeyed);
  point.warn("unkeyed",
             "a call has no key and is not protected; check that its arguments, tenant and "
             "dimensions have values",
             std::current_exception());
}

namespace {

/// Sets the start of the call, and its deadlines if it has any.
void set_times(const point_core& point, call_base& call) noexcept {
  auto& engine = point.engine;
  call.started = engine.clock->steady();
  auto limit = point.deadline;
  if (call.time_limit.count() != 0 && (limit.count() == 0 || call.time_limit < limit))
    limit = limit_duration(call.time_limit);
  if (limit.count() == 0) return;
  call.deadline = moment_after(call.started, limit);
  // Reading a store in memory takes no time worth reserving.
  call.upstream_deadline =
      engine.reads_block ? call.deadline - engine.reading.reserve(limit) : call.deadline;
}

}  // namespace

void start(const point_core& point, call_base& call) {
  auto& engine = point.engine;
  point.counts.add(counter::started);
  if (engine.closed.load(std::memory_order_acquire)) {
    point.count(counter::abandoned);
    throw error(errc::unavailable,
                "the engine is closed; '" + point.name + "' takes no more calls");
  }
  if (engine.report_refused.load(std::memory_order_relaxed) &&
      engine.report_refused.exchange(false))
    schedule_report(engine);
  if (engine.options.caller.tenant && !call.key.empty()) {
    try {
      call.realm = engine.options.caller.tenant();
    } catch (...) {
      record_missing_key(point, call);
    }
  }
  call.now = engine.clock->now();
  if (point.timed || call.time_limit.count() != 0) set_times(point, call);
  call.provenance.as_of = engine.stamp(call.now);
  if (point.insight) note_start(point, call);
}

std::exception_ptr refusal(const std::string& message) {
  return std::make_exception_ptr(error(errc::unavailable, message, {.transient = true}));
}

std::exception_ptr admit(const std::shared_ptr<point_core>& point, call_base& call) {
  call.attempt_started = call.started;
  if (point->retry) point->retry->record_call();
  if (!point->guarded) return nullptr;
  if (point->limit.limited()) {
    if (!point->limit.enter()) {
      point->count(counter::limit_refused);
      return refusal("too many calls of '" + point->name + "' are running");
    }
    call.in_limit = true;
  }
  if (point->breaker) {
    const auto permission = point->breaker->ask(point->engine.clock->steady());
    if (!permission.allowed) {
      if (std::exchange(call.in_limit, false)) point->limit.leave();
      point->count(counter::breaker_refused);
      return refusal("the breaker of '" + point->name + "' is open");
    }
    call.breaker_waits = true;
    call.breaker_period = permission.period;
  }
  return nullptr;
}

void record_result(const point_core& point, call_base& call, call_result result) noexcept {
  if (!point.guarded && !point.meters) return;
  const auto now = point.engine.clock->steady();
  if (point.meters && result != call_result::none)
    point.meters->upstream(now - call.attempt_started, result == call_result::success);
  if (std::exchange(call.breaker_waits, false) &&
      !(call.handover && call.handover->breaker_informed.exchange(true)))
    point.breaker->ended({.allowed = true, .period = call.breaker_period}, now, result,
                         now - call.started);
  if (std::exchange(call.in_limit, false)) point.limit.leave();
}

call_result result_of(const point_core& point, const std::exception_ptr& error) noexcept {
  if (failure_rules::never_recovered(error)) return call_result::none;
  return point.options.classify(error) == on_failure::recover ? call_result::failure
                                                              : call_result::success;
}

std::optional<std::chrono::microseconds> retry_pause(const point_core& point, const call_base& call,
                                                     call_result result) {
  if (!point.retry || result != call_result::failure ||
      point.engine.closed.load(std::memory_order_relaxed))
    return std::nullopt;
  if (point.breaker && point.breaker->state(point.engine.clock->steady()) == breaker_state::open)
    return std::nullopt;
  const auto next = point.retry->next(call.attempt);
  if (next.refused_by == retry_plan::refusal::budget) point.count(counter::no_budget);
  if (next.refused_by != retry_plan::refusal::none) return std::nullopt;
  return next.pause;
}

std::exception_ptr call_upstream(const std::shared_ptr<point_core>& point, call_base& call,
                                 cause_code& code) {
  if (auto refused = admit(point, call)) {
    code = cause_code::refused;
    return refused;
  }
  auto& engine = point->engine;
  call_context context;
  if (point->type.takes_context) context = {.point = point->name, .stop = engine.stop.get_token()};
  for (;;) {
    std::exception_ptr error;
    context.attempt = ++call.attempt;
    try {
      call.invoke(context);
      record_result(*point, call, call_result::success);
      return nullptr;
    } catch (const abi::__forced_unwind&) {  // thread cancellation must not be swallowed
      record_result(*point, call, call_result::none);
      point->count(counter::abandoned);
      throw;
    } catch (...) {
      error = std::current_exception();
    }
    if (!point->guarded && !point->retry && !point->meters) return error;
    const auto result = result_of(*point, error);
    const auto pause = retry_pause(*point, call, result);
    if (!pause) {
      record_result(*point, call, result);
      return error;
    }
    point->count(counter::retries);
    if (point->meters)
      point->meters->upstream(engine.clock->steady() - call.attempt_started, false);
    engine.pause(*pause);
    call.attempt_started = engine.clock->steady();
  }
}

void finish_live(const std::shared_ptr<point_core>& point, call_base& call) {
  record_result(*point, call, call_result::success);
  keep(*point, call);
  finish_answer(*point, call);
}

void finish_failed(const std::shared_ptr<point_core>& point, call_base& call,
                   std::exception_ptr error, cause_code code) {
  if (point->guarded || point->meters)
    record_result(*point, call,
                  code == cause_code::late ? call_result::failure : result_of(*point, error));
  answer_failure(point, call, std::move(error), code);
}

bool finish_in_drill(const std::shared_ptr<point_core>& point, call_base& call) {
  if (!point->drill.active() || !serve_in_drill(point, call)) return false;
  record_result(*point, call, call_result::none);
  return true;
}

void abandon(const std::shared_ptr<point_core>& point, call_base& call) noexcept {
  record_result(*point, call, call_result::none);
  point->count(counter::abandoned);
}

std::exception_ptr late_error(const point_core& point) {
  return std::make_exception_ptr(error(errc::timeout,
                                       "'" + point.name + "' did not answer within its deadline",
                                       {.transient = true}));
}

std::string flight_id(const point_core& point, const call_base& call) {
  return point.name + '\0' + call.realm + '\0' + call.key;
}

namespace {

void run_on_caller(const std::shared_ptr<point_core>& point, call_base& call,
                   shared_result* shared) {
  auto code = cause_code::failed;
  if (auto error = call_upstream(point, call, code))
    return answer_failure(point, call, std::move(error), code, shared);
  keep(*point, call);
  if (shared != nullptr) shared->set_live(call);
  finish_answer(*point, call);
}

/// Gives a follower the result of the leader. Returns false if the follower must call the upstream.
bool use_shared_result(const std::shared_ptr<point_core>& point, call_base& call,
                       const shared_result& shared) {
  if (!shared.live) {
    if (!shared.error) return false;  // the leader's thread was cancelled
    point->count(counter::coalesced);
    answer_failure(point, call, shared.error, shared.code, nullptr, &shared);
    return true;
  }
  if (!shared.has_bytes) return false;
  try {
    if (shared.bytes) call.decode(*shared.bytes);
    else call.make_empty();
  } catch (...) {
    return false;
  }
  point->count(counter::coalesced);
  call.provenance = shared.provenance;
  finish_answer(*point, call);
  return true;
}

/// Finishes a shared call in its destructor, so that followers never wait for a leader that threw.
class shared_call_guard {
 public:
  shared_call_guard(single_flight& calls, std::string id, std::shared_ptr<shared_call> call)
      : calls_(calls), id_(std::move(id)), call_(std::move(call)) {}
  shared_call_guard(const shared_call_guard&) = delete;
  shared_call_guard& operator=(const shared_call_guard&) = delete;
  ~shared_call_guard() { calls_.finish(id_, call_, std::move(result)); }

  shared_result result{};

 private:
  single_flight& calls_;
  const std::string id_;
  const std::shared_ptr<shared_call> call_;
};

/// How long a caller without a deadline waits for the leader of its key before it becomes the
/// leader itself, because the upstream may never answer the first one.
std::chrono::steady_clock::duration patience_of(const point_core& point) {
  const auto usual = point.shared_call_time.load(std::memory_order_relaxed);
  return std::max<std::chrono::steady_clock::duration>(std::chrono::seconds(1), 4 * usual);
}

void record_shared_call_time(const point_core& point, const call_base& call) {
  const auto duration = point.engine.clock->steady() - call.started;
  const auto usual = point.shared_call_time.load(std::memory_order_relaxed);
  point.shared_call_time.store(usual + (duration - usual) / 4, std::memory_order_relaxed);
}

/// Runs `run_call(shared_result*)` as the leader of its key, or waits for the leader and uses its
/// result. `upstream_call` is the call that `run_call` runs. `call` gets the result: it is another
/// call if the first one runs on the executor, because the caller may leave before it ends.
template <class Run>
void run_shared(const std::shared_ptr<point_core>& point, call_base& upstream_call, call_base& call,
                Run run_call) {
  if (!point->options.single_flight || call.key.empty()) return run_call(nullptr);
  auto& engine = point->engine;
  const bool has_deadline = call.deadline != std::chrono::steady_clock::time_point::max();
  auto id = flight_id(*point, call);
  for (;;) {
    auto joined = engine.shared_calls.join(id);
    if (joined.leader) {
      shared_call_guard guard(engine.shared_calls, std::move(id), std::move(joined.call));
      upstream_call.shares_bytes = true;
      run_call(&guard.result);
      return record_shared_call_time(*point, call);
    }
    const auto wait_until = [&](std::chrono::steady_clock::time_point deadline) {
      std::unique_lock lock(joined.call->mutex);
      return engine.wait(lock, joined.call->finished, deadline,
                         [&] { return joined.call->result.has_value(); });
    };
    const auto count_late = [&] {
      point->count(counter::coalesced);
      point->count(counter::late);
    };
    bool finished = wait_until(has_deadline ? call.upstream_deadline
                                            : engine.clock->steady() + patience_of(*point));
    bool recovery_tried = false;
    if (!finished && call.upstream_deadline < call.deadline && call.gather() == nullptr) {
      if (serve_stored(point, call, late_error(*point), nullptr)) return count_late();
      recovery_tried = true;
      finished = wait_until(call.deadline);
    }
    if (finished) {
      const auto& result = joined.call->result;
      // A leader with less time than this caller was late. This caller has time for another call.
      const bool was_late = result && !result->live && result->code == cause_code::late;
      if (was_late && engine.clock->steady() < call.upstream_deadline) continue;
      if (!result || !use_shared_result(point, call, *result)) run_call(nullptr);
      return;
    }
    if (has_deadline) {
      count_late();
      const shared_result nothing_served;
      return answer_failure(point, call, late_error(*point), cause_code::late, nullptr,
                            recovery_tried ? &nothing_served : nullptr);
    }
    engine.shared_calls.give_up(id, joined.call);
  }
}

}  // namespace

void run(const std::shared_ptr<point_core>& point, call_base& call) {
  if (point->options.soft_expiry && !call.key.empty() && serve_before_call(point, call)) return;
  if (point->drill.active() && serve_in_drill(point, call)) return;
  run_shared(point, call, call, [&](shared_result* shared) { run_on_caller(point, call, shared); });
}

void run_owned(const std::shared_ptr<point_core>& point, const std::shared_ptr<call_base>& call,
               call_base& caller_call) {
  caller_call.key = call->key;
  caller_call.realm = call->realm;
  caller_call.now = call->now;
  caller_call.started = call->started;
  caller_call.deadline = call->deadline;
  caller_call.upstream_deadline = call->upstream_deadline;
  caller_call.provenance = call->provenance;
  caller_call.notes = call->notes;
  if (point->options.soft_expiry && !call->key.empty() &&
      serve_before_call(point, caller_call, call))
    return;
  if (point->drill.active()) {
    if (serve_in_drill(point, caller_call)) return;
    call->deadline = caller_call.deadline;
    call->upstream_deadline = caller_call.upstream_deadline;
  }
  run_shared(point, *call, caller_call,
             [&](shared_result* shared) { run_on_executor(point, call, caller_call, shared); });
}

void run_bypassed(const point_core& point, call_base& call) {
  call_context context;
  if (point.type.takes_context)
    context = {.point = point.name, .stop = point.engine.stop.get_token()};
  call.provenance.as_of = point.engine.clock->now();
  call.invoke(context);
}

}  // namespace HOLDFAST_NAMESPACE::detail::failover
