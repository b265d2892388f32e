// Reading the store for a recovery: here where it cannot wait, else on another thread, and not for longer than the read deadline.

#include "failover/point_core.hpp"

#include <utility>

namespace HOLDFAST_NAMESPACE::detail {

namespace {

/// Outlives a reader who left.
struct errand {
  std::shared_ptr<store> from;
  std::string name;
  std::string realm;
  std::string key;
  std::mutex mutex{};
  std::condition_variable done{};
  std::optional<reading> result{};
  std::exception_ptr error{};
};

}  // namespace

reading read(const std::shared_ptr<point_core>& point, const call_base& call) {
  auto& engine = point->engine;
  const auto fail = [&](const std::exception_ptr& why) {
    point->warn("read", "the store could not be read; there is nothing to serve", why);
    return reading{.how = found::failed};
  };
  if (!engine.reads_wait) {
    try {
      auto what = engine.front->find(place(point->effective_name, call.realm), call.key);
      const auto how = what ? found::answer : found::nothing;
      return {.how = how, .what = std::move(what)};
    } catch (...) {
      return fail(std::current_exception());
    }
  }

  const auto job = std::make_shared<errand>();
  job->from = engine.front;
  job->name = point->effective_name;
  job->realm = call.realm;
  job->key = call.key;
  const auto deadline = engine.clock->steady() + engine.options.read_deadline;
  const auto work = [job] {
    reading result{.how = found::failed};
    std::exception_ptr error;
    try {
      result.what = job->from->find(place(job->name, job->realm), job->key);
      result.how = result.what ? found::answer : found::nothing;
    } catch (...) {
      error = std::current_exception();
    }
    const std::scoped_lock lock(job->mutex);
    job->result = std::move(result);
    job->error = std::move(error);
    job->done.notify_all();
  };
  if (!engine.reads().post(engine.in_this_context(work))) {
    point->warn("read", "no thread is free to read the store; there is nothing to serve");
    return {.how = found::failed};
  }
  std::unique_lock lock(job->mutex);
  if (!engine.wait(lock, job->done, deadline, [&] { return job->result.has_value(); })) {
    point->warn("read_late", "the store did not answer within the read deadline; there is nothing to serve");
    return {.how = found::late};
  }
  if (job->error) return fail(job->error);
  auto result = std::move(job->result);
  return result ? *std::move(result) : reading{.how = found::failed};
}

void drop(const std::shared_ptr<point_core>& point, const entry& expired) noexcept {
  auto& engine = point->engine;
  const auto erase = [](store& from, const entry& what) {
    try {
      from.erase(place(what), what.key, what.as_of);
    } catch (...) {  // NOLINT(bugprone-empty-catch)
      // It stays, and is not served; the store's own cleaning will remove it.
    }
  };
  try {
    if (!engine.reads_wait) return erase(*engine.front, expired);
    const auto what =
        std::make_shared<entry>(entry{.name = expired.name, .key = expired.key, .as_of = expired.as_of, .realm = expired.realm});
    (void)engine.reads().post(engine.in_this_context([from = engine.front, what, erase] { erase(*from, *what); }));
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // As above.
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail
