#pragma once

/// \file
/// What the engine notes about a call, for decisions, outlook and coverage. A point has a
/// `point_insight` only if engine_insight asks for something; otherwise none of these functions is
/// called.

#include <holdfast/failover/outlook.hpp>

#include "failover/insight/recent_calls.hpp"
#include "failover/point_core.hpp"

namespace HOLDFAST_NAMESPACE::detail::failover {

/// What is noted about one call, from its start or its failure to its end.
struct call_notes {
  /// Key and realm: the call gives its own away when its answer is stored.
  std::string key{};
  std::string realm{};
  bool sampled = false;  ///< the call is reported even if its answer is live
  miss_reason miss = miss_reason::none;
  std::optional<timestamp> as_of{};    ///< of the entry that was refused
  std::optional<timestamp> expires{};  ///< of the entry that was refused
  /// When the recovery began.
  std::optional<std::chrono::steady_clock::time_point> failed_at{};
};

/// At the start of a call: counts it, and chooses whether it belongs to the sample.
void note_start(const point_core& point, call_base& call) noexcept;
/// Before the recovery of a call.
void note_failure(const point_core& point, call_base& call) noexcept;
/// A row was not served, or there was none.
void note_miss(const point_core& point, call_base& call, counter reason, const entry* row) noexcept;
/// At the end of a call: reports the decision, and sets provenance::decision.
void note_end(const point_core& point, call_base& call, decision_rule rule) noexcept;

/// Whether a row could be served for a call that fails now, without decoding it. `newest` is as for
/// `check_row`.
[[nodiscard]] coverage_result judge_row(const point_core& point, const entry* row, timestamp now,
                                        std::optional<timestamp> newest) noexcept;
/// Checks beside a call whether a kept answer could have served it.
void check_coverage(const point_core& point, const call_base& call);
[[nodiscard]] point_coverage coverage_of(const point_core& point);

}  // namespace HOLDFAST_NAMESPACE::detail::failover
