#include "failover/recover.hpp"

#include "failover/call.hpp"
#include "failover/insight/call_notes.hpp"
#include "failover/keep.hpp"
#include "failover/read.hpp"
#include "failover/scatter/keep.hpp"
#include "failover/scatter/recover.hpp"
#include "failover/type_name.hpp"

namespace HOLDFAST_NAMESPACE::detail::failover {

counter check_row(const std::shared_ptr<point_core>& point, call_base& call, const entry& row,
                  timestamp now, std::optional<timestamp> newest) noexcept {
  if (now > row.expire_on) {
    erase_expired(point, row);
    return counter::expired;
  }
  if (newest && row.as_of < *newest && !point->options.serve_older) return counter::older;
  if (!row.payload) {
    call.make_empty();
    return point->type.may_be_empty ? counter::live : counter::not_found;
  }
  if (!point->allowed.allows(row.payload_class)) {
    point->warn(
        "class",
        "a stored answer has a payload class that is not allowed here, and was not decoded");
    return counter::not_allowed;
  }
  try {
    call.decode(*row.payload);
  } catch (...) {
    call.make_empty();
    point->warn("decode", "a stored answer cannot be decoded", std::current_exception());
    return counter::undecodable;
  }
  return counter::live;
}

void serve(const point_core& point, call_base& call, const entry& row, timestamp now,
           cause reason) noexcept {
  call.provenance = {.origin = origin::stored,
                     .as_of = row.as_of,
                     .expires = row.expire_on,
                     .complete = completeness::yes,
                     .cause = std::move(reason)};
  if (row.as_of <= point.engine.horizon(now))
    point.engine.note_served(point.row_id(call), row.as_of);
  if (point.meters) point.meters->served(now - row.as_of);
  point.enrich(call);
}

namespace {

/// Reads the row of the call, checks it, and serves it. A follower of a shared call uses the row
/// that its leader served. Copies a row that was served to `*served_row`, unless that is null.
bool recover_row(const std::shared_ptr<point_core>& point, call_base& call, const cause& reason,
                 const shared_result* leader, std::optional<entry>* served_row) {
  auto& engine = point->engine;
  // Before the read: a newer answer that is served meanwhile must not prevent this one.
  const auto newest = engine.newest_served(point->row_id(call));
  const entry* row = nullptr;
  read_result read;
  if (leader != nullptr) {
    if (!leader->served) return false;
    row = &*leader->served;
  } else {
    read = read_row(point, call, engine.read_deadline(call));
    if (!read.row) {
      const auto missing = counter_of(read.status);
      point->count(missing);
      if (point->insight) note_miss(*point, call, missing, nullptr);
      return false;
    }
    row = &*read.row;
  }
  const auto now = engine.clock->now();
  if (const auto checked = check_row(point, call, *row, now, newest); checked != counter::live) {
    point->count(checked);
    if (point->insight) note_miss(*point, call, checked, row);
    return false;
  }
  serve(*point, call, *row, now, reason);
  if (served_row != nullptr) *served_row = *row;
  return true;
}

bool recover(const std::shared_ptr<point_core>& point, call_base& call, const cause& reason,
             const shared_result* leader, std::optional<entry>* served_row) {
  if (call.key.empty()) return false;
  const auto started = point->measure_start();
  auto* scattered = call.gather();
  const bool served = scattered != nullptr ? recover_slices(point, *scattered, reason)
                                           : recover_row(point, call, reason, leader, served_row);
  if (point->meters) point->meters->recover(point->engine.clock->steady() - started);
  return served;
}

}  // namespace

bool run_recovered_hook(const point_core& point, call_base& call, bool served,
                        const std::optional<entry>& row) {
  const bool had_value = call.has_value();
  try {
    call.call_recovered_hook();
  } catch (...) {
    point.count(counter::hook_failed);
    point.warn("recovered", "the recovered hook threw; the stored answer is served unchanged",
               std::current_exception());
    call.make_empty();
    if (served && had_value && row && row->payload) call.decode(*row->payload);
    return served;
  }
  if (call.has_value() && !served) call.provenance.origin = origin::substitute;
  return call.has_value() || (served && !had_value);
}

namespace {

decision_rule rule_of(counter index) noexcept {
  if (index == counter::passed) return decision_rule::passed;
  return index == counter::invalidated ? decision_rule::invalidated : decision_rule::unserved;
}

[[noreturn]] void rethrow(const point_core& point, call_base& call, counter index,
                          const std::exception_ptr& error) {
  point.count(index);
  if (point.insight) note_end(point, call, rule_of(index));
  std::rethrow_exception(error);
}

/// Applies the exception policy: there is nothing to serve.
void apply_policy(const point_core& point, call_base& call, const std::exception_ptr& error) {
  call.provenance.origin = origin::substitute;
  switch (point.policy) {
    case exception_policy::rethrow:
      rethrow(point, call, counter::failed, error);
    case exception_policy::never_throw:
      try {
        call.set_default_value();
      } catch (...) {
        call.make_empty();
        point.count(counter::hook_failed);
        point.warn("default", "the default_value hook threw; the answer is empty",
                   std::current_exception());
      }
      break;
    case exception_policy::custom:
      try {
        if (!call.call_unserved_hook()) point.engine.options.unserved(point.name, call.provenance);
      } catch (...) {
        rethrow(point, call, counter::failed, std::current_exception());
      }
      break;
  }
  point.count(counter::substituted);
  if (point.insight) note_end(point, call, decision_rule::substituted);
}

void invalidate(const point_core& point, call_base& call) noexcept {
  if (call.key.empty()) return;
  if (auto* scattered = call.gather()) return invalidate_slices(point, *scattered);
  try {
    const entry row = point.tombstone(call, point.effective_name, call.key);
    point.engine.note_served(point.row_id(call), row.as_of);
    point.write_store->put(std::span<const entry>(&row, 1));
  } catch (...) {
    record_store_failure(point, "an answer could not be invalidated");
  }
}

}  // namespace

namespace {

/// Recovers the call, and runs the recovered hook. Returns whether there is an answer.
bool recover_with_hook(const std::shared_ptr<point_core>& point, call_base& call, cause reason,
                       shared_result* shared, const shared_result* leader) {
  call.make_empty();
  call.provenance.cause = std::move(reason);
  if (point->insight) note_failure(*point, call);
  std::optional<entry> own_row;
  auto* served_row = shared != nullptr ? &shared->served : &own_row;
  const bool copy_row = shared != nullptr || point->type.has_recovered;
  bool served =
      recover(point, call, call.provenance.cause, leader, copy_row ? served_row : nullptr);
  if (point->type.has_recovered) served = run_recovered_hook(*point, call, served, *served_row);
  if (!served) return false;
  const bool substitute = call.provenance.origin == origin::substitute;
  point->count(substitute ? counter::substituted : counter::stale);
  if (point->insight)
    note_end(*point, call, substitute ? decision_rule::substituted : decision_rule::recovered);
  return true;
}

}  // namespace

bool serve_stored(const std::shared_ptr<point_core>& point, call_base& call,
                  std::exception_ptr error, shared_result* shared) {
  const auto provenance = call.provenance;
  std::optional<shared_result> unused;
  auto& result = shared != nullptr ? *shared : unused.emplace();
  if (recover_with_hook(point, call, cause(cause_code::late, error), &result, nullptr)) {
    result.error = std::move(error);
    result.code = cause_code::late;
    return true;
  }
  call.make_empty();
  call.provenance = provenance;
  return false;
}

void answer_failure(const std::shared_ptr<point_core>& point, call_base& call,
                    std::exception_ptr error, cause_code code, shared_result* shared,
                    const shared_result* leader) {
  if (shared != nullptr) {
    shared->error = error;
    shared->code = code;
  }
  if (point->meters) point->meters->exception(exception_type(error));
  // The rules of the point apply to exceptions of the upstream, not to those of the engine.
  const auto action =
      code == cause_code::failed ? point->options.classify(error) : on_failure::recover;
  if (action != on_failure::recover) call.provenance.cause = cause(code, error);
  if (action == on_failure::pass) rethrow(*point, call, counter::passed, error);
  if (action == on_failure::invalidate) {
    invalidate(*point, call);
    rethrow(*point, call, counter::invalidated, error);
  }
  point->warn("failed", "a call failed; it is answered from the store if possible", error);
  if (!recover_with_hook(point, call, cause(code, std::move(error)), shared, leader))
    apply_policy(*point, call, call.provenance.cause.error());
}

namespace {

bool post_refresh(const point_core& point, executor::task work, executor::task refused) {
  auto& engine = point.engine;
  if (engine.options.threads.executor)
    return engine.options.threads.executor->post(std::move(work));
  constexpr auto no_deadline = std::chrono::steady_clock::time_point::max();
  return engine.refreshes().post(point.refresh_group(), std::move(work), no_deadline,
                                 std::move(refused)) != nullptr;
}

/// Starts a refresh in the background, at most one at a time for each key.
void refresh(const std::shared_ptr<point_core>& point, call_base& served,
             std::shared_ptr<call_base> owned) {
  auto& engine = point->engine;
  auto id = flight_id(*point, served) + "#refresh";
  auto joined = engine.shared_calls.join(id);
  if (!joined.leader) return;
  try {
    if (!owned) {
      owned = served.copy_with_arguments();
      owned->key = served.key;
      owned->realm = served.realm;
    }
    owned->now = served.now;
    owned->started = served.started;
    owned->provenance = {.as_of = served.provenance.as_of};
    const auto work = [point, owned, id, shared = joined.call] {
      auto code = cause_code::failed;
      const auto error = call_upstream(point, *owned, code);
      if (!error) keep(*point, *owned);
      else if (point->options.classify(error) == on_failure::invalidate) invalidate(*point, *owned);
      point->count(error ? counter::refresh_failed : counter::refreshed);
      point->detached_calls.fetch_sub(1, std::memory_order_relaxed);
      point->engine.shared_calls.finish(id, shared, {});
    };
    auto task = engine.in_this_context(work);
    point->detached_calls.fetch_add(1, std::memory_order_relaxed);
    if (post_refresh(*point, std::move(task), [point, id, shared = joined.call] {
          point->detached_calls.fetch_sub(1, std::memory_order_relaxed);
          point->count(counter::refresh_failed);
          point->engine.shared_calls.finish(id, shared, {});
        }))
      return;
    point->detached_calls.fetch_sub(1, std::memory_order_relaxed);
  } catch (...) {
    point->warn("refresh", "a refresh could not be started", std::current_exception());
  }
  point->count(counter::refresh_failed);
  engine.shared_calls.finish(id, joined.call, {});
}

}  // namespace

bool serve_before_call(const std::shared_ptr<point_core>& point, call_base& call,
                       std::shared_ptr<call_base> owned) {
  auto& engine = point->engine;
  const auto newest = engine.newest_served(point->row_id(call));
  // The upstream needs the rest of the time if the store does not answer.
  auto deadline = engine.read_deadline(call);
  if (call.deadline != std::chrono::steady_clock::time_point::max())
    deadline = std::min(deadline, call.started + (call.deadline - call.started) / 4);
  const auto row = read_row(point, call, deadline).row;
  if (!row) return false;
  const auto now = point->engine.clock->now();
  if (check_row(point, call, *row, now, newest) != counter::live) {
    call.make_empty();
    return false;
  }
  // An entry from the future would stay fresh until its time has come.
  const bool fresh =
      row->as_of <= point->engine.horizon(now) && now - row->as_of <= point->soft_expiry;
  if (!fresh) refresh(point, call, std::move(owned));  // before `serve` changes the provenance
  serve(*point, call, *row, now, cause(fresh ? cause_code::fresh : cause_code::refreshing));
  point->count(fresh ? counter::fresh : counter::stale);
  if (point->insight) note_end(*point, call, decision_rule::soft_expiry);
  return true;
}

}  // namespace HOLDFAST_NAMESPACE::detail::failover
