// What the application does with stored answers, without a call of the upstream.

#include <holdfast/failover/engine.hpp>

#include "failover/keep.hpp"
#include "failover/read.hpp"
#include "failover/recover.hpp"

namespace HOLDFAST_NAMESPACE {

namespace detail::failover {

namespace {

/// Sets times and realm. Throws errc::invalid_argument if the call has no key.
void start_without_upstream(const point_core& point, call_base& call) {
  auto& engine = point.engine;
  if (call.key.empty())
    throw error(errc::invalid_argument,
                "these arguments of '" + point.name + "' have no key; check that they have values");
  if (engine.options.caller.tenant) call.realm = engine.options.caller.tenant();
  call.now = engine.clock->now();
  call.provenance.as_of = engine.stamp(call.now);
}

enum class erase_result : std::uint8_t { erased, no_row, late };

/// Erases the row that the store has. Throws what the store throws.
erase_result erase_row(const point_core& point, place location, const std::string& key,
                       std::chrono::steady_clock::time_point deadline) {
  auto& engine = point.engine;
  struct erase_work : store_work {
    bool found_row = false;
  };
  const auto state = std::make_shared<erase_work>();
  const auto work = [state = state.get(), store = engine.front_store,
                     name = std::string(location.name), realm = std::string(location.realm), key] {
    const auto row = store->find(place(name, realm), key);
    state->found_row = row.has_value();
    if (row) (void)store->erase(place(name, realm), key, row->as_of);
  };
  if (!engine.reads_block) {
    engine_core::run_here(*state, work);
  } else if (!engine.start(state, point.read_group(), work, deadline) ||
             engine.wait_for(*state, deadline) != engine_core::wait_result::ended) {
    return erase_result::late;
  }
  if (state->error) std::rethrow_exception(state->error);
  return state->found_row ? erase_result::erased : erase_result::no_row;
}

}  // namespace

bool peek_stored(const std::shared_ptr<point_core>& point, call_base& call) {
  start_without_upstream(*point, call);
  auto& engine = point->engine;
  const auto newest = engine.newest_served(point->row_id(call));
  const auto read = read_row(point, call, engine.read_deadline(call));
  if (!read.row) return false;
  const auto now = engine.clock->now();
  if (check_row(point, call, *read.row, now, newest) != counter::live) return false;
  call.provenance = {
      .origin = origin::stored, .as_of = read.row->as_of, .expires = read.row->expire_on};
  point->enrich(call);
  return true;
}

void prime_stored(const std::shared_ptr<point_core>& point, call_base& call) {
  start_without_upstream(*point, call);
  const auto answer = encode_answer(*point, call);
  if (!answer)
    throw error(errc::invalid_argument, "a value of '" + point->name +
                                            "' was not stored: it is too large, expired, cannot be "
                                            "encoded, or its result hook ignores it");
  point->write_store->put(answer->row);
  point->count(counter::stored);
  point->engine.note_served(answer->id, answer->row.as_of);
}

void invalidate_stored(const std::shared_ptr<point_core>& point, call_base& call) {
  start_without_upstream(*point, call);
  const entry row = point->tombstone(call, point->effective_name, call.key);
  point->engine.note_served(point->row_id(call), row.as_of);
  point->write_store->put(row);
}

void erase_stored(const std::shared_ptr<point_core>& point, call_base& call,
                  std::chrono::steady_clock::time_point deadline) {
  start_without_upstream(*point, call);
  auto& engine = point->engine;
  const place location(point->effective_name, call.realm);
  // An older answer that another thread still holds must not be served afterwards.
  engine.note_served(point->row_id(call), call.provenance.as_of);
  for (;;) {
    // Writes that wait in the queue must not come after the erase.
    const bool flushed = engine.flush(deadline);
    const auto erased = erase_row(*point, location, call.key, deadline);
    if (erased == erase_result::no_row && flushed) return;
    if (erased == erase_result::late || engine.clock->steady() >= deadline)
      throw error(errc::timeout, "an answer of '" + point->name + "' could not be erased in time",
                  {.transient = true});
  }
}

}  // namespace detail::failover

bool engine::invalidate_entry(std::string_view point, std::string_view key) {
  const auto target = core_->find_point(point);
  const auto realm = core_->options.caller.tenant ? core_->options.caller.tenant() : std::string();
  auto row = core_->front_store->find(place(target->effective_name, realm), key);
  const auto now = core_->clock->now();
  if (!row || row->tombstone() || row->expire_on < now) return false;
  row->as_of = std::max(row->as_of, core_->stamp(now));
  row->payload.reset();
  row->payload_class.clear();
  core_->note_served(detail::failover::row_id(target->name_hash, row->key, row->realm), row->as_of);
  target->write_store->put(*row);
  return true;
}

std::uint64_t engine::invalidate_domain(std::string_view domain) {
  constexpr std::size_t page_size = 500;
  auto& store = *core_->front_store;
  const auto realm = core_->options.caller.tenant ? core_->options.caller.tenant() : std::string();
  const auto now = core_->clock->now();
  const auto as_of = core_->stamp(now);
  std::uint64_t invalidated = 0;
  std::string after;
  for (bool more = true; more;) {
    auto page = store.find_all(place(domain, realm), page_size, after);
    more = page.next.has_value();
    if (more) after = *page.next;
    std::erase_if(page.entries,
                  [&](const entry& row) { return row.tombstone() || row.expire_on < now; });
    for (auto& row : page.entries) {
      row.as_of = std::max(row.as_of, as_of);
      row.payload.reset();
      row.payload_class.clear();
      core_->note_served(
          detail::failover::row_id(std::hash<std::string_view>{}(domain), row.key, row.realm),
          row.as_of);
    }
    if (page.entries.empty()) continue;
    store.put(page.entries);
    invalidated += page.entries.size();
  }
  return invalidated;
}

}  // namespace HOLDFAST_NAMESPACE
