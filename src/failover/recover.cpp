// Answering for an upstream that failed, or that need not be asked yet.

#include "failover/exception_type.hpp"
#include "failover/point_core.hpp"
#include "failover/scatter.hpp"

#include <utility>

namespace HOLDFAST_NAMESPACE::detail {

tally judge(const std::shared_ptr<point_core>& point, call_base& call, const entry& what, timestamp now,
            std::optional<timestamp> newest) noexcept {
  if (now > what.expire_on) {
    drop(point, what);
    return tally::expired;
  }
  if (newest && what.as_of < *newest) return tally::older;
  if (!what.payload) {
    call.make_empty();
    // "There is nothing" is an answer only where an answer may be empty.
    return point->type.may_be_empty ? tally::live : tally::not_found;
  }
  if (!point->allowed.allows(what.payload_class)) {
    point->warn("class", "a stored answer has a payload class that is not allowed here, and was not decoded");
    return tally::not_allowed;
  }
  try {
    call.decode(*what.payload);
  } catch (...) {
    call.make_empty();
    point->warn("decode", "a stored answer cannot be decoded", std::current_exception());
    return tally::undecodable;
  }
  return tally::live;
}

void serve(const point_core& point, call_base& call, const entry& what, timestamp now, cause why) noexcept {
  call.from = {
      .from = origin::stored, .as_of = what.as_of, .expires = what.expire_on, .complete = completeness::yes, .why = std::move(why)};
  if (what.as_of <= point.engine.horizon(now)) point.engine.note(point.id_of(call), what.as_of);
  if (point.meters) point.meters->served(now - what.as_of);
  try {
    call.enrich();
  } catch (...) {
    point.count(tally::hook_failed);
    point.warn("enrich", "the enricher threw; the answer is given as it is", std::current_exception());
  }
}

namespace {

/// The row, read and judged. What may be served is in the call afterwards.
bool recover(const std::shared_ptr<point_core>& point, call_base& call, const cause& why, const entry* known,
             std::optional<entry>* believed) {
  if (call.key.empty()) return false;
  auto& engine = point->engine;
  const auto began = point->meters ? engine.clock->steady() : std::chrono::steady_clock::time_point{};
  if (auto* many = call.gather()) {
    const bool served = recover_slices(point, *many, why);
    if (point->meters) point->meters->recover(engine.clock->steady() - began);
    return served;
  }
  // Before it is read: what is served to others meanwhile is newer, and no reason to have nothing.
  const auto newest = engine.newest(point->id_of(call));
  reading row;
  if (known == nullptr) {
    row = read(point, call);
    if (row.how == found::failed) point->count(tally::read_failed);
    if (row.how == found::late) point->count(tally::read_late);
    if (row.how == found::nothing) point->count(tally::not_found);
    if (row.what) known = &*row.what;
  }
  bool served = false;
  if (known != nullptr) {
    const auto now = engine.clock->now();
    const auto verdict = judge(point, call, *known, now, newest);
    served = verdict == tally::live;
    if (served) serve(*point, call, *known, now, why);
    else point->count(verdict);
    if (served && believed != nullptr) *believed = *known;
  }
  if (point->meters) point->meters->recover(engine.clock->steady() - began);
  return served;
}

/// The recovered-answer hook sees everything, and cannot break anything: when it throws, what was recovered is served as it was.
bool shown_to_hook(const point_core& point, call_base& call, bool served, const std::optional<entry>& found) {
  const bool had_value = call.has_value();
  try {
    call.recovered();
  } catch (...) {
    point.count(tally::hook_failed);
    point.warn("recovered", "the handler of recovered answers threw; what was recovered is served as it was", std::current_exception());
    call.make_empty();
    if (served && had_value && found && found->payload) call.decode(*found->payload);
    return served;
  }
  if (call.has_value() && !served) call.from.from = origin::substitute;
  return call.has_value() || (served && !had_value);
}

[[noreturn]] void leave(const point_core& point, tally how, const std::exception_ptr& error) {
  point.count(how);
  std::rethrow_exception(error);
}

/// Nothing to serve: the policy decides.
void unserved(const point_core& point, call_base& call, const std::exception_ptr& error) {
  call.from.from = origin::substitute;
  switch (point.policy) {
    case exception_policy::rethrow:
      leave(point, tally::failed, error);
    case exception_policy::never_throw:
      try {
        call.default_value();
      } catch (...) {
        call.make_empty();
        point.count(tally::hook_failed);
        point.warn("default", "the default value could not be made; the answer is empty", std::current_exception());
      }
      break;
    case exception_policy::custom:
      try {
        if (!call.unserved()) point.engine.options.unserved(point.name, call.from);
      } catch (...) {
        leave(point, tally::failed, std::current_exception());
      }
      break;
  }
  point.count(tally::substituted);
}

void invalidate(const point_core& point, call_base& call) noexcept {
  if (call.key.empty()) return;
  if (auto* many = call.gather()) return invalidate_slices(point, *many);
  try {
    const auto expires = point.expire_on(call, {.kind = result_kind::absent});
    const entry gone{.name = point.effective_name,
                     .key = call.key,
                     .as_of = call.from.as_of,
                     .expire_on = expires,
                     .payload = {},
                     .payload_class = {},
                     .realm = call.realm};
    point.engine.note(point.id_of(call), call.from.as_of);
    point.writes->put(std::span<const entry>(&gone, 1));
  } catch (...) {
    point.count(tally::store_failed);
    point.warn("store", "an answer could not be declared gone", std::current_exception());
  }
}

}  // namespace

void fail_with(const std::shared_ptr<point_core>& point, call_base& call, std::exception_ptr error, cause_code code, const entry* known,
               std::optional<entry>* believed) {
  if (point->meters) point->meters->exception(exception_type(error));
  // What the engine itself threw is no business of the point's rules.
  const auto what = code == cause_code::failed ? point->options.classify(error) : on_failure::recover;
  if (what == on_failure::pass) leave(*point, tally::passed, error);
  if (what == on_failure::invalidate) {
    invalidate(*point, call);
    leave(*point, tally::invalidated, error);
  }
  point->warn("failed", "a call failed and is answered from the store, if there is something", error);

  call.make_empty();
  call.from.why = cause(code, std::move(error));
  std::optional<entry> row;
  if (believed == nullptr && point->type.has_recovered) believed = &row;
  bool served = recover(point, call, call.from.why, known, believed);
  if (point->type.has_recovered) served = shown_to_hook(*point, call, served, *believed);
  if (!served) return unserved(*point, call, call.from.why.error());
  point->count(call.from.from == origin::substitute ? tally::substituted : tally::stale);
}

namespace {

/// At most one at a time for a key, and no more than the executor takes.
void refresh(const std::shared_ptr<point_core>& point, call_base& served, std::shared_ptr<call_base> owned) {
  auto& engine = point->engine;
  auto id = flight_id(*point, served) + "#refresh";
  auto seat = engine.flights.join(id);
  if (!seat.leader) return;
  try {
    if (!owned) {
      owned = served.own();
      owned->key = served.key;
      owned->realm = served.realm;
    }
    owned->now = served.now;
    owned->started = served.started;
    owned->from = {.as_of = served.from.as_of};
    const auto work = [point, owned, id, on = seat.on] {
      auto code = cause_code::failed;
      const auto error = call_upstream(point, *owned, code);
      if (!error) keep(*point, *owned);
      else if (point->options.classify(error) == on_failure::invalidate) invalidate(*point, *owned);
      point->count(error ? tally::refresh_failed : tally::refreshed);
      point->late_running.fetch_sub(1, std::memory_order_relaxed);
      point->engine.flights.land(id, on, {});
    };
    auto task = engine.in_this_context(work);
    point->late_running.fetch_add(1, std::memory_order_relaxed);
    if (engine.calls().post(std::move(task))) return;
    point->late_running.fetch_sub(1, std::memory_order_relaxed);
  } catch (...) {
    point->warn("refresh", "a refresh could not be started", std::current_exception());
  }
  point->count(tally::refresh_failed);
  engine.flights.land(id, seat.on, {});
}

}  // namespace

bool serve_young(const std::shared_ptr<point_core>& point, call_base& call, std::shared_ptr<call_base> owned) {
  const auto newest = point->engine.newest(point->id_of(call));
  const auto row = read(point, call);
  if (!row.what) return false;
  const auto now = point->engine.clock->now();
  if (judge(point, call, *row.what, now, newest) != tally::live) {
    call.make_empty();
    return false;
  }
  // One from the future would stay young until its time has come.
  const bool young = row.what->as_of <= point->engine.horizon(now) && now - row.what->as_of <= point->soft_expiry;
  if (!young) refresh(point, call, std::move(owned));  // before serving: it wants the call as it started
  serve(*point, call, *row.what, now, cause(young ? cause_code::fresh : cause_code::refreshing));
  point->count(young ? tally::fresh : tally::stale);
  return true;
}

}  // namespace HOLDFAST_NAMESPACE::detail
