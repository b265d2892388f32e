#pragma once

/// \file
/// Bulk actions in the background. A job is a sequence of steps; between two steps it pauses for as
/// long as the step took, so that its database is busy with it for at most half of the time.
///
///   running --> done       the last step said so
///           --> stopped    a caller, or the end of the server, stopped it after a step
///           --> failed     a step threw
///
/// Jobs exist in memory only: the end of the server ends them.

#include <holdfast/clock.hpp>
#include <holdfast/log.hpp>
#include <holdfast/version.hpp>

#include "serve/auth/audit.hpp"
#include "serve/live/event_sink.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// What one step did.
struct job_step {
  /// Items that were looked at, and those that were changed.
  std::uint64_t examined = 0;
  std::uint64_t changed = 0;
  /// There is nothing left to do.
  bool finished = false;
  /// A JSON object for people and programs: the report of a check. Empty: none. The one of the last
  /// step is shown.
  std::string result{};
};

struct job_definition {
  /// The action in the audit log: `outbox.replay`, `store.clean`.
  std::string kind{};
  /// What it works on: `orders`.
  std::string subject{};
  /// The database. Two jobs on the same one would together keep it busy all the time, so the second
  /// is refused.
  std::string resource{};
  /// Who started it.
  caller actor{};
  /// Items that match, as far as they were counted before the start.
  std::optional<std::uint64_t> matched{};
  /// Largest number of items to change.
  std::optional<std::uint64_t> at_most{};
  /// Works on at most 500 items. Called on a thread of the job, not at the same time as itself.
  std::function<job_step()> step{};
};

enum class job_state : std::uint8_t { running, done, stopped, failed };
/// `running`, `done`, `stopped`, `failed`.
[[nodiscard]] std::string_view to_string(job_state state) noexcept;

struct job_status {
  std::string id{};
  std::string kind{};
  std::string subject{};
  std::string caller{};
  /// Of the caller who started it. Empty: all.
  std::string tenant{};
  job_state state = job_state::running;
  timestamp started_at{};
  std::optional<timestamp> finished_at{};
  std::uint64_t steps = 0;
  std::uint64_t examined = 0;
  std::uint64_t changed = 0;
  std::optional<std::uint64_t> matched{};
  std::optional<std::uint64_t> at_most{};
  /// Why it was stopped, or failed.
  std::string reason{};
  /// A JSON object, or empty.
  std::string result{};
};
/// The JSON of GET /v1/jobs/{id}, and of the events of kind `job`.
[[nodiscard]] std::string to_json(const job_status& status);

struct job_runner_options {
  std::shared_ptr<const holdfast::clock> clock{};
  log_sink log{};
  /// May be null.
  audit_log* audit = nullptr;
  /// May be null.
  event_sink* events = nullptr;
  std::size_t max_running = 16;
  /// Ended jobs that are remembered.
  std::size_t max_ended = 100;
};

/// Thread-safety: every function may be called from any thread.
class job_runner {
 public:
  explicit job_runner(job_runner_options options);
  /// Stops all jobs, and waits for their steps.
  ~job_runner();
  job_runner(const job_runner&) = delete;
  job_runner& operator=(const job_runner&) = delete;

  /// Starts a job and returns its id. Throws errc::duplicate if a job runs on the same resource,
  /// and errc::unavailable (transient) if too many jobs run, or after stop_all.
  [[nodiscard]] std::string start(job_definition definition);
  /// The newest first.
  [[nodiscard]] std::vector<job_status> list() const;
  [[nodiscard]] std::optional<job_status> find(std::string_view id) const;
  /// Stops the job after its step, without waiting for it. Returns false if there is no such job,
  /// or it has ended.
  bool stop(std::string_view id, const std::string& reason);
  /// Stops all jobs after their steps, without waiting for them. Later starts are refused.
  void stop_all() noexcept;
  /// Waits until no job runs. Returns how many do at the deadline.
  [[nodiscard]] std::size_t wait_for_end(std::chrono::steady_clock::time_point deadline);

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve
