#include "failover/read.hpp"

#include "failover/call.hpp"
#include "failover/memory_recall.hpp"

namespace HOLDFAST_NAMESPACE::detail::failover {

namespace {

read_result result_of_row(std::optional<entry> row) {
  const auto status = row ? read_status::row : read_status::no_row;
  return {.status = status, .row = std::move(row)};
}

/// Starts a read that removes itself from the shared reads when it has ended.
bool start_read(const std::shared_ptr<point_core>& point, const call_base& call,
                const std::string& id, const std::shared_ptr<row_read>& read,
                std::chrono::steady_clock::time_point deadline) {
  auto& engine = point->engine;
  read->started = engine.clock->steady();
  const auto work = [read = read.get(), id, core = engine.shared_from_this(),
                     name = point->effective_name, realm = call.realm, key = call.key] {
    read->result = find_row(*core->front_store, place(name, realm), key, read->read_error);
    core->running_reads.finish(id, *read);
    const auto took = core->clock->steady() - read->started;
    const bool failed = read->result.status == read_status::failed;
    if (failed || took <= core->options.storage.read_deadline) core->record_read(!failed, took);
  };
  return engine.start(read, point->read_group(), work, deadline);
}

/// Asks a store that may block.
read_result read_elsewhere(const std::shared_ptr<point_core>& point, const call_base& call,
                           std::chrono::steady_clock::time_point deadline) {
  auto& engine = point->engine;
  const auto id = flight_id(*point, call);
  const auto [read, leader] = engine.running_reads.join(id);
  if (leader && !start_read(point, call, id, read, deadline)) {
    engine.running_reads.finish(id, *read);
    engine_core::refuse(*read);  // others may have joined meanwhile
  }
  switch (engine.wait_for(*read, deadline)) {
    case engine_core::wait_result::ended:
      if (read->read_error) point->warn("read", "the store could not be read", read->read_error);
      return read->result;
    case engine_core::wait_result::refused:
      engine.running_reads.finish(id, *read);
      point->warn("read", "no thread is free to read the store");
      return {.status = read_status::failed};
    case engine_core::wait_result::abandoned:
      engine.running_reads.finish(id, *read);
      engine.watch_read(read, read->started);
      break;
    case engine_core::wait_result::late:
      break;
  }
  point->warn("read_late", "the store did not answer in time");
  return {.status = read_status::late};
}

}  // namespace

remembered_entry recall(const engine_core& engine, place location, std::string_view key) noexcept {
  try {
    return engine.front_store->find_in_memory(location, key);
  } catch (...) {
    return {};
  }
}

read_result find_row(holdfast::store& store, place location, std::string_view key,
                     std::exception_ptr& error) noexcept {
  try {
    return result_of_row(store.find(location, key));
  } catch (...) {
    error = std::current_exception();
    return {.status = read_status::failed};
  }
}

counter counter_of(read_status status) noexcept {
  if (status == read_status::failed) return counter::read_failed;
  return status == read_status::late ? counter::read_late : counter::not_found;
}

namespace {

/// Reads for a thread that must not wait. Returns nothing for a key that it has not looked up.
std::optional<read_result> read_recalled(memory_recall& recalled, const point_core& point,
                                         const call_base& call) {
  if (recalled.is_used()) {
    const auto* const row = recalled.find(call.key);
    return row == nullptr ? std::nullopt : std::optional(result_of_row(row->entry));
  }
  recalled.add(call.key, recall(point.engine, place(point.effective_name, call.realm), call.key));
  return read_result{};
}

}  // namespace

read_result read_row(const std::shared_ptr<point_core>& point, const call_base& call,
                     std::chrono::steady_clock::time_point deadline) {
  auto& engine = point->engine;
  if (auto* const recalled = memory_recall::current()) {
    if (auto result = read_recalled(*recalled, *point, call)) return *std::move(result);
  }
  if (!engine.reads_block) {
    std::exception_ptr error;
    auto result =
        find_row(*engine.front_store, place(point->effective_name, call.realm), call.key, error);
    if (error) point->warn("read", "the store could not be read", error);
    return result;
  }
  auto remembered = recall(engine, place(point->effective_name, call.realm), call.key);
  if (remembered.current) return result_of_row(std::move(remembered.entry));
  auto result = engine.guard.answers() ? read_elsewhere(point, call, deadline)
                                       : read_result{.status = read_status::failed};
  if (result.status != read_status::failed && result.status != read_status::late) return result;
  if (remembered.entry) return result_of_row(std::move(remembered.entry));
  return result;
}

void erase_expired(const std::shared_ptr<point_core>& point, const entry& expired) noexcept {
  auto& engine = point->engine;
  const auto erase = [](holdfast::store& store, const entry& row) {
    try {
      store.erase(place(row), row.key, row.as_of);
    } catch (...) {  // NOLINT(bugprone-empty-catch)
      // The row stays and is not served; the cleanup of the store removes it.
    }
  };
  try {
    if (!engine.reads_block) return erase(*engine.front_store, expired);
    // One at a time for each row: many calls may find it expired before it is gone.
    auto id = expired.name + '\0' + expired.realm + '\0' + expired.key + "#erase";
    const auto joined = engine.shared_calls.join(id);
    if (!joined.leader) return;
    const auto core = engine.shared_from_this();
    // Ends the shared call when the work has ended, or is dropped.
    const std::shared_ptr<void> guard(nullptr, [core, id, call = joined.call](void*) {
      core->shared_calls.finish(id, call, {});
    });
    const auto row = std::make_shared<entry>(entry{
        .name = expired.name, .key = expired.key, .as_of = expired.as_of, .realm = expired.realm});
    const auto work = [core, row, erase, guard] { erase(*core->front_store, *row); };
    const auto deadline = engine.clock->steady() + engine.options.storage.read_deadline;
    (void)engine.start_upkeep(std::make_shared<store_work>(), work, deadline);
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // As above.
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail::failover
