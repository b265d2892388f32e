#include "serve/api/job_runner.hpp"

#include <holdfast/error.hpp>

#include "base/thread.hpp"
#include "base/uuid.hpp"
#include "serve/api/json_writer.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <ranges>
#include <thread>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

/// A job and its thread. The runner's mutex guards everything but `definition`, which is constant.
struct job {
  job_definition definition{};
  job_status status{};
  bool stop_requested = false;
  std::jthread thread{};
};

}  // namespace

std::string_view to_string(job_state state) noexcept {
  switch (state) {
    case job_state::running:
      return "running";
    case job_state::done:
      return "done";
    case job_state::stopped:
      return "stopped";
    case job_state::failed:
      return "failed";
  }
  return "failed";
}

std::string to_json(const job_status& status) {
  json_writer out;
  out.begin_object()
      .member("id", status.id)
      .member("kind", status.kind)
      .member("subject", status.subject)
      .member("caller", status.caller)
      .member("state", to_string(status.state))
      .member("startedAt", status.started_at);
  if (status.finished_at) out.member("finishedAt", *status.finished_at);
  out.member("steps", status.steps)
      .member("examined", status.examined)
      .member("changed", status.changed);
  if (status.matched) out.member("matched", *status.matched);
  if (status.at_most) out.member("atMost", *status.at_most);
  if (!status.reason.empty()) out.member("reason", status.reason);
  if (!status.result.empty()) out.key("result").raw(status.result);
  out.end_object();
  return out.take();
}

struct job_runner::state {
  explicit state(job_runner_options chosen) : options(std::move(chosen)) {}

  void run(job& work);
  /// Returns false if the job has ended.
  [[nodiscard]] bool run_step(job& work);
  void finish(job& work, job_state end, const std::string& reason);
  void announce(const job_status& status) const;
  void audit(const job& work, std::uint64_t count, std::string result) const;
  /// Waits, and returns false if the job must stop.
  [[nodiscard]] bool pause(const job& work, std::chrono::steady_clock::duration length);
  /// Removes the oldest jobs that have ended, and returns them: their threads are joined without
  /// the mutex.
  [[nodiscard]] std::vector<std::unique_ptr<job>> take_forgotten();

  job_runner_options options;
  mutable std::mutex mutex{};
  std::condition_variable changed{};
  /// In the order of their starts.
  std::deque<std::unique_ptr<job>> jobs{};
  bool closed = false;
  /// Threads that have not written their last record.
  std::size_t unended = 0;
};

void job_runner::state::announce(const job_status& status) const {
  if (options.events != nullptr) options.events->publish("job", to_json(status));
}

void job_runner::state::audit(const job& work, std::uint64_t count, std::string result) const {
  if (options.audit != nullptr)
    options.audit->record(work.definition.actor, work.definition.kind, work.definition.subject,
                          count, std::move(result));
}

void job_runner::state::finish(job& work, job_state end, const std::string& reason) {
  job_status status;
  {
    const std::scoped_lock lock(mutex);
    // Of a stop, the reason is known since it was requested.
    if (end != job_state::stopped) work.status.reason = reason;
    status = work.status;
  }
  status.finished_at = options.clock->now();
  status.state = end;
  // Recorded first: a job that has ended is in the audit log.
  audit(work, status.changed,
        "job " + status.id + " " + std::string(to_string(end)) +
            (status.reason.empty() ? std::string() : ": " + status.reason));
  {
    const std::scoped_lock lock(mutex);
    work.status = status;
  }
  changed.notify_all();
  announce(status);
}

bool job_runner::state::run_step(job& work) {
  const auto step = work.definition.step();
  job_status status;
  {
    const std::scoped_lock lock(mutex);
    ++work.status.steps;
    work.status.examined += step.examined;
    work.status.changed += step.changed;
    if (!step.result.empty()) work.status.result = step.result;
    status = work.status;
  }
  if (step.changed > 0)
    audit(work, step.changed, "job " + status.id + " step " + std::to_string(status.steps));
  if (!step.finished) announce(status);
  return !step.finished;
}

bool job_runner::state::pause(const job& work, std::chrono::steady_clock::duration length) {
  std::unique_lock lock(mutex);
  (void)changed.wait_for(lock, length, [&] { return work.stop_requested; });
  return !work.stop_requested;
}

void job_runner::state::run(job& work) {
  try {
    for (;;) {
      const auto begin = std::chrono::steady_clock::now();
      if (!run_step(work)) return finish(work, job_state::done, {});
      if (!pause(work, std::chrono::steady_clock::now() - begin))
        return finish(work, job_state::stopped, {});
    }
  } catch (const error& failure) {
    // Who reads a job has the role of an operator, who may see messages of a database.
    finish(work, job_state::failed, failure.what());
  } catch (const std::exception& failure) {
    if (options.log) {
      const std::array<log_field, 2> fields{{{"job", work.status.id}, {"why", failure.what()}}};
      options.log({.level = log_level::error, .message = "a job failed", .fields = fields});
    }
    finish(work, job_state::failed, "a defect of the server; its log has more");
  }
}

std::vector<std::unique_ptr<job>> job_runner::state::take_forgotten() {
  std::vector<std::unique_ptr<job>> forgotten;
  const auto has_ended = [](const auto& item) { return item->status.state != job_state::running; };
  auto ended = static_cast<std::size_t>(std::ranges::count_if(jobs, has_ended));
  for (auto it = jobs.begin(); it != jobs.end() && ended > options.max_ended;) {
    if (!has_ended(*it)) {
      ++it;
      continue;
    }
    forgotten.push_back(std::move(*it));
    it = jobs.erase(it);
    --ended;
  }
  return forgotten;
}

job_runner::job_runner(job_runner_options options)
    : state_(std::make_unique<state>(std::move(options))) {
  if (!state_->options.clock) state_->options.clock = system_clock();
}

job_runner::~job_runner() {
  stop_all();
  // A thread may still need its job, and the state.
  for (const auto& work : state_->jobs) {
    if (work->thread.joinable()) work->thread.join();
  }
}

std::string job_runner::start(job_definition definition) {
  std::vector<std::unique_ptr<job>> forgotten;
  const std::scoped_lock lock(state_->mutex);
  if (state_->closed)
    throw error(errc::unavailable,
                "the server is stopping and starts no jobs; repeat the request "
                "when it runs again",
                {.transient = true});
  std::size_t running = 0;
  for (const auto& other : state_->jobs) {
    if (other->status.state != job_state::running) continue;
    ++running;
    if (other->definition.resource == definition.resource)
      throw error(errc::duplicate, "job " + other->status.id + " (" + other->definition.kind + " " +
                                       other->definition.subject +
                                       ") runs on this database; wait for its end, or stop it");
  }
  if (running >= state_->options.max_running)
    throw error(errc::unavailable,
                std::to_string(running) + " jobs run already; wait for the end of one, or stop one",
                {.transient = true});
  auto added = std::make_unique<job>();
  auto& work = *added;
  work.status = {.id = "j-" + uuid_v7(),
                 .kind = definition.kind,
                 .subject = definition.subject,
                 .caller = definition.actor.name,
                 .tenant = definition.actor.tenant,
                 .started_at = state_->options.clock->now(),
                 .matched = definition.matched,
                 .at_most = definition.at_most};
  work.definition = std::move(definition);
  const auto id = work.status.id;
  state_->jobs.push_back(std::move(added));
  try {
    // The thread waits for the mutex before it touches the job.
    work.thread = start_quiet_thread("hf-job", [runner = state_.get(), &work] {
      {
        const std::scoped_lock started(runner->mutex);
      }
      runner->run(work);
      const std::scoped_lock ended(runner->mutex);
      --runner->unended;
      runner->changed.notify_all();
    });
    ++state_->unended;
  } catch (...) {
    state_->jobs.pop_back();
    throw;
  }
  forgotten = state_->take_forgotten();
  return id;
}

std::vector<job_status> job_runner::list() const {
  const std::scoped_lock lock(state_->mutex);
  std::vector<job_status> result;
  for (const auto& work : std::views::reverse(state_->jobs)) result.push_back(work->status);
  return result;
}

std::optional<job_status> job_runner::find(std::string_view id) const {
  const std::scoped_lock lock(state_->mutex);
  for (const auto& work : state_->jobs) {
    if (work->status.id == id) return work->status;
  }
  return std::nullopt;
}

bool job_runner::stop(std::string_view id, const std::string& reason) {
  {
    const std::scoped_lock lock(state_->mutex);
    const auto it =
        std::ranges::find_if(state_->jobs, [&](const auto& work) { return work->status.id == id; });
    if (it == state_->jobs.end() || (*it)->status.state != job_state::running) return false;
    if (!std::exchange((*it)->stop_requested, true)) (*it)->status.reason = reason;
  }
  state_->changed.notify_all();
  return true;
}

void job_runner::stop_all() noexcept {
  {
    const std::scoped_lock lock(state_->mutex);
    state_->closed = true;
    for (const auto& work : state_->jobs) {
      if (work->status.state == job_state::running && !std::exchange(work->stop_requested, true))
        work->status.reason = "the server stops; start the job again to continue";
    }
  }
  state_->changed.notify_all();
}

std::size_t job_runner::wait_for_end(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(state_->mutex);
  (void)state_->changed.wait_until(lock, deadline, [&] { return state_->unended == 0; });
  return state_->unended;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
