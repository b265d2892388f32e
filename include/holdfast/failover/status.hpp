#pragma once

/// \file
/// Status, health and counters of an engine and its points.

#include <holdfast/breaker.hpp>
#include <holdfast/store.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE {

/// Counters of a point since its registration. For scattered calls, `stored` to `store_failed` and
/// `not_found` to `read_late` count slices. Each started call ends in exactly one of `live` to
/// `abandoned`, unless it is still running.
struct point_numbers {
  std::uint64_t started = 0;  ///< calls
  std::uint64_t live = 0;     ///< answered by the upstream
  std::uint64_t stale = 0;    ///< answered from the store, including empty answers
  std::uint64_t fresh = 0;    ///< answered from the store within the soft expiry, without a call
  std::uint64_t substituted = 0;  ///< answered by a default value or a hook
  std::uint64_t failed = 0;       ///< nothing to serve: an exception reached the caller
  std::uint64_t passed = 0;       ///< the failure rules passed the exception to the caller
  std::uint64_t invalidated = 0;  ///< as `passed`, and a tombstone was stored
  std::uint64_t abandoned = 0;    ///< split-phase calls without an outcome, and unwound threads

  std::uint64_t stored = 0;        ///< answers handed to the store
  std::uint64_t absent = 0;        ///< tombstones among `stored`
  std::uint64_t ignored = 0;       ///< answers that the result hook excluded, or expired ones
  std::uint64_t too_large = 0;     ///< answers that exceeded max_payload or max_slices
  std::uint64_t store_failed = 0;  ///< answers that could not be encoded or put

  std::uint64_t not_found = 0;    ///< recoveries without an entry
  std::uint64_t expired = 0;      ///< entries not served: expired
  std::uint64_t not_allowed = 0;  ///< entries not served: payload class not allowed
  std::uint64_t undecodable = 0;  ///< entries not served: the payload could not be decoded
  std::uint64_t older = 0;        ///< entries not served: a newer answer was stored before
  std::uint64_t read_failed = 0;  ///< reads of the store that failed
  std::uint64_t read_late = 0;    ///< reads of the store that missed the read deadline

  std::uint64_t late = 0;             ///< calls that missed their deadline
  std::uint64_t late_stored = 0;      ///< late calls whose answer was stored afterwards
  std::uint64_t retries = 0;          ///< attempts after the first
  std::uint64_t no_budget = 0;        ///< retries prevented by the retry budget
  std::uint64_t breaker_refused = 0;  ///< calls refused by an open breaker
  std::uint64_t limit_refused = 0;    ///< calls refused by the concurrency limit
  std::uint64_t full_refused = 0;     ///< calls refused by a full executor
  std::uint64_t coalesced = 0;        ///< callers that shared the call of another caller
  std::uint64_t refreshed = 0;        ///< background refreshes that succeeded
  std::uint64_t refresh_failed = 0;   ///< background refreshes that failed or did not start
  std::uint64_t unkeyed = 0;          ///< calls without a key, which were not protected
  std::uint64_t hook_failed = 0;      ///< hooks that threw
  std::uint64_t partial = 0;          ///< recoveries with a missing slice, served or not
  std::uint64_t unlisted = 0;         ///< recoveries of lists without a manifest
  std::uint64_t asymmetric = 0;       ///< live answers whose splitter functions disagree
  std::uint64_t drill_served = 0;     ///< calls of a drill with a kept answer
  std::uint64_t drill_uncovered = 0;  ///< calls of a drill without one
  std::uint64_t covered = 0;          ///< checks of coverage that found a kept answer
  std::uint64_t uncovered = 0;        ///< checks of coverage that found none
};

/// Status of one point.
struct point_status {
  std::string name{};
  std::string domain{};
  std::string effective_name{};
  std::string expiry{};         ///< as expiry::text()
  std::string payload_class{};  ///< PAYLOAD_CLASS of stored entries
  bool enabled = true;
  breaker_state breaker = breaker_state::closed;
  /// Calls that have not ended, including those whose caller stopped waiting at the deadline.
  std::uint64_t running = 0;
  point_numbers numbers{};
};

/// Health of an engine.
struct engine_health {
  /// The store answers and has no problem, and queued writes get through.
  bool healthy = false;
  std::string problem{};  ///< one line; empty if healthy
  store_health store{};   ///< reported by the store just now
  /// False while calls do not read the store because it did not answer. It is asked in the
  /// background, and read again once it answers.
  bool store_answers = true;
  std::size_t points = 0;     ///< registered points
  std::uint64_t running = 0;  ///< calls that have not ended
  std::uint64_t unsaved = 0;  ///< queued writes
  /// How long the oldest queued write has been waiting.
  std::chrono::microseconds oldest_unsaved{};
  /// Keys that were evicted from the table of engine_storage::remembered. An answer older than the
  /// last one may be served for them.
  std::uint64_t regressions_possible = 0;
  std::uint64_t sink_failures = 0;  ///< exceptions thrown by the log and metrics sinks
};

/// Result of closing an engine.
struct close_report {
  struct running_calls {
    std::string point{};
    std::uint64_t calls = 0;
    bool operator==(const running_calls&) const = default;
  };
  /// Calls that had not ended at the deadline. They own everything they need to end later.
  std::vector<running_calls> still_running{};
  std::uint64_t unsaved = 0;  ///< writes that are lost because they were still queued
  std::uint64_t lost = 0;     ///< writes refused or dropped since the last report
  [[nodiscard]] bool clean() const noexcept {
    return still_running.empty() && unsaved == 0 && lost == 0;
  }
};

}  // namespace HOLDFAST_NAMESPACE
