#pragma once

/// \file
/// How an engine and its points are.

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

/// What a point counted since it was registered. Of calls that are stored in slices, what is stored and what is not found are slices.
/// Every call that started ended in exactly one of the first nine ways, or is still running.
struct point_numbers {
  std::uint64_t started = 0;      ///< calls
  std::uint64_t live = 0;         ///< answered by the upstream
  std::uint64_t stale = 0;        ///< answered from the store, an empty answer included
  std::uint64_t fresh = 0;        ///< answered from the store because it was young enough; the upstream was not called
  std::uint64_t substituted = 0;  ///< answered by a default value or a handler
  std::uint64_t failed = 0;       ///< nothing to serve: an exception left
  std::uint64_t passed = 0;       ///< the rules let the exception pass
  std::uint64_t invalidated = 0;  ///< the same, and the stored answer was declared gone
  std::uint64_t abandoned = 0;    ///< split-phase calls dropped without an outcome, and unwound threads

  std::uint64_t stored = 0;        ///< answers handed to the store
  std::uint64_t absent = 0;        ///< of these, tombstones
  std::uint64_t ignored = 0;       ///< answers that the result hook did not want stored
  std::uint64_t too_large = 0;     ///< answers that were not stored for their size
  std::uint64_t store_failed = 0;  ///< answers that could not be encoded or put

  std::uint64_t not_found = 0;    ///< recoveries that found nothing
  std::uint64_t expired = 0;      ///< found what had expired
  std::uint64_t not_allowed = 0;  ///< found a payload class that is not allowed here
  std::uint64_t undecodable = 0;  ///< found bytes that are no answer
  std::uint64_t older = 0;        ///< found an answer older than one already served
  std::uint64_t read_failed = 0;  ///< the store could not be read
  std::uint64_t read_late = 0;    ///< the store did not answer within the read deadline

  std::uint64_t late = 0;             ///< calls that missed their deadline
  std::uint64_t late_stored = 0;      ///< of these, answered later and stored
  std::uint64_t retries = 0;          ///< attempts after the first
  std::uint64_t no_budget = 0;        ///< retries not made for want of budget
  std::uint64_t breaker_refused = 0;  ///< calls that an open breaker kept from the upstream
  std::uint64_t limit_refused = 0;    ///< calls beyond the concurrency limit
  std::uint64_t full_refused = 0;     ///< calls for which the executor had no room
  std::uint64_t coalesced = 0;        ///< callers that shared another's call
  std::uint64_t refreshed = 0;        ///< background refreshes that succeeded
  std::uint64_t refresh_failed = 0;   ///< those that did not, or found no room
  std::uint64_t unkeyed = 0;          ///< calls that got no key, and were not protected
  std::uint64_t hook_failed = 0;      ///< hooks that threw
  std::uint64_t partial = 0;          ///< answers of which a slice was missing; served or not
  std::uint64_t unlisted = 0;         ///< lists that were to be recovered and had no manifest
  std::uint64_t asymmetric = 0;       ///< live answers with a slice that their splitter would not look for
};

/// One point.
struct point_status {
  std::string name{};
  std::string domain{};
  std::string effective_name{};
  std::string expiry{};         ///< for people
  std::string payload_class{};  ///< what is written
  bool enabled = true;
  breaker_state breaker = breaker_state::closed;
  std::uint64_t running = 0;  ///< calls that have not ended; those whose caller left at the deadline included
  point_numbers numbers{};
};

/// How everything is.
struct engine_health {
  bool healthy = false;                        ///< the store answers, and nothing waits for too long
  std::string problem{};                       ///< what is wrong, in one line
  store_health store{};                        ///< as it says itself, asked now
  std::size_t points = 0;                      ///< registered; none is no illness
  std::uint64_t running = 0;                   ///< calls that have not ended
  std::uint64_t unsaved = 0;                   ///< writes that wait
  std::chrono::microseconds oldest_unsaved{};  ///< how long the oldest of them has waited
  std::uint64_t regressions_possible = 0;      ///< keys that the table of recent ones had no room for
  std::uint64_t sink_failures = 0;             ///< times that the log or metrics sink threw
};

/// What closing an engine came to.
struct close_report {
  struct running_calls {
    std::string point{};
    std::uint64_t calls = 0;
    bool operator==(const running_calls&) const = default;
  };
  std::vector<running_calls> still_running{};  ///< calls that had not ended at the deadline; they own what they need to end later
  std::uint64_t unsaved = 0;                   ///< writes that are not durable and never will be
  std::uint64_t lost = 0;                      ///< writes refused for good or dropped since the last report
  [[nodiscard]] bool clean() const noexcept { return still_running.empty() && unsaved == 0 && lost == 0; }
};

}  // namespace HOLDFAST_NAMESPACE
