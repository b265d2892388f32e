#include "failover/scatter/rows.hpp"

#include <algorithm>

namespace HOLDFAST_NAMESPACE::detail::failover {

namespace {

/// Waits until the work has ended, until the deadline, or until `progress` has not changed during
/// one read deadline. Abandons the work and returns whether it has ended.
template <class Progress>
bool wait_while_progressing(engine_core& engine, std::unique_lock<std::mutex>& lock,
                            store_work& work, steady_time deadline, Progress progress) {
  for (;;) {
    const auto before = progress();
    const auto patience = std::min<steady_time>(
        deadline, engine.clock->steady() + engine.options.storage.read_deadline);
    const bool ended = engine.wait(lock, work.changed, patience, [&] { return work.ended; });
    if (!ended && patience != deadline && progress() != before) continue;
    work.abandoned = true;
    const auto jobs = std::exchange(work.jobs, {});
    const bool answered = ended && !work.refused;
    if (ended) return answered;
    lock.unlock();
    for (const auto& job : jobs) engine.reads().leave(*job);
    lock.lock();
    return false;
  }
}

/// The number of rows that are read with one statement.
constexpr std::size_t rows_per_read = 250;

/// Keys that are read in chunks, by one or several threads.
struct chunked_read : store_work {
  std::shared_ptr<engine_core> engine;
  std::string name;
  std::string realm;
  std::vector<std::string> keys;
  std::vector<read_result> results{};
  std::size_t next = 0;
  std::size_t completed = 0;
  std::size_t threads = 0;

  [[nodiscard]] std::vector<read_result> read_chunk(std::span<const std::string> chunk,
                                                    std::exception_ptr& read_error) const {
    auto& store = *engine->front_store;
    std::vector<read_result> rows;
    rows.reserve(chunk.size());
    try {
      for (auto& row : store.find_many(place(name, realm), chunk)) {
        const auto status = row ? read_status::row : read_status::no_row;
        rows.push_back({.status = status, .row = std::move(row)});
      }
    } catch (const holdfast::error& e) {
      read_error = std::current_exception();
      rows.assign(chunk.size(), read_result{.status = read_status::failed});
      if (e.transient() || e.in_doubt()) return rows;  // a repetition for each row would fail too
      // One row that cannot be read affects only itself.
      for (std::size_t i = 0; i < chunk.size(); ++i)
        rows[i] = find_row(store, place(name, realm), chunk[i], read_error);
    } catch (...) {
      read_error = std::current_exception();
      rows.assign(chunk.size(), read_result{.status = read_status::failed});
    }
    return rows;
  }

  /// Reads chunks until all are read or the caller no longer waits.
  void run() {
    started = true;
    std::unique_lock lock(mutex);
    while (!abandoned && next < keys.size()) {
      const auto first = next;
      const auto chunk =
          std::span(keys).subspan(first, std::min(rows_per_read, keys.size() - first));
      next += chunk.size();
      lock.unlock();
      const auto read_started = engine->clock->steady();
      std::exception_ptr read_error;
      auto rows = read_chunk(chunk, read_error);
      record(rows, engine->clock->steady() - read_started);
      lock.lock();
      if (abandoned) break;
      std::ranges::move(rows, results.begin() + static_cast<std::ptrdiff_t>(first));
      if (read_error) error = std::move(read_error);
      completed += chunk.size();
    }
    end_thread();
  }
  void refuse_thread() {
    const std::scoped_lock lock(mutex);
    end_thread();
  }

 private:
  /// The store is given up if it answers for none of the rows, again and again.
  void record(const std::vector<read_result>& rows, std::chrono::steady_clock::duration took) {
    const bool failed = std::ranges::all_of(
        rows, [](const read_result& row) { return row.status == read_status::failed; });
    if (failed || took <= engine->options.storage.read_deadline) engine->record_read(!failed, took);
  }
  /// Called with the lock.
  void end_thread() {
    if (--threads != 0) return;
    ended = true;
    changed.notify_all();
  }
};

}  // namespace

steady_time gather_deadline(const point_core& point, const gather_base& call) {
  return std::min<steady_time>(call.deadline, point.engine.clock->steady() + point.scatter.timeout);
}

namespace {

void warn_of_missing_slice(const point_core& point, const std::exception_ptr& error) {
  if (error) point.warn("read", "the store could not be read; a slice is missing", error);
}

/// Reads rows from a store that may block, on other threads.
std::vector<read_result> read_elsewhere(const point_core& point, place location,
                                        std::vector<std::string> keys, steady_time deadline) {
  auto& engine = point.engine;
  const auto started = engine.clock->steady();
  const auto read = std::make_shared<chunked_read>();
  read->engine = engine.shared_from_this();
  read->name = location.name;
  read->realm = location.realm;
  read->keys = std::move(keys);
  read->results.assign(read->keys.size(), read_result{.status = read_status::late});
  const auto chunks = (read->keys.size() + rows_per_read - 1) / rows_per_read;
  read->threads = std::min(point.scatter.parallel, chunks);
  for (auto remaining = read->threads; remaining != 0; --remaining) {
    if (!engine.start_part(
            read, point.read_group(), [read] { read->run(); }, deadline,
            [read] { read->refuse_thread(); }))
      read->refuse_thread();
  }
  std::unique_lock lock(read->mutex);
  if (!wait_while_progressing(engine, lock, *read, deadline, [&] { return read->completed; })) {
    if (!read->refused) engine.watch_read(read, started);
    point.warn("read_late", "the store did not answer in time; a slice is missing");
  } else if (read->completed != read->results.size()) {
    point.warn("read", "no thread was free to read the store; a slice is missing");
  }
  warn_of_missing_slice(point, read->error);
  return std::move(read->results);
}

}  // namespace

std::vector<read_result> read_rows(const point_core& point, std::string_view name,
                                   std::string_view realm, std::vector<std::string> keys,
                                   steady_time deadline) {
  auto& engine = point.engine;
  const place location(name, realm);
  std::vector<read_result> results(keys.size());
  if (!engine.reads_block) {
    std::exception_ptr error;
    for (std::size_t i = 0; i < keys.size(); ++i)
      results[i] = find_row(*engine.front_store, location, keys[i], error);
    warn_of_missing_slice(point, error);
    return results;
  }
  // What memory has for certain is not read. The rest is what memory has if the store does not
  // answer.
  std::vector<std::size_t> positions;
  std::vector<std::string> unknown;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    auto remembered = recall(engine, location, keys[i]);
    results[i].status = remembered.entry ? read_status::row : read_status::no_row;
    results[i].row = std::move(remembered.entry);
    if (remembered.current) continue;
    positions.push_back(i);
    unknown.push_back(std::move(keys[i]));
  }
  if (unknown.empty()) return results;
  auto answers = engine.guard.answers()
                     ? read_elsewhere(point, location, std::move(unknown), deadline)
                     : std::vector(unknown.size(), read_result{.status = read_status::failed});
  for (std::size_t i = 0; i < positions.size(); ++i) {
    auto& result = results[positions[i]];
    const bool answered =
        answers[i].status == read_status::row || answers[i].status == read_status::no_row;
    if (answered || !result.row) result = std::move(answers[i]);
  }
  return results;
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
  } else if (!engine.start(state, point.read_group(), work, deadline)) {
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
    if (!engine.start(
            put, point.read_group(),
            [put = put.get()] { put->run([put] { return !put->abandoned; }); }, deadline)) {
      point.warn("store", "no thread is free to write to the store; an answer was not stored");
      return std::vector<bool>(put->rows.size(), true);
    }
    if (engine.wait_for(*put, deadline) != engine_core::wait_result::ended) {
      point.warn("store_late", "the store did not take an answer in time");
      return std::vector<bool>(put->rows.size(), true);
    }
  }
  if (put->refusal) point.warn("store", "a slice of an answer could not be stored", put->refusal);
  return std::move(put->failed);
}

}  // namespace HOLDFAST_NAMESPACE::detail::failover
