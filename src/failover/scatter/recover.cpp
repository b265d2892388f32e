#include "failover/scatter/recover.hpp"

#include "failover/recover.hpp"
#include "failover/scatter/manifest_store.hpp"

#include <algorithm>

namespace HOLDFAST_NAMESPACE::detail::failover {

namespace {

/// Checks the row of a slice and serves it if possible.
void use_row(const std::shared_ptr<point_core>& point, const gather_base& call,
             gather_base::slice& slice, const read_result& read, timestamp now, const cause& reason,
             std::optional<timestamp> newest, timestamp listed_as_of) {
  auto& slice_call = *slice.call;
  slice.state = slice_state::missing;
  auto checked = counter_of(read.status);
  if (read.row) {
    checked = check_row(point, slice_call, *read.row, now, newest);
    // The list was stored after this tombstone, so it contained the item. Its value is lost.
    if (checked == counter::live && call.listed && read.row->tombstone() &&
        read.row->as_of < listed_as_of)
      checked = counter::not_found;
  }
  if (checked != counter::live || !read.row) {
    slice_call.make_empty();
    point->count(checked);
    return;
  }
  serve(*point, slice_call, *read.row, now, reason);
  slice.state = slice_state::stored;
}

/// Runs the recovered hook for a slice. If the hook throws, the recovered row is served unchanged.
void run_slice_hook(const std::shared_ptr<point_core>& point, gather_base::slice& slice,
                    const read_result& read) noexcept {
  auto& call = *slice.call;
  const bool had_value = call.has_value();
  try {
    call.call_recovered_hook();
    if (call.has_value() && slice.state == slice_state::missing) {
      slice.state = slice_state::substitute;
      call.provenance.origin = origin::substitute;
    } else if (!call.has_value() && had_value) {
      slice.state = slice_state::missing;
    }
  } catch (...) {
    point->count(counter::hook_failed);
    point->warn("recovered", "the recovered hook threw; the stored answer is served unchanged",
                std::current_exception());
    call.make_empty();
    try {
      if (had_value && read.row && read.row->payload) call.decode(*read.row->payload);
    } catch (...) {
      slice.state = slice_state::missing;
    }
  }
}

/// Sets the provenance of the whole from its slices. Returns whether the partial policy allows it.
bool summarize(const point_core& point, gather_base& call) {
  std::size_t present = 0;
  std::size_t missing = call.unnamed_missing;
  bool first = true;
  for (const auto& slice : call.slices) {
    if (is_missing(slice.state)) {
      ++missing;
      continue;
    }
    ++present;
    if (slice.state == slice_state::substitute) continue;
    const auto& part = slice.call->provenance;
    auto& whole = call.provenance;
    whole.as_of = first ? part.as_of : std::min(whole.as_of, part.as_of);
    whole.expires = first ? part.expires : std::min(whole.expires, part.expires);
    first = false;
  }
  if (missing != 0) {
    call.provenance.complete = completeness::no;
    point.count(counter::partial);
  }
  return point.scatter.partial.allows(present, missing);
}

/// Applies the failure rules to the error of one slice. Returns whether it may be recovered.
bool may_recover(const point_core& point, const gather_base& call, gather_base::slice& slice,
                 steady_time deadline) {
  const auto action = point.options.classify(slice.error);
  if (action == on_failure::recover) return true;
  slice.state = slice_state::missing;
  if (action == on_failure::invalidate) {
    point.engine.note_served(point.row_id(*slice.call), call.provenance.as_of);
    const auto failed =
        put_rows(point, {point.tombstone(call, point.effective_name, slice.call->key)}, deadline);
    if (failed.front()) point.count(counter::store_failed);
  }
  return false;
}

}  // namespace

void start_slice(const gather_base& call, gather_base::slice& slice,
                 holdfast::provenance provenance) {
  slice.call->realm = call.realm;
  slice.call->now = call.now;
  slice.call->started = call.started;
  slice.call->provenance = std::move(provenance);
}

bool recover_open_slices(const std::shared_ptr<point_core>& point, gather_base& call,
                         const cause& reason, steady_time deadline, timestamp listed_as_of) {
  std::vector<std::string> keys;
  std::vector<std::optional<timestamp>> newest;  // before the rows are read
  std::unordered_map<std::string_view, std::size_t> index_of;
  for (auto& slice : call.slices) {
    if (slice.state != slice_state::open) continue;
    start_slice(call, slice,
                {.origin = origin::stored,
                 .as_of = call.provenance.as_of,
                 .cause = slice.error ? cause(cause_code::failed, slice.error) : reason});
    const auto& key = slice.call->key;
    if (key.empty() || call.key.empty()) continue;
    if (slice.error && !may_recover(*point, call, slice, deadline)) continue;
    if (!index_of.emplace(key, keys.size()).second) continue;
    keys.push_back(key);
    newest.push_back(point->engine.newest_served(point->row_id(*slice.call)));
  }
  const auto reads =
      read_rows(*point, point->effective_name, call.realm, std::move(keys), deadline);
  const auto now = point->engine.clock->now();
  const read_result unread;
  for (auto& slice : call.slices) {
    if (slice.state != slice_state::open) continue;
    const auto index = index_of.find(slice.call->key);
    const bool has_read = index != index_of.end();
    const auto& read = has_read ? reads[index->second] : unread;
    const auto slice_reason = slice.call->provenance.cause;
    use_row(point, call, slice, read, now, slice_reason,
            has_read ? newest[index->second] : std::nullopt, listed_as_of);
    run_slice_hook(point, slice, read);
  }
  return summarize(*point, call);
}

namespace {

/// Serves all rows of the domain. It is unknown whether they are the list.
bool recover_unlisted(const std::shared_ptr<point_core>& point, gather_base& call,
                      const cause& reason, steady_time deadline) {
  if (point->scatter.unlisted == unlisted::refuse) return false;
  auto rows = read_all_rows(*point, call.realm, point->scatter.max_slices, deadline);
  if (!rows) return false;
  const auto now = point->engine.clock->now();
  for (auto& row : *rows) {
    if (row.tombstone()) continue;
    auto& slice = call.add(row.key);
    slice.call->realm = call.realm;
    slice.call->provenance = {
        .origin = origin::stored, .as_of = call.provenance.as_of, .cause = reason};
    const auto newest = point->engine.newest_served(point->row_id(*slice.call));
    const read_result read{.status = read_status::row, .row = std::move(row)};
    use_row(point, call, slice, read, now, reason, newest, {});
    run_slice_hook(point, slice, read);
  }
  if (std::ranges::all_of(call.slices, [](const gather_base::slice& slice) {
        return slice.state == slice_state::missing;
      }))
    return false;
  const bool allowed = summarize(*point, call);
  call.provenance.complete = completeness::unknown;
  return allowed;
}

bool recover_list(const std::shared_ptr<point_core>& point, gather_base& call, const cause& reason,
                  steady_time deadline) {
  call.clear();
  auto members = read_manifest(point, call, deadline);
  if (!members) {
    point->count(counter::unlisted);
    return recover_unlisted(point, call, reason, deadline);
  }
  for (auto& key : members->keys) call.add(std::move(key));
  call.unnamed_missing = members->missing;
  call.provenance.as_of = members->as_of;
  if (!recover_open_slices(point, call, reason, deadline, members->as_of)) return false;
  // Items may be newer than the list, or older if their rows of that version were lost.
  call.provenance.as_of = std::min(call.provenance.as_of, members->as_of);
  if (members->as_of <= point->engine.horizon(point->engine.clock->now()))
    point->engine.note_served(manifest_id(*point, call), members->as_of);
  return true;
}

/// Recovers the slices that the splitter or the ids name.
bool recover_known_slices(const std::shared_ptr<point_core>& point, gather_base& call,
                          const cause& reason, steady_time deadline) {
  call.split_for_recovery();
  if (call.slices.size() <= point->scatter.max_slices)
    return recover_open_slices(point, call, reason, deadline, {});
  point->count(counter::too_large);
  point->warn("slices",
              "an answer has more slices than scatter_options::max_slices and is not recovered");
  return false;
}

}  // namespace

bool recover_slices(const std::shared_ptr<point_core>& point, gather_base& call,
                    const cause& reason) {
  const auto deadline = gather_deadline(*point, call);
  call.provenance.origin = origin::stored;
  call.provenance.complete = completeness::yes;
  call.unnamed_missing = 0;
  try {
    const bool recovered = call.listed ? recover_list(point, call, reason, deadline)
                                       : recover_known_slices(point, call, reason, deadline);
    return recovered && call.merge();
  } catch (...) {
    point->count(counter::hook_failed);
    point->warn("split", "a splitter threw, so nothing can be recovered", std::current_exception());
    return false;
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail::failover
