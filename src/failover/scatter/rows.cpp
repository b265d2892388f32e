#include "failover/scatter/rows.hpp"

#include <algorithm>

namespace HOLDFAST_NAMESPACE::detail::failover {

namespace {

/// Waits until the work has ended, until the deadline, or until `progress` has not changed during
/// one read deadline. Abandons the work and returns whether it has ended.
template <class Progress>
bool wait_while_progressing(const engine_core& engine, std::unique_lock<std::mutex>& lock,
                            store_work& work, steady_time deadline, Progress progress) {
  for (;;) {
    const auto before = progress();
    const auto patience = std::min<steady_time>(
        deadline, engine.clock->steady() + engine.options.storage.read_deadline);
    const bool ended = engine.wait(lock, work.changed, patience, [&] { return work.ended; });
    if (!ended && patience != deadline && progress() != before) continue;
    work.abandoned = true;
    return ended;
  }
}

/// Keys that several threads read.
struct parallel_read : store_work {
  std::shared_ptr<holdfast::store> store;
  std::string name;
  std::string realm;
  std::vector<std::string> keys;
  std::vector<read_result> results{};
  std::size_t next = 0;
  std::size_t completed = 0;
};

/// Reads one key after the other until all are read or the caller no longer waits.
void read_keys(parallel_read& read) {
  std::unique_lock lock(read.mutex);
  while (!read.abandoned && read.next < read.keys.size()) {
    const auto index = read.next++;
    lock.unlock();
    std::exception_ptr error;
    auto result = find_row(*read.store, place(read.name, read.realm), read.keys[index], error);
    lock.lock();
    if (read.abandoned) return;
    read.results[index] = std::move(result);
    if (error) read.error = std::move(error);
    read.ended = ++read.completed == read.keys.size();
    if (read.ended) read.changed.notify_all();
  }
}

}  // namespace

steady_time gather_deadline(const point_core& point) {
  return point.engine.clock->steady() + point.scatter.timeout;
}

std::vector<read_result> read_rows(const point_core& point, std::string_view name,
                                   std::string_view realm, std::vector<std::string> keys,
                                   steady_time deadline) {
  auto& engine = point.engine;
  std::vector<read_result> results(keys.size());
  if (keys.empty()) return results;
  const auto warn_if = [&](const std::exception_ptr& error) {
    if (error) point.warn("read", "the store could not be read; a slice is missing", error);
  };
  if (!engine.reads_block) {
    std::exception_ptr error;
    for (std::size_t i = 0; i < keys.size(); ++i)
      results[i] = find_row(*engine.front_store, place(name, realm), keys[i], error);
    warn_if(error);
    return results;
  }

  const auto read = std::make_shared<parallel_read>();
  read->store = engine.front_store;
  read->name = name;
  read->realm = realm;
  read->keys = std::move(keys);
  read->results.assign(read->keys.size(), read_result{.status = read_status::late});
  const auto threads = std::min(point.scatter.parallel, read->keys.size());
  std::size_t started = 0;
  while (started < threads &&
         engine.reads().post(engine.in_this_context([read] { read_keys(*read); })))
    ++started;
  if (started == 0) {
    point.warn("read", "no thread is free to read the store; all slices are missing");
    for (auto& result : results) result.status = read_status::failed;
    return results;
  }
  std::unique_lock lock(read->mutex);
  if (!wait_while_progressing(engine, lock, *read, deadline, [&] { return read->completed; }))
    point.warn("read_late", "the store did not answer in time; a slice is missing");
  warn_if(read->error);
  return std::move(read->results);
}

std::optional<std::vector<entry>> read_all_rows(const point_core& point, const std::string& realm,
                                                std::size_t limit, steady_time deadline) {
  struct scan : store_work {
    std::vector<entry> rows{};
    std::size_t pages = 0;
  };
  auto& engine = point.engine;
  const auto state = std::make_shared<scan>();
  const executor::task work = [scan = state.get(), store = engine.front_store,
                               name = point.effective_name, realm, limit] {
    constexpr std::size_t page_size = 500;
    std::string after;
    std::size_t count = 0;
    for (bool more = true; more && count < limit;) {
      auto page = store->find_all(place(name, realm), std::min(page_size, limit - count), after);
      count += page.entries.size();
      more = page.next.has_value();
      if (more) after = *page.next;
      const std::scoped_lock lock(scan->mutex);
      if (scan->abandoned) return;
      ++scan->pages;
      for (auto& row : page.entries) scan->rows.push_back(std::move(row));
    }
  };
  if (!engine.reads_block) {
    engine_core::run_here(*state, work);
  } else if (!engine.start(state, work)) {
    point.warn("read", "no thread is free to read the store; there is nothing to serve");
    point.count(counter::read_failed);
    return std::nullopt;
  }
  std::unique_lock lock(state->mutex);
  const bool ended =
      wait_while_progressing(engine, lock, *state, deadline, [&] { return state->pages; });
  if (ended && !state->error) return std::move(state->rows);
  point.count(ended ? counter::read_failed : counter::read_late);
  point.warn("read", "the store could not be read; there is nothing to serve", state->error);
  return std::nullopt;
}

namespace {

/// A write of many rows. It bisects refused rows as long as `may_continue` returns true.
struct bisecting_put : store_work {
  std::shared_ptr<holdfast::store> store;
  std::vector<entry> rows;
  std::vector<bool> failed;
  std::exception_ptr refusal{};

  template <class MayContinue>
  void run(MayContinue may_continue) noexcept {
    put(rows, 0, may_continue);
  }

 private:
  /// A transient or unknown failure is not bisected: the halves would fail as well.
  template <class MayContinue>
  void put(std::span<const entry> part, std::size_t first, MayContinue may_continue) noexcept {
    bool bisect = false;
    try {
      store->put(part);
      return;
    } catch (const holdfast::error& e) {
      refusal = std::current_exception();
      bisect = part.size() > 1 && !e.transient() && !e.in_doubt() && may_continue();
    } catch (...) {
      refusal = std::current_exception();
    }
    if (!bisect) {
      std::fill_n(failed.begin() + static_cast<std::ptrdiff_t>(first), part.size(), true);
      return;
    }
    const auto half = part.size() / 2;
    put(part.first(half), first, may_continue);
    put(part.subspan(half), first + half, may_continue);
  }
};

}  // namespace

std::vector<bool> put_rows(const point_core& point, std::vector<entry> rows, steady_time deadline) {
  if (rows.empty()) return {};
  auto& engine = point.engine;
  const auto put = std::make_shared<bisecting_put>();
  put->store = point.write_store;
  put->failed.assign(rows.size(), false);
  put->rows = std::move(rows);
  const bool queued = engine.write_queue && point.write_store == engine.front_store;
  if (queued || !point.write_store->waits()) {
    put->run([&] { return engine.clock->steady() < deadline; });
  } else {
    if (!engine.start(put, [put = put.get()] { put->run([put] { return !put->abandoned; }); })) {
      point.warn("store", "no thread is free to write to the store; an answer was not stored");
      return std::vector<bool>(put->rows.size(), true);
    }
    if (!engine.wait_for(*put, deadline)) {
      point.warn("store_late", "the store did not take an answer in time");
      return std::vector<bool>(put->rows.size(), true);
    }
  }
  if (put->refusal) point.warn("store", "a slice of an answer could not be stored", put->refusal);
  return std::move(put->failed);
}

}  // namespace HOLDFAST_NAMESPACE::detail::failover
