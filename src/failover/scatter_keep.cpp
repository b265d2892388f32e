// Keeping a live answer slice by slice: encoded one by one, written at once.

#include "failover/manifest.hpp"
#include "failover/scatter.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail {

namespace {

/// Puts rows, and when the store refuses them, each half of them, until those it refuses are alone. What is transient, or does not end, is
/// not tried again: the others would fare no better.
void put_halves(store& into, std::span<const entry> rows, std::size_t first, std::vector<bool>& failed, std::exception_ptr& why,
                const std::function<bool()>& go_on) noexcept {
  const auto give_up = [&] { std::fill_n(failed.begin() + static_cast<std::ptrdiff_t>(first), rows.size(), true); };
  try {
    into.put(rows);
    return;
  } catch (const error& refusal) {
    why = std::current_exception();
    if (rows.size() == 1 || refusal.transient() || refusal.in_doubt() || !go_on()) return give_up();
  } catch (...) {
    why = std::current_exception();
    return give_up();
  }
  const auto half = rows.size() / 2;
  put_halves(into, rows.first(half), first, failed, why, go_on);
  put_halves(into, rows.subspan(half), first + half, failed, why, go_on);
}

/// Outlives who waits for it.
struct writing {
  std::shared_ptr<store> into;
  std::vector<entry> rows;
  std::vector<bool> failed;
  std::exception_ptr why{};
  std::mutex mutex{};
  std::condition_variable done{};
  bool ended = false;
  std::atomic<bool> left{false};
};

}  // namespace

std::vector<bool> put_rows(const point_core& point, std::vector<entry> rows, std::chrono::steady_clock::time_point deadline) {
  auto& engine = point.engine;
  const auto count = rows.size();
  std::vector<bool> none(count, true);
  if (count == 0) return none;
  const auto complain = [&](const std::exception_ptr& why) { point.warn("store", "a slice of an answer could not be stored", why); };
  // A queue takes them at once, and memory does not wait.
  if ((engine.behind && point.writes == engine.front) || !point.writes->waits()) {
    std::vector<bool> failed(count, false);
    std::exception_ptr why;
    put_halves(*point.writes, rows, 0, failed, why, [&] { return engine.clock->steady() < deadline; });
    if (why) complain(why);
    return failed;
  }
  const auto job = std::make_shared<writing>();
  job->into = point.writes;
  job->rows = std::move(rows);
  job->failed.assign(count, false);
  const auto work = [job] {
    std::vector<bool> failed(job->rows.size(), false);
    std::exception_ptr why;
    put_halves(*job->into, job->rows, 0, failed, why, [&] { return !job->left.load(std::memory_order_relaxed); });
    const std::scoped_lock lock(job->mutex);
    job->failed = std::move(failed);
    job->why = std::move(why);
    job->ended = true;
    job->done.notify_all();
  };
  if (!engine.reads().post(engine.in_this_context(work))) {
    point.warn("store", "no thread is free to write to the store; an answer was not stored");
    return none;
  }
  std::unique_lock lock(job->mutex);
  if (!engine.wait(lock, job->done, deadline, [&] { return job->ended; })) {
    job->left = true;
    point.warn("store_late", "the store did not take an answer in time");
    return none;
  }
  if (job->why) complain(job->why);
  return job->failed;
}

namespace {

/// A splitter that stores under one key and looks under another stores in vain. The first live answers tell.
void check_symmetry(const point_core& point, gather_base& all) {
  constexpr unsigned checked = 10;
  if (all.listed || !all.whole_apart || point.split_checks.load(std::memory_order_relaxed) >= checked) return;
  point.split_checks.fetch_add(1, std::memory_order_relaxed);
  const auto wanted = all.keys_for_recovery();
  const std::unordered_set<std::string_view> known(wanted.begin(), wanted.end());
  const auto found = [&](const gather_base::slice& each) { return each.call->key.empty() || known.contains(each.call->key); };
  if (std::all_of(all.slices.begin(), all.slices.end(), found)) return;
  point.count(tally::asymmetric);
  point.warn("asymmetric", "a splitter stores a slice that it would not look for; on_store and on_recover must give the same arguments");
}

/// The manifest of a live list behind its items. The list is known by it, so it is written only if it can be whole.
void add_manifest(const point_core& point, const gather_base& all, std::vector<entry>& rows) {
  std::vector<std::string_view> keys;
  keys.reserve(all.slices.size());
  for (const auto& each : all.slices) {
    if (each.at != slice_state::live || each.call->key.empty()) {
      point.warn("manifest", "an item of a list has no key, so the list cannot be recovered; see that its id has a value");
      return;
    }
    if (each.call->has_value()) keys.push_back(each.call->key);
  }
  const auto expires = point.expire_on(all, {.kind = result_kind::absent});
  if (expires < all.now) return;
  for (auto& each : manifest_rows(point, all, expires, keys)) rows.push_back(std::move(each));
}

void store_live(const point_core& point, gather_base& all, std::chrono::steady_clock::time_point deadline) {
  if (all.slices.size() > point.scatter.max_slices) {
    point.count(tally::too_large);
    point.warn("slices", "an answer has more slices than scatter_options::max_slices and was not stored");
    for (const auto& each : all.slices) {
      if (each.at == slice_state::live && !each.call->key.empty()) point.engine.note(point.id_of(*each.call), all.from.as_of);
    }
    if (all.listed) point.engine.note(manifest_id(point, all), all.from.as_of);
    return;
  }
  std::vector<entry> rows;
  std::vector<call_base*> of_row;
  std::unordered_set<std::string_view> seen;
  rows.reserve(all.slices.size() + 1);
  for (auto& each : all.slices) {
    if (each.at != slice_state::live || each.call->key.empty() || !seen.insert(each.call->key).second) continue;
    if (auto row = row_of(point, *each.call)) {
      rows.push_back(*std::move(row));
      of_row.push_back(each.call);
    }
  }
  if (all.listed) add_manifest(point, all, rows);
  std::vector<std::pair<std::size_t, bool>> kinds;  // what is counted when it is put: size, tombstone
  kinds.reserve(of_row.size());
  for (const auto& row : std::span(rows).first(of_row.size())) kinds.emplace_back(row.payload ? row.payload->size() : 0, row.tombstone());
  const auto failed = put_rows(point, std::move(rows), deadline);
  for (std::size_t i = 0; i < failed.size(); ++i) {
    if (failed[i]) {
      point.count(tally::store_failed);
    } else if (i < kinds.size()) {
      point.count(tally::stored);
      if (kinds[i].second) point.count(tally::absent);
      if (point.meters) point.meters->payload(kinds[i].first);
    }
  }
  // Not before they are there: who recovers meanwhile would find only older ones, and could not serve them.
  for (const auto* each : of_row) point.engine.note(point.id_of(*each), all.from.as_of);
  if (all.listed) point.engine.note(manifest_id(point, all), all.from.as_of);
}

}  // namespace

namespace {

/// Until when a live answer waits for the store: one whose caller has a deadline gets half of what is left of it.
std::chrono::steady_clock::time_point store_deadline(const point_core& point, const gather_base& all) {
  const auto deadline = gather_deadline(point);
  if (!all.meeting) return deadline;
  const auto now = point.engine.clock->steady();
  const auto left = all.started + point.deadline - now;
  return left.count() > 0 ? std::min<std::chrono::steady_clock::time_point>(deadline, now + left / 2) : deadline;
}

}  // namespace

void keep_slices(const point_core& point, gather_base& all) noexcept {
  auto& engine = point.engine;
  const auto began = engine.clock->steady();
  all.refused = nullptr;
  all.missing_unnamed = 0;
  try {
    all.split_live();
  } catch (...) {
    point.count(tally::store_failed);
    point.warn("split", "a live answer could not be split, and was not stored", std::current_exception());
    all.clear();
    if (!all.whole_apart) all.refused = std::current_exception();
    return;
  }
  std::exception_ptr first;
  for (auto& each : all.slices) {
    auto& slice = *each.call;
    slice.realm = all.realm;
    slice.now = all.now;
    slice.started = all.started;
    slice.from = {.from = origin::live, .as_of = all.from.as_of};
    if (each.at == slice_state::open && !first) first = each.error;
  }
  try {
    if (!all.key.empty()) {
      check_symmetry(point, all);
      store_live(point, all, store_deadline(point, all));
      if (point.meters) point.meters->store(engine.clock->steady() - began);
    }
    if (first) {  // the upstream answered, and left something out
      const std::shared_ptr<point_core> owning(engine.shared_from_this(), const_cast<point_core*>(&point));
      if (!recover_open(owning, all, cause(cause_code::failed, first), store_deadline(point, all), {})) all.refused = first;
    }
  } catch (...) {
    point.count(tally::store_failed);
    point.warn("store", "an answer could not be stored", std::current_exception());
    if (first) all.refused = first;
  }
}

void invalidate_slices(const point_core& point, gather_base& all) noexcept {
  try {
    const auto expires = point.expire_on(all, {.kind = result_kind::absent});
    const auto gone = [&](const std::string& name, const std::string& key) {
      return entry{
          .name = name, .key = key, .as_of = all.from.as_of, .expire_on = expires, .payload = {}, .payload_class = {}, .realm = all.realm};
    };
    std::vector<entry> rows;
    if (all.listed) {
      point.engine.note(manifest_id(point, all), all.from.as_of);
      rows.push_back(gone(point.manifest_name, all.key));
    } else {
      all.split_for_recovery();
      std::unordered_set<std::string_view> seen;
      for (const auto& each : all.slices) {
        each.call->realm = all.realm;
        if (each.call->key.empty() || !seen.insert(each.call->key).second) continue;
        point.engine.note(point.id_of(*each.call), all.from.as_of);
        rows.push_back(gone(point.effective_name, each.call->key));
      }
    }
    for (const bool failed : put_rows(point, std::move(rows), gather_deadline(point))) {
      if (failed) point.count(tally::store_failed);
    }
  } catch (...) {
    point.count(tally::store_failed);
    point.warn("store", "an answer could not be declared gone", std::current_exception());
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail
