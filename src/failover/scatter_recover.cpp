// Answering for an upstream that failed, slice by slice.

#include "failover/scatter.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail {

namespace {

/// The slice's row, read already: judged, and served if it may be.
void take_row(const std::shared_ptr<point_core>& point, gather_base& all, gather_base::slice& slice, const reading& row, timestamp now,
              const cause& why, std::optional<timestamp> newest, timestamp listed_as_of) {
  auto& call = *slice.call;
  slice.at = slice_state::missing;
  auto verdict = tally::not_found;
  if (row.how == found::failed) verdict = tally::read_failed;
  if (row.how == found::late) verdict = tally::read_late;
  if (row.how == found::answer && row.what) {
    verdict = judge(point, call, *row.what, now, newest);
    // It was on the list after it had been declared gone: what it was then is lost.
    if (verdict == tally::live && all.listed && row.what->tombstone() && row.what->as_of < listed_as_of) verdict = tally::not_found;
  }
  if (verdict != tally::live || !row.what) {
    call.make_empty();
    point->count(verdict);
    return;
  }
  serve(*point, call, *row.what, now, why);
  slice.at = slice_state::stored;
}

/// The recovered-answer hook sees every slice, and cannot break anything.
void show_to_hook(const std::shared_ptr<point_core>& point, gather_base::slice& slice, const reading& row) noexcept {
  auto& call = *slice.call;
  const bool had_value = call.has_value();
  try {
    call.recovered();
    if (call.has_value() && slice.at == slice_state::missing) {
      slice.at = slice_state::substitute;
      call.from.from = origin::substitute;
    } else if (!call.has_value() && had_value) {
      slice.at = slice_state::missing;
    }
  } catch (...) {
    point->count(tally::hook_failed);
    point->warn("recovered", "the handler of recovered answers threw; what was recovered is served as it was", std::current_exception());
    call.make_empty();
    try {
      if (had_value && row.what && row.what->payload) call.decode(*row.what->payload);
    } catch (...) {
      slice.at = slice_state::missing;
    }
  }
}

/// What the whole is, of what its slices are.
bool sum_up(const point_core& point, gather_base& all) {
  std::size_t there = 0;
  std::size_t missing = all.missing_unnamed;
  bool first = true;
  for (const auto& each : all.slices) {
    if (each.at == slice_state::missing || each.at == slice_state::open) {
      ++missing;
      continue;
    }
    ++there;
    if (each.at == slice_state::substitute) continue;
    const auto& from = each.call->from;
    all.from.as_of = first ? from.as_of : std::min(all.from.as_of, from.as_of);
    all.from.expires = first ? from.expires : std::min(all.from.expires, from.expires);
    first = false;
  }
  if (missing != 0) {
    all.from.complete = completeness::no;
    point.count(tally::partial);
  }
  return point.scatter.partial.allows(there, missing);
}

}  // namespace

bool recover_open(const std::shared_ptr<point_core>& point, gather_base& all, const cause& why,
                  std::chrono::steady_clock::time_point deadline, timestamp listed_as_of) {
  std::vector<std::string> keys;
  std::vector<std::optional<timestamp>> newest;  // before the rows are read
  std::unordered_map<std::string_view, std::size_t> place_of;
  for (auto& each : all.slices) {
    if (each.at != slice_state::open) continue;
    auto& call = *each.call;
    call.realm = all.realm;
    call.now = all.now;
    call.started = all.started;
    call.from = {.from = origin::stored, .as_of = all.from.as_of, .why = each.error ? cause(cause_code::failed, each.error) : why};
    if (call.key.empty() || all.key.empty()) continue;
    if (each.error) {
      // The upstream's word on this one alone.
      const auto what = point->options.classify(each.error);
      if (what != on_failure::recover) {
        each.at = slice_state::missing;
        if (what == on_failure::invalidate) {
          const encoded none{.kind = result_kind::absent};
          point->engine.note(point->id_of(call), all.from.as_of);
          const auto failed = put_rows(*point,
                                       {{.name = point->effective_name,
                                         .key = call.key,
                                         .as_of = all.from.as_of,
                                         .expire_on = point->expire_on(all, none),
                                         .payload = {},
                                         .payload_class = {},
                                         .realm = all.realm}},
                                       deadline);
          if (failed.front()) point->count(tally::store_failed);
        }
        continue;
      }
    }
    if (place_of.emplace(call.key, keys.size()).second) {
      keys.push_back(call.key);
      newest.push_back(point->engine.newest(point->id_of(call)));
    }
  }
  const auto rows = read_rows(*point, point->effective_name, all.realm, std::move(keys), deadline);
  const auto now = point->engine.clock->now();
  for (auto& each : all.slices) {
    if (each.at != slice_state::open) continue;
    reading unread{.how = found::nothing};
    const auto found_at = place_of.find(each.call->key);
    const auto& row = found_at == place_of.end() ? unread : rows[found_at->second];
    const auto because = each.call->from.why;
    take_row(point, all, each, row, now, because, found_at == place_of.end() ? std::nullopt : newest[found_at->second], listed_as_of);
    show_to_hook(point, each, row);
  }
  return sum_up(*point, all);
}

namespace {

/// Every row of the domain: nobody knows whether that is the list, or another, or more.
bool recover_unlisted(const std::shared_ptr<point_core>& point, gather_base& all, const cause& why,
                      std::chrono::steady_clock::time_point deadline) {
  if (point->scatter.unlisted == unlisted::refuse) return false;
  auto rows = read_all_rows(*point, all.realm, point->scatter.max_slices, deadline);
  if (!rows) return false;
  const auto now = point->engine.clock->now();
  for (auto& row : *rows) {
    if (row.tombstone()) continue;
    auto& slice = all.add(row.key);
    slice.call->realm = all.realm;
    slice.call->from = {.from = origin::stored, .as_of = all.from.as_of, .why = why};
    const auto newest = point->engine.newest(point->id_of(*slice.call));
    reading as_read{.how = found::answer, .what = std::move(row)};
    take_row(point, all, slice, as_read, now, why, newest, {});
    show_to_hook(point, slice, as_read);
  }
  const auto lost = [](const gather_base::slice& each) { return each.at == slice_state::missing; };
  if (std::all_of(all.slices.begin(), all.slices.end(), lost)) return false;
  const bool allowed = sum_up(*point, all);
  all.from.complete = completeness::unknown;
  return allowed;
}

bool recover_list(const std::shared_ptr<point_core>& point, gather_base& all, const cause& why,
                  std::chrono::steady_clock::time_point deadline) {
  all.clear();
  auto members = read_manifest(point, all, deadline);
  if (!members) {
    point->count(tally::unlisted);
    return recover_unlisted(point, all, why, deadline);
  }
  for (auto& key : members->keys) all.add(std::move(key));
  all.missing_unnamed = members->lost;
  all.from.as_of = members->as_of;
  if (!recover_open(point, all, why, deadline, members->as_of)) return false;
  // Not older than the list itself; an item may be newer or, when its own row was lost, older.
  all.from.as_of = std::min(all.from.as_of, members->as_of);
  if (members->as_of <= point->engine.horizon(point->engine.clock->now())) point->engine.note(manifest_id(*point, all), members->as_of);
  return true;
}

}  // namespace

bool recover_slices(const std::shared_ptr<point_core>& point, gather_base& all, const cause& why) {
  const auto deadline = gather_deadline(*point);
  all.from.from = origin::stored;
  all.from.complete = completeness::yes;
  all.missing_unnamed = 0;
  try {
    bool served = false;
    if (all.listed) {
      served = recover_list(point, all, why, deadline);
    } else {
      all.split_for_recovery();
      if (all.slices.size() > point->scatter.max_slices) {
        point->count(tally::too_large);
        point->warn("slices", "an answer consists of more slices than scatter_options::max_slices and is not recovered");
        return false;
      }
      served = recover_open(point, all, why, deadline, {});
    }
    return served && all.merge();
  } catch (...) {
    point->count(tally::hook_failed);
    point->warn("split", "a splitter threw, so nothing can be recovered", std::current_exception());
    return false;
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail
