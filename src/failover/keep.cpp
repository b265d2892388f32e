#include "failover/keep.hpp"

#include "failover/insight/call_notes.hpp"
#include "failover/scatter/keep.hpp"

namespace HOLDFAST_NAMESPACE::detail::failover {

namespace {

/// The entry of this thread, whose strings keep their memory between calls; a put copies them. If
/// the store itself makes a protected call, that call gets an entry of its own.
class scratch_entry {
 public:
  scratch_entry() : entry_(std::exchange(in_use, true) ? &own_.emplace() : &reused) {}
  scratch_entry(const scratch_entry&) = delete;
  scratch_entry& operator=(const scratch_entry&) = delete;
  ~scratch_entry() {
    if (own_) return;
    if (entry_->payload && entry_->payload->capacity() > max_reused_size) entry_->payload.reset();
    in_use = false;
  }
  entry& operator*() { return *entry_; }
  entry* operator->() { return entry_; }

 private:
  static constexpr std::size_t max_reused_size = 4096;
  static thread_local bool in_use;
  static thread_local entry reused;
  std::optional<entry> own_{};
  entry* entry_;
};
thread_local bool scratch_entry::in_use = false;
thread_local entry scratch_entry::reused{};

/// Assigns a text that is mostly there already: an entry is reused for the same point.
void reassign(std::string& target, const std::string& text) {
  if (target != text) target.assign(text);
}

/// Encodes the value and sets all members of the row except key and realm. Returns false if it is
/// not to be stored.
bool fill(entry& row, const point_core& point, call_base& call) noexcept {
  bool shared = false;  // followers can use the bytes
  try {
    encoded_value value = call.encode(call.now);
    if (value.kind == result_kind::ignore) {
      point.count(counter::ignored);
      if (call.shares_bytes && call.has_value())
        call.shared_bytes = std::make_shared<const std::string>(call.encode_for_followers());
      return false;
    }
    const bool tombstone = value.kind == result_kind::absent;
    call.provenance.expires = point.expire_on(call, value);
    if (call.shares_bytes && !tombstone)
      call.shared_bytes = std::make_shared<const std::string>(value.payload);
    shared = true;
    if (value.payload.size() > point.max_payload) {
      point.count(counter::too_large);
      point.warn("too_large", "an answer is larger than max_payload and was not stored");
      return false;
    }
    if (call.provenance.expires < call.now) {
      point.count(counter::ignored);
      // The answer must not be served later, so an older one must not be either.
      point.engine.note_served(point.row_id(call), call.provenance.as_of);
      return false;
    }
    reassign(row.name, point.effective_name);
    row.as_of = call.provenance.as_of;
    row.expire_on = call.provenance.expires;
    if (tombstone) {
      row.payload.reset();
      row.payload_class.clear();
    } else {
      row.payload = std::move(value.payload);
      reassign(row.payload_class, point.payload_class);
    }
    return true;
  } catch (...) {
    if (!shared) call.shares_bytes = false;
    record_store_failure(point);
    return false;
  }
}

void put_row(const point_core& point, const entry& row, std::uint64_t id,
             std::chrono::steady_clock::time_point started) noexcept {
  auto& engine = point.engine;
  // Before: the queue may give the row up before this thread goes on, and then forgets its version.
  const bool queued = point.writes_to_queue();
  if (queued) engine.note_served(id, row.as_of);
  try {
    point.write_store->put(std::span<const entry>(&row, 1));
    point.count(counter::stored);
    if (row.tombstone()) point.count(counter::absent);
    if (point.meters) {
      point.meters->payload(row.payload ? row.payload->size() : 0);
      point.meters->store(engine.clock->steady() - started);
    }
    // Only now: until the row is stored, a recovery must be able to serve the older one.
    if (!queued) engine.note_served(id, row.as_of);
  } catch (...) {
    if (queued) engine.served->forget(id, row.as_of);
    record_store_failure(point);
  }
}

void set_live(call_base& call) {
  call.provenance.origin = origin::live;
  call.provenance.complete = completeness::yes;
}

}  // namespace

void record_store_failure(const point_core& point, const char* message) noexcept {
  point.count(counter::store_failed);
  point.warn("store", message, std::current_exception());
}

std::optional<entry> row_of(const point_core& point, call_base& call) noexcept {
  entry row;
  if (!fill(row, point, call)) return std::nullopt;
  try {
    row.key = call.key;
    row.realm = call.realm;
    return row;
  } catch (...) {
    record_store_failure(point);
    return std::nullopt;
  }
}

std::optional<encoded_answer> encode_answer(const point_core& point, call_base& call) noexcept {
  set_live(call);
  if (call.key.empty()) return std::nullopt;
  const auto started = point.measure_start();
  auto row = row_of(point, call);
  if (!row) return std::nullopt;
  return encoded_answer{.row = *std::move(row), .id = point.row_id(call), .started = started};
}

void put_encoded(const point_core& point, const encoded_answer& answer) noexcept {
  put_row(point, answer.row, answer.id, answer.started);
}

void keep(const point_core& point, call_base& call) noexcept {
  set_live(call);
  if (auto* scattered = call.gather()) return keep_slices(point, *scattered);
  if (call.key.empty()) return;
  const auto started = point.measure_start();
  scratch_entry row;
  if (!fill(*row, point, call)) return;
  const auto id = point.row_id(call);
  row->key = std::move(call.key);  // not used afterwards
  if (!row->realm.empty() || !call.realm.empty()) row->realm = std::move(call.realm);
  put_row(point, *row, id, started);
}

void finish_answer(const point_core& point, call_base& call) noexcept {
  point.enrich(call);
  const auto* scattered = call.gather();
  const bool refused = scattered != nullptr && scattered->refusal;
  point.count(refused ? counter::failed : counter::live);
  if (point.insight) note_end(point, call, refused ? decision_rule::unserved : decision_rule::live);
}

}  // namespace HOLDFAST_NAMESPACE::detail::failover
