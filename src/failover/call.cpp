// A call on its caller's thread: key -> young enough? -> share a flight -> upstream -> keep, or recover (recover.cpp).

#include "failover/point_core.hpp"

#include <cxxabi.h>

#include <utility>

namespace HOLDFAST_NAMESPACE::detail {

call_base::~call_base() = default;

way way_of(const point_core& point) noexcept { return point.how; }
bool repeats(const point_core& point) noexcept { return point.retry != nullptr; }
const key::failover_keys& keys_of(const point_core& point) noexcept { return point.keys; }
bool varies(const point_core& point) noexcept { return !point.options.vary.empty(); }

std::string vary_text(const point_core& point) {
  std::string text;
  // Values are escaped, so the last bare `|` is where the arguments end: no two callers share a key.
  for (const auto& dimension : point.options.vary) {
    const auto value = point.engine.options.vary(dimension);
    if (!value) throw error(errc::not_found, "the caller has no '" + dimension + "', which this point varies by");
    text += '|';
    text += dimension;
    text += '=';
    for (const char c : *value) {
      if (c == '|' || c == '\\' || c == '=') text += '\\';
      text += c;
    }
  }
  return text;
}

std::string varied_key(const point_core& point, std::string raw) { return point.keys.of_raw(raw += vary_text(point)); }

void unkeyed(const point_core& point, call_base& call) noexcept {
  call.key.clear();
  point.count(tally::unkeyed);
  point.warn("unkeyed", "a call got no key and is not protected; see that its arguments, tenant and dimensions have values",
             std::current_exception());
}

void start(const point_core& point, call_base& call) {
  auto& engine = point.engine;
  point.tallies.add(tally::started);
  if (engine.closed.load(std::memory_order_acquire)) {
    point.count(tally::abandoned);
    throw error(errc::unavailable, "the engine is closed; '" + point.name + "' takes no more calls");
  }
  if (engine.report_refused.load(std::memory_order_relaxed) && engine.report_refused.exchange(false)) engine.report_later();
  if (engine.options.tenant && !call.key.empty()) {
    try {
      call.realm = engine.options.tenant();
    } catch (...) {
      unkeyed(point, call);
    }
  }
  call.now = engine.clock->now();
  if (point.timed) call.started = engine.clock->steady();
  call.from.as_of = engine.stamp(call.now);
}

std::exception_ptr ask(const std::shared_ptr<point_core>& point, call_base& call) {
  call.attempt_began = call.started;
  if (point->retry) point->retry->called();
  if (!point->guarded) return nullptr;
  if (point->limit.limited()) {
    if (!point->limit.enter()) {
      point->count(tally::limit_refused);
      return std::make_exception_ptr(error(errc::unavailable, "too many calls of '" + point->name + "' are running", {.transient = true}));
    }
    call.admitted = true;
  }
  if (point->breaker) {
    const auto permission = point->breaker->ask(point->engine.clock->steady());
    if (!permission.allowed) {
      if (std::exchange(call.admitted, false)) point->limit.leave();
      point->count(tally::breaker_refused);
      return std::make_exception_ptr(error(errc::unavailable, "the breaker of '" + point->name + "' is open", {.transient = true}));
    }
    call.asked = true;
    call.breaker_period = permission.period;
  }
  return nullptr;
}

void told(const point_core& point, call_base& call, call_result how) noexcept {
  if (!point.guarded && !point.meters) return;
  const auto now = point.engine.clock->steady();
  if (point.meters && how != call_result::none) point.meters->upstream(now - call.attempt_began, how == call_result::success);
  if (std::exchange(call.asked, false) && !(call.meeting && call.meeting->told.exchange(true)))
    point.breaker->ended({.allowed = true, .period = call.breaker_period}, now, how, now - call.started);
  if (std::exchange(call.admitted, false)) point.limit.leave();
}

void told_late(const point_core& point, const call_base& call) noexcept {
  if (!point.breaker || call.meeting->told.exchange(true)) return;
  const auto now = point.engine.clock->steady();
  point.breaker->ended({.allowed = true, .period = call.breaker_period}, now, call_result::failure, now - call.started);
}

/// An upstream that refuses a caller is there and well; one that was cancelled says nothing.
call_result result_of(const point_core& point, const std::exception_ptr& error) noexcept {
  if (failure_rules::never_recovered(error)) return call_result::none;
  return point.options.classify(error) == on_failure::recover ? call_result::failure : call_result::success;
}

std::exception_ptr call_upstream(const std::shared_ptr<point_core>& point, call_base& call, cause_code& code) {
  if (auto refusal = ask(point, call)) {
    code = cause_code::refused;
    return refusal;
  }
  auto& engine = point->engine;
  call_context context;
  if (point->type.takes_context) context = {.point = point->name, .stop = engine.stop.get_token()};
  for (;;) {
    std::exception_ptr error;
    context.attempt = ++call.attempt;
    try {
      call.invoke(context);
      told(*point, call, call_result::success);
      return nullptr;
    } catch (const abi::__forced_unwind&) {  // the thread is being cancelled: this must go on
      told(*point, call, call_result::none);
      point->count(tally::abandoned);
      throw;
    } catch (...) {
      error = std::current_exception();
    }
    if (!point->guarded && !point->retry && !point->meters) return error;
    const auto result = result_of(*point, error);
    if (point->retry && result == call_result::failure && !engine.closed.load(std::memory_order_relaxed) &&
        !(point->breaker && point->breaker->state(engine.clock->steady()) == breaker_state::open)) {
      const auto next = point->retry->again(call.attempt);
      if (next.why == retry_plan::refusal::budget) point->count(tally::no_budget);
      if (next.why == retry_plan::refusal::none) {
        point->count(tally::retries);
        if (point->meters) point->meters->upstream(engine.clock->steady() - call.attempt_began, false);
        engine.pause(next.pause);
        call.attempt_began = engine.clock->steady();
        continue;
      }
    }
    told(*point, call, result);
    return error;
  }
}

void finish_live(const std::shared_ptr<point_core>& point, call_base& call) {
  told(*point, call, call_result::success);
  keep(*point, call);
  answered(*point, call);
}

void finish_failed(const std::shared_ptr<point_core>& point, call_base& call, std::exception_ptr error, cause_code code) {
  if (point->guarded || point->meters) told(*point, call, code == cause_code::late ? call_result::failure : result_of(*point, error));
  fail_with(point, call, std::move(error), code, nullptr, nullptr);
}

void abandon(const std::shared_ptr<point_core>& point, call_base& call) noexcept {
  told(*point, call, call_result::none);
  point->count(tally::abandoned);
}

namespace {

void run_alone(const std::shared_ptr<point_core>& point, call_base& call, landing* how) {
  auto code = cause_code::failed;
  if (auto error = call_upstream(point, call, code)) {
    if (how != nullptr) {
      how->error = error;
      how->code = code;
    }
    fail_with(point, call, std::move(error), code, nullptr, how != nullptr ? &how->found : nullptr);
    return;
  }
  keep(*point, call);
  if (how != nullptr) {
    how->live = true;
    how->from = call.from;
    how->usable = call.keeps_bytes;
    how->bytes = call.bytes;
  }
  answered(*point, call);
}

/// What a caller who shared a flight gets of it. False: nothing it could have; it must call by itself.
bool take_landing(const std::shared_ptr<point_core>& point, call_base& call, const landing& how) {
  if (!how.live) {
    if (!how.error) return false;  // the leader was unwound
    point->count(tally::coalesced);
    fail_with(point, call, how.error, how.code, how.found ? &*how.found : nullptr, nullptr);
    return true;
  }
  if (!how.usable) return false;
  try {
    if (how.bytes) call.decode(*how.bytes);
    else call.make_empty();
  } catch (...) {
    return false;
  }
  point->count(tally::coalesced);
  call.from = how.from;
  answered(*point, call);
  return true;
}

/// Lands whatever happens: those who wait must not wait for ever.
class lander {
 public:
  lander(holdfast::flights& all, std::string id, std::shared_ptr<flight> which) : all_(all), id_(std::move(id)), which_(std::move(which)) {}
  lander(const lander&) = delete;
  lander& operator=(const lander&) = delete;
  ~lander() { all_.land(id_, which_, std::move(how)); }

  landing how{};

 private:
  holdfast::flights& all_;
  const std::string id_;
  const std::shared_ptr<flight> which_;
};

}  // namespace

std::string flight_id(const point_core& point, const call_base& call) { return point.name + '\0' + call.realm + '\0' + call.key; }

void run(const std::shared_ptr<point_core>& point, call_base& call) {
  if (point->options.soft_expiry && !call.key.empty() && serve_young(point, call)) return;
  if (!point->options.single_flight || call.key.empty()) return run_alone(point, call, nullptr);

  auto id = flight_id(*point, call);
  auto seat = point->engine.flights.join(id);
  if (seat.leader) {
    lander ends(point->engine.flights, std::move(id), std::move(seat.on));
    call.keeps_bytes = true;
    return run_alone(point, call, &ends.how);
  }
  {
    std::unique_lock lock(seat.on->mutex);
    seat.on->landed.wait(lock, [&] { return seat.on->how.has_value(); });
  }
  if (const auto& how = seat.on->how; how && take_landing(point, call, *how)) return;
  run_alone(point, call, nullptr);
}

void run_owned(const std::shared_ptr<point_core>& point, const std::shared_ptr<call_base>& call, call_base& mine) {
  mine.key = call->key;
  mine.realm = call->realm;
  mine.now = call->now;
  mine.started = call->started;
  mine.from = call->from;
  if (point->options.soft_expiry && !mine.key.empty() && serve_young(point, mine, call)) return;
  if (!point->options.single_flight || mine.key.empty()) return run_elsewhere(point, call, mine, nullptr);

  auto id = flight_id(*point, mine);
  auto seat = point->engine.flights.join(id);
  if (seat.leader) {
    lander ends(point->engine.flights, std::move(id), std::move(seat.on));
    call->keeps_bytes = true;
    return run_elsewhere(point, call, mine, &ends.how);
  }
  bool landed = false;
  {
    std::unique_lock lock(seat.on->mutex);
    landed = point->engine.wait(lock, seat.on->landed, mine.started + point->deadline, [&] { return seat.on->how.has_value(); });
  }
  if (!landed) {
    point->count(tally::coalesced);
    point->count(tally::late);
    return fail_with(point, mine, late_error(*point), cause_code::late, nullptr, nullptr);
  }
  if (const auto& how = seat.on->how; how && take_landing(point, mine, *how)) return;
  run_elsewhere(point, call, mine, nullptr);
}

void run_bypassed(const point_core& point, call_base& call) {
  call_context context;
  if (point.type.takes_context) context = {.point = point.name, .stop = point.engine.stop.get_token()};
  call.from.as_of = point.engine.clock->now();
  call.invoke(context);
}

}  // namespace HOLDFAST_NAMESPACE::detail
