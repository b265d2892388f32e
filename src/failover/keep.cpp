// Keeping a live answer: encoded before its caller gets it, so that nobody can change what is stored.

#include "failover/point_core.hpp"
#include "failover/scatter.hpp"

#include <algorithm>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail {

timestamp point_core::expire_on(const call_base& call, const encoded& what) const {
  timestamp moment{};
  if (what.expire_on) {
    moment = *what.expire_on;
  } else if (!options.expiry.name().empty()) {
    const auto payload = what.kind == result_kind::store ? std::optional<std::string_view>(what.payload) : std::nullopt;
    moment = engine.options.expiry_policies.find(options.expiry.name())->second({.point = name, .now = call.now, .payload = payload});
  } else {
    // A stamp may be ahead of a clock that was set back; what expires before it started would be refused.
    return std::max(call.from.as_of, options.expiry.after(call.now));
  }
  return moment < call.now ? moment : std::max(call.from.as_of, moment);
}

std::optional<entry> row_of(const point_core& point, call_base& call) noexcept {
  const auto note = [&] { point.engine.recents.note(point.id_of(call), call.from.as_of); };
  bool shared = false;
  try {
    encoded what = call.encode(call.now);
    if (what.kind == result_kind::ignore) {
      point.count(tally::ignored);
      call.keeps_bytes = false;
      return std::nullopt;
    }
    const bool tombstone = what.kind == result_kind::absent;
    call.from.expires = point.expire_on(call, what);
    if (call.keeps_bytes && !tombstone) call.bytes = std::make_shared<const std::string>(what.payload);
    shared = true;
    if (what.payload.size() > point.max_payload) {
      point.count(tally::too_large);
      point.warn("too_large", "an answer is larger than max_payload and was not stored");
      note();
      return std::nullopt;
    }
    if (call.from.expires < call.now) {
      point.count(tally::ignored);
      note();
      return std::nullopt;
    }
    entry made{.name = point.effective_name,
               .key = call.key,
               .as_of = call.from.as_of,
               .expire_on = call.from.expires,
               .payload = {},
               .payload_class = {},
               .realm = call.realm};
    if (!tombstone) {
      made.payload = std::move(what.payload);
      made.payload_class = point.payload_class;
    }
    return made;
  } catch (...) {
    if (!shared) call.keeps_bytes = false;
    note();
    point.count(tally::store_failed);
    point.warn("store", "an answer could not be stored", std::current_exception());
    return std::nullopt;
  }
}

void keep(const point_core& point, call_base& call) noexcept {
  call.from.from = origin::live;
  call.from.complete = completeness::yes;
  if (auto* many = call.gather()) return keep_slices(point, *many);
  if (call.key.empty()) return;
  const auto began = point.meters ? point.engine.clock->steady() : std::chrono::steady_clock::time_point{};
  const auto row = row_of(point, call);
  if (!row) return;
  try {
    point.writes->put(std::span<const entry>(&*row, 1));
    point.count(tally::stored);
    if (row->tombstone()) point.count(tally::absent);
    if (point.meters) {
      point.meters->payload(row->payload ? row->payload->size() : 0);
      point.meters->store(point.engine.clock->steady() - began);
    }
  } catch (...) {
    point.count(tally::store_failed);
    point.warn("store", "an answer could not be stored", std::current_exception());
  }
  // Not before it is there: who recovers at this moment would find only an older one, and could not serve it.
  point.engine.recents.note(point.id_of(call), call.from.as_of);
}

void answered(const point_core& point, call_base& call) noexcept {
  try {
    call.enrich();
  } catch (...) {
    point.count(tally::hook_failed);
    point.warn("enrich", "the enricher threw; the answer is given as it is", std::current_exception());
  }
  const auto* many = call.gather();
  point.count(many != nullptr && many->refused ? tally::failed : tally::live);
}

}  // namespace HOLDFAST_NAMESPACE::detail
