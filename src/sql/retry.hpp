#pragma once

/// \file
/// Repeats an operation of the database after transient failures.

#include <holdfast/error.hpp>
#include <holdfast/version.hpp>

#include "base/backoff.hpp"
#include "base/recent_time.hpp"

#include <chrono>
#include <cstdint>
#include <thread>

namespace HOLDFAST_NAMESPACE::detail::sql {

/// What to do when the connection was lost and the operation may have happened.
enum class when_in_doubt : std::uint8_t { retry, give_up };

struct retry_limits {
  unsigned attempts;
  /// No retry starts after this time.
  std::chrono::milliseconds time;
  /// The pause is random, from `shortest_pause` to `longest_pause`. The upper bound starts with
  /// `first_pause` and doubles with each attempt.
  std::chrono::microseconds shortest_pause;
  std::chrono::microseconds first_pause;
  std::chrono::microseconds longest_pause;
};

/// Returns true if a retry can succeed: after a transient failure, and after a duplicate key, which
/// another transaction inserted at the same time. A timeout that is not in doubt comes from the
/// pool, where the caller has already waited.
[[nodiscard]] inline bool is_retryable(const error& problem) noexcept {
  const bool pool_timeout = problem.code() == errc::timeout && !problem.in_doubt();
  return (problem.transient() && !pool_timeout) || problem.code() == errc::duplicate;
}

/// Whether another transaction changed the same rows at the same time, and the server rolled this
/// one back: a deadlock, a failure to serialize, or on Galera a commit on another node. Nothing
/// happened, and the server works.
[[nodiscard]] inline bool is_write_conflict(const error& problem) noexcept {
  const auto& code = problem.backend_code();
  return !problem.in_doubt() && (code == "1213" || code == "40001" || code == "40P01");
}

/// Runs `operation` and returns its result. After a holdfast::error for which `should_retry`
/// returns true, repeats it within the limits; other errors are thrown.
template <class Operation, class ShouldRetry>
auto with_retries(const retry_limits& limits, Operation&& operation, ShouldRetry should_retry)
    -> decltype(operation()) {
  const auto start = recent_steady_time();
  for (unsigned attempt = 1;; ++attempt) {
    try {
      return operation();
    } catch (const error& problem) {
      const bool in_time = std::chrono::steady_clock::now() - start < limits.time;
      if (attempt == limits.attempts || !in_time || !should_retry(problem)) throw;
    }
    std::this_thread::sleep_for(random_duration(
        limits.shortest_pause, doubled_pause(limits.first_pause, attempt - 1, limits.longest_pause),
        thread_random()));
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail::sql
