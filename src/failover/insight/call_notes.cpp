#include "failover/insight/call_notes.hpp"

#include "failover/type_name.hpp"

namespace HOLDFAST_NAMESPACE::detail::failover {

namespace {

call_notes& notes_of(call_base& call) {
  if (!call.notes) {
    call.notes = std::make_shared<call_notes>();
    call.notes->key = call.key;
    call.notes->realm = call.realm;
  }
  return *call.notes;
}

miss_reason miss_of(counter reason) noexcept {
  switch (reason) {
    case counter::expired:
      return miss_reason::expired;
    case counter::not_allowed:
      return miss_reason::not_allowed;
    case counter::undecodable:
      return miss_reason::undecodable;
    case counter::older:
      return miss_reason::older;
    case counter::read_failed:
      return miss_reason::read_failed;
    case counter::read_late:
      return miss_reason::read_late;
    default:
      return miss_reason::not_found;
  }
}

decision decision_of(const point_core& point, const call_base& call, decision_rule rule) {
  auto& engine = point.engine;
  const auto steady = engine.clock->steady();
  const auto microseconds_since = [&](std::chrono::steady_clock::time_point start) {
    return std::chrono::duration_cast<std::chrono::microseconds>(steady - start);
  };
  const auto& provenance = call.provenance;
  const auto* notes = call.notes.get();
  decision reported{.time = engine.clock->now(),
                    .point = point.name,
                    .key = notes != nullptr ? notes->key : call.key,
                    .realm = notes != nullptr ? notes->realm : call.realm,
                    .rule = rule,
                    .origin = provenance.origin,
                    .cause = provenance.cause.code(),
                    .exception_type = exception_type(provenance.cause.error()),
                    .duration = microseconds_since(call.started),
                    .attempts = call.attempt};
  reported.waited = notes != nullptr && notes->failed_at
                        ? reported.duration - microseconds_since(*notes->failed_at)
                        : reported.duration;
  if (point.breaker) reported.breaker = point.breaker->state(steady);
  const bool served = rule == decision_rule::recovered || rule == decision_rule::soft_expiry ||
                      rule == decision_rule::drilled;
  if (served) {
    reported.as_of = provenance.as_of;
    reported.expires = provenance.expires;
  } else if (notes != nullptr) {
    reported.miss = notes->miss;
    reported.as_of = notes->as_of;
    reported.expires = notes->expires;
  }
  if (rule == decision_rule::unserved || rule == decision_rule::substituted) {
    if (reported.key.empty()) reported.miss = miss_reason::no_key;
  }
  return reported;
}

}  // namespace

void note_start(const point_core& point, call_base& call) noexcept {
  const auto& options = point.engine.options.insight;
  try {
    const bool sampled = options.sample != 0 && random_number() % options.sample == 0;
    if (sampled && options.on_decision) notes_of(call).sampled = true;
    if (!options.coverage || point.type.scattered || call.key.empty()) return;
    point.insight->recent.record_call(call.now, call.key, call.realm);
    if (sampled) check_coverage(point, call);
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // Out of memory: the call is not observed.
  }
}

void note_failure(const point_core& point, call_base& call) noexcept {
  if (!point.engine.options.insight.on_decision) return;
  try {
    notes_of(call).failed_at = point.engine.clock->steady();
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // Out of memory: the decision lacks this fact.
  }
}

void note_miss(const point_core& point, call_base& call, counter reason,
               const entry* row) noexcept {
  if (!point.engine.options.insight.on_decision) return;
  try {
    auto& notes = notes_of(call);
    notes.miss = miss_of(reason);
    if (row == nullptr) return;
    notes.as_of = row->as_of;
    notes.expires = row->expire_on;
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // As above.
  }
}

void note_end(const point_core& point, call_base& call, decision_rule rule) noexcept {
  const auto& options = point.engine.options.insight;
  if (!options.on_decision) return;
  if (rule == decision_rule::live && (!call.notes || !call.notes->sampled)) return;
  try {
    auto reported = decision_of(point, call, rule);
    const auto number = point.engine.next_decision();
    reported.ref = decision_ref(number);
    call.provenance.decision = number;
    options.on_decision(reported);
  } catch (...) {
    point.count(counter::hook_failed);
    point.warn("decision", "the on_decision hook threw", std::current_exception());
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail::failover
