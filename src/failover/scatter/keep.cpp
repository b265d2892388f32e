#include "failover/scatter/keep.hpp"

#include "failover/keep.hpp"
#include "failover/scatter/manifest_store.hpp"
#include "failover/scatter/recover.hpp"
#include "failover/scatter/rows.hpp"

#include <algorithm>
#include <unordered_set>

namespace HOLDFAST_NAMESPACE::detail::failover {

namespace {

/// A splitter that stores under one key and recovers under another stores in vain. Checks the first
/// live answers of a point.
void check_symmetry(const point_core& point, gather_base& call) {
  constexpr unsigned checked_answers = 10;
  if (call.listed || !call.whole_is_separate ||
      point.split_checks.load(std::memory_order_relaxed) >= checked_answers)
    return;
  point.split_checks.fetch_add(1, std::memory_order_relaxed);
  const auto keys = call.keys_for_recovery();
  const std::unordered_set<std::string_view> recovered_keys(keys.begin(), keys.end());
  if (std::ranges::all_of(call.slices, [&](const gather_base::slice& slice) {
        return slice.call->key.empty() || recovered_keys.contains(slice.call->key);
      }))
    return;
  point.count(counter::asymmetric);
  point.warn("asymmetric",
             "a splitter stores a slice that it would not recover; on_store and on_recover must "
             "return the same arguments");
}

/// Appends the manifest of a live list, unless an item has no key: the list could not be recovered
/// completely.
void add_manifest(const point_core& point, const gather_base& call, std::vector<entry>& rows) {
  std::vector<std::string_view> keys;
  keys.reserve(call.slices.size());
  for (const auto& slice : call.slices) {
    if (slice.state != slice_state::live || slice.call->key.empty()) {
      point.warn("manifest",
                 "an item of a list has no key, so the list cannot be recovered; check that its "
                 "id has a value");
      return;
    }
    if (slice.call->has_value()) keys.push_back(slice.call->key);
  }
  const auto expires = point.expire_on(call, {.kind = result_kind::absent});
  if (expires < call.now) return;
  for (auto& row : manifest_rows(point, call, expires, keys)) rows.push_back(std::move(row));
}

bool is_storable(const gather_base::slice& slice) {
  return slice.state == slice_state::live && !slice.call->key.empty();
}

void store_live(const point_core& point, gather_base& call, steady_time deadline) {
  const auto as_of = call.provenance.as_of;
  if (call.slices.size() > point.scatter.max_slices) {
    point.count(counter::too_large);
    point.warn("slices",
               "an answer has more slices than scatter_options::max_slices and was not stored");
    return;
  }
  struct slice_row {
    call_base* call;
    std::size_t size;
    bool tombstone;
  };
  std::vector<entry> rows;
  std::vector<slice_row> slice_rows;  // of the first rows, in the same order
  std::unordered_set<std::string_view> seen;
  rows.reserve(call.slices.size() + 1);
  for (auto& slice : call.slices) {
    if (!is_storable(slice) || !seen.insert(slice.call->key).second) continue;
    if (auto row = row_of(point, *slice.call)) {
      slice_rows.push_back({.call = slice.call,
                            .size = row->payload ? row->payload->size() : 0,
                            .tombstone = row->tombstone()});
      rows.push_back(*std::move(row));
    }
  }
  if (call.listed) add_manifest(point, call, rows);
  auto& engine = point.engine;
  // Before: the queue may give a row up before this thread goes on, and then forgets its version.
  // Without a queue afterwards: until a row is stored, a recovery must be able to serve the older
  // one.
  const bool queued = point.writes_to_queue();
  const bool has_list = rows.size() > slice_rows.size();
  if (queued) {
    for (const auto& slice : slice_rows) engine.note_served(point.row_id(*slice.call), as_of);
    if (has_list) engine.note_served(manifest_id(point, call), as_of);
  }
  const auto settle = [&](std::uint64_t id, bool stored) {
    if (queued && !stored) engine.served->forget(id, as_of);
    if (!queued && stored) engine.note_served(id, as_of);
  };
  const auto failed = put_rows(point, std::move(rows), deadline);
  bool list_stored = true;
  for (std::size_t i = 0; i < failed.size(); ++i) {
    if (failed[i]) point.count(counter::store_failed);
    if (i >= slice_rows.size()) {
      list_stored = list_stored && !failed[i];
      continue;
    }
    settle(point.row_id(*slice_rows[i].call), !failed[i]);
    if (failed[i]) continue;
    point.count(counter::stored);
    if (slice_rows[i].tombstone) point.count(counter::absent);
    if (point.meters) point.meters->payload(slice_rows[i].size);
  }
  if (has_list) settle(manifest_id(point, call), list_stored);
}

/// A caller with a deadline gives the store half of its remaining time.
steady_time store_deadline(const point_core& point, const gather_base& call) {
  const auto deadline = point.engine.clock->steady() + point.scatter.timeout;
  if (!call.handover) return deadline;
  const auto now = point.engine.clock->steady();
  const auto remaining = time_until(call.deadline, now);
  return remaining.count() > 0 ? std::min<steady_time>(deadline, now + remaining / 2) : deadline;
}

}  // namespace

void keep_slices(const point_core& point, gather_base& call) noexcept {
  auto& engine = point.engine;
  const auto started = engine.clock->steady();
  call.refusal = nullptr;
  call.unnamed_missing = 0;
  try {
    call.split_live();
  } catch (...) {
    point.count(counter::store_failed);
    point.warn("split", "a live answer could not be split, and was not stored",
               std::current_exception());
    call.clear();
    if (!call.whole_is_separate) call.refusal = std::current_exception();
    return;
  }
  std::exception_ptr first_error;  // of a slice that the upstream did not return
  for (auto& slice : call.slices) {
    start_slice(call, slice, {.origin = origin::live, .as_of = call.provenance.as_of});
    if (slice.state == slice_state::open && !first_error) first_error = slice.error;
  }
  try {
    if (!call.key.empty()) {
      check_symmetry(point, call);
      store_live(point, call, store_deadline(point, call));
      if (point.meters) point.meters->store(engine.clock->steady() - started);
    }
    if (first_error) {
      const std::shared_ptr<point_core> owning(engine.shared_from_this(),
                                               const_cast<point_core*>(&point));
      if (!recover_open_slices(owning, call, cause(cause_code::failed, first_error),
                               store_deadline(point, call), {}))
        call.refusal = first_error;
    }
  } catch (...) {
    record_store_failure(point);
    if (first_error) call.refusal = first_error;
  }
}

void invalidate_slices(const point_core& point, gather_base& call) noexcept {
  try {
    auto tombstone = point.tombstone(call, point.effective_name, call.key);
    std::vector<entry> rows;
    if (call.listed) {
      point.engine.note_served(manifest_id(point, call), tombstone.as_of);
      tombstone.name = point.manifest_name;
      rows.push_back(std::move(tombstone));
    } else {
      call.split_for_recovery();
      std::unordered_set<std::string_view> seen;
      for (const auto& slice : call.slices) {
        slice.call->realm = call.realm;
        if (slice.call->key.empty() || !seen.insert(slice.call->key).second) continue;
        point.engine.note_served(point.row_id(*slice.call), tombstone.as_of);
        tombstone.key = slice.call->key;
        rows.push_back(tombstone);
      }
    }
    for (const bool failed : put_rows(point, std::move(rows), gather_deadline(point, call))) {
      if (failed) point.count(counter::store_failed);
    }
  } catch (...) {
    record_store_failure(point, "an answer could not be invalidated");
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail::failover
