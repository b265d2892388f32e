// Many rows at once, within one deadline: a row that is slow, or a store that refuses one, costs that row and nothing else.

#include "failover/scatter.hpp"

#include <algorithm>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail {

namespace {

/// What the readers of a gather and the one who waits for them have in common. Outlives the latter.
struct errands {
  std::shared_ptr<store> from;
  std::string name;
  std::string realm;
  std::vector<std::string> keys;
  std::mutex mutex{};
  std::condition_variable done{};
  std::vector<reading> results{};
  std::size_t next = 0;
  std::size_t ended = 0;
  std::exception_ptr error{};  ///< one of them, for the log
  bool left = false;           ///< nobody waits any more: begin nothing
};

reading look(store& from, place where, std::string_view key, std::exception_ptr& error) noexcept {
  try {
    auto what = from.find(where, key);
    const auto how = what ? found::answer : found::nothing;
    return {.how = how, .what = std::move(what)};
  } catch (...) {
    error = std::current_exception();
    return {.how = found::failed};
  }
}

/// Takes one key after the other, until there is none or nobody waits.
void read_some(errands& all) {
  std::unique_lock lock(all.mutex);
  while (!all.left && all.next < all.keys.size()) {
    const auto mine = all.next++;
    lock.unlock();
    std::exception_ptr error;
    auto result = look(*all.from, place(all.name, all.realm), all.keys[mine], error);
    lock.lock();
    if (all.left) return;
    all.results[mine] = std::move(result);
    if (error) all.error = std::move(error);
    if (++all.ended == all.keys.size()) all.done.notify_all();
  }
}

/// Waits for `done`, until the deadline, or until `progress` has not changed for a read deadline: who has gone silent is not waited for.
template <class Done, class Progress>
bool wait_while_it_goes_on(const engine_core& engine, std::unique_lock<std::mutex>& lock, std::condition_variable& told,
                           std::chrono::steady_clock::time_point deadline, Done done, Progress progress) {
  for (;;) {
    const auto before = progress();
    const auto patience = std::min<std::chrono::steady_clock::time_point>(deadline, engine.clock->steady() + engine.options.read_deadline);
    if (engine.wait(lock, told, patience, done)) return true;
    if (patience == deadline || progress() == before) return false;
  }
}

}  // namespace

std::chrono::steady_clock::time_point gather_deadline(const point_core& point) {
  return point.engine.clock->steady() + point.scatter.timeout;
}

std::vector<reading> read_rows(const point_core& point, std::string_view name, std::string_view realm, std::vector<std::string> keys,
                               std::chrono::steady_clock::time_point deadline) {
  auto& engine = point.engine;
  std::vector<reading> results(keys.size());
  if (keys.empty()) return results;
  std::exception_ptr error;
  if (!engine.reads_wait) {
    for (std::size_t i = 0; i < keys.size(); ++i) results[i] = look(*engine.front, place(name, realm), keys[i], error);
    if (error) point.warn("read", "the store could not be read; a slice is missing", error);
    return results;
  }

  const auto job = std::make_shared<errands>();
  job->from = engine.front;
  job->name = name;
  job->realm = realm;
  job->keys = std::move(keys);
  job->results.assign(job->keys.size(), reading{.how = found::late});
  const auto readers = std::min(point.scatter.parallel, job->keys.size());
  std::size_t posted = 0;
  while (posted < readers && engine.reads().post(engine.in_this_context([job] { read_some(*job); }))) ++posted;
  if (posted == 0) {
    point.warn("read", "no thread is free to read the store; all slices are missing");
    for (auto& each : results) each.how = found::failed;
    return results;
  }
  std::unique_lock lock(job->mutex);
  const bool all =
      wait_while_it_goes_on(engine, lock, job->done, deadline, [&] { return job->ended == job->keys.size(); }, [&] { return job->ended; });
  job->left = true;
  if (!all) point.warn("read_late", "the store did not answer in time; a slice is missing");
  if (job->error) point.warn("read", "the store could not be read; a slice is missing", job->error);
  return std::move(job->results);
}

std::optional<std::vector<entry>> read_all_rows(const point_core& point, const std::string& realm, std::size_t limit,
                                                std::chrono::steady_clock::time_point deadline) {
  struct scan {
    std::mutex mutex{};
    std::condition_variable done{};
    std::vector<entry> rows{};
    std::exception_ptr error{};
    std::size_t pages = 0;
    bool ended = false;
    bool left = false;
  };
  auto& engine = point.engine;
  const auto job = std::make_shared<scan>();
  const auto work = [job, from = engine.front, name = point.effective_name, realm, limit] {
    constexpr std::size_t page_size = 500;
    std::exception_ptr error;
    try {
      std::string after;
      std::size_t got = 0;
      for (bool more = true; more && got < limit;) {
        auto page = from->find_all(place(name, realm), std::min(page_size, limit - got), after);
        got += page.entries.size();
        more = page.next.has_value();
        if (more) after = *page.next;
        const std::scoped_lock lock(job->mutex);
        if (job->left) return;
        ++job->pages;
        for (auto& each : page.entries) job->rows.push_back(std::move(each));
      }
    } catch (...) {
      error = std::current_exception();
    }
    const std::scoped_lock lock(job->mutex);
    job->error = std::move(error);
    job->ended = true;
    job->done.notify_all();
  };
  if (!engine.reads_wait) {
    work();
  } else if (!engine.reads().post(engine.in_this_context(work))) {
    point.warn("read", "no thread is free to read the store; there is nothing to serve");
    point.count(tally::read_failed);
    return std::nullopt;
  }
  std::unique_lock lock(job->mutex);
  const bool ended = wait_while_it_goes_on(engine, lock, job->done, deadline, [&] { return job->ended; }, [&] { return job->pages; });
  job->left = true;
  if (ended && !job->error) return std::move(job->rows);
  point.count(ended ? tally::read_failed : tally::read_late);
  point.warn("read", "the store could not be read; there is nothing to serve", job->error);
  return std::nullopt;
}

}  // namespace HOLDFAST_NAMESPACE::detail
