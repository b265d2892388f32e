// Keeping a live answer: encoded before its caller gets it, so that nobody can change what is stored.

#include "failover/point_core.hpp"
#include "failover/scatter.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail {

namespace {

/// An entry whose texts keep their memory from one call to the next: a put copies what it keeps. A store that makes a protected call itself
/// finds the thread's entry taken, and gets one of its own.
class scratch_entry {
 public:
  scratch_entry() {
    if (std::exchange(taken, true)) at_ = &own_.emplace();
    else at_ = &kept;
  }
  scratch_entry(const scratch_entry&) = delete;
  scratch_entry& operator=(const scratch_entry&) = delete;
  ~scratch_entry() {
    if (own_) return;
    // Large payloads are given back at once.
    if (at_->payload && at_->payload->capacity() > most_kept) at_->payload.reset();
    taken = false;
  }
  entry& operator*() { return *at_; }
  entry* operator->() { return at_; }

 private:
  static constexpr std::size_t most_kept = 4096;
  static thread_local bool taken;
  static thread_local entry kept;
  std::optional<entry> own_{};
  entry* at_;
};
thread_local bool scratch_entry::taken = false;
thread_local entry scratch_entry::kept{};

}  // namespace

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

namespace {

/// In a catch clause.
void not_stored(const point_core& point) noexcept {
  point.count(tally::store_failed);
  point.warn("store", "an answer could not be stored", std::current_exception());
}

/// All of a row but its key and realm. False: it is not to be stored, which is counted.
bool fill(entry& row, const point_core& point, call_base& call) noexcept {
  const auto note = [&] { point.engine.note(point.id_of(call), call.from.as_of); };
  bool shared = false;
  try {
    encoded what = call.encode(call.now);
    if (what.kind == result_kind::ignore) {
      point.count(tally::ignored);
      call.keeps_bytes = false;
      return false;
    }
    const bool tombstone = what.kind == result_kind::absent;
    call.from.expires = point.expire_on(call, what);
    if (call.keeps_bytes && !tombstone) call.bytes = std::make_shared<const std::string>(what.payload);
    shared = true;
    if (what.payload.size() > point.max_payload) {
      point.count(tally::too_large);
      point.warn("too_large", "an answer is larger than max_payload and was not stored");
      note();
      return false;
    }
    if (call.from.expires < call.now) {
      point.count(tally::ignored);
      note();
      return false;
    }
    row.name.assign(point.effective_name);
    row.as_of = call.from.as_of;
    row.expire_on = call.from.expires;
    if (tombstone) {
      row.payload.reset();
      row.payload_class.clear();
    } else {
      row.payload = std::move(what.payload);
      row.payload_class.assign(point.payload_class);
    }
    return true;
  } catch (...) {
    if (!shared) call.keeps_bytes = false;
    note();
    not_stored(point);
    return false;
  }
}

}  // namespace

std::optional<entry> row_of(const point_core& point, call_base& call) noexcept {
  entry made;
  if (!fill(made, point, call)) return std::nullopt;
  try {
    made.key = call.key;
    made.realm = call.realm;
    return made;
  } catch (...) {
    point.engine.note(point.id_of(call), made.as_of);
    not_stored(point);
    return std::nullopt;
  }
}

namespace {

void put_row(const point_core& point, const entry& row, std::uint64_t id, std::chrono::steady_clock::time_point began) noexcept {
  try {
    point.writes->put(std::span<const entry>(&row, 1));
    point.count(tally::stored);
    if (row.tombstone()) point.count(tally::absent);
    if (point.meters) {
      point.meters->payload(row.payload ? row.payload->size() : 0);
      point.meters->store(point.engine.clock->steady() - began);
    }
  } catch (...) {
    not_stored(point);
  }
  // Not before it is there: who recovers at this moment would find only an older one, and could not serve it.
  point.engine.note(id, row.as_of);
}

std::chrono::steady_clock::time_point began_now(const point_core& point) noexcept {
  return point.meters ? point.engine.clock->steady() : std::chrono::steady_clock::time_point{};
}

}  // namespace

std::optional<unput> keep_later(const point_core& point, call_base& call) noexcept {
  call.from.from = origin::live;
  call.from.complete = completeness::yes;
  if (call.key.empty()) return std::nullopt;
  const auto began = began_now(point);
  auto row = row_of(point, call);
  if (!row) return std::nullopt;
  return unput{.row = *std::move(row), .id = point.id_of(call), .began = began};
}

void put(const point_core& point, const unput& what) noexcept { put_row(point, what.row, what.id, what.began); }

void keep(const point_core& point, call_base& call) noexcept {
  call.from.from = origin::live;
  call.from.complete = completeness::yes;
  if (auto* many = call.gather()) return keep_slices(point, *many);
  if (call.key.empty()) return;
  const auto began = began_now(point);
  scratch_entry row;
  if (!fill(*row, point, call)) return;
  const auto id = point.id_of(call);
  row->key = std::move(call.key);  // nobody needs it afterwards
  row->realm = std::move(call.realm);
  put_row(point, *row, id, began);
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
