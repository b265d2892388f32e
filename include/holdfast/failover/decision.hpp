#pragma once

/// \file
/// Decisions: why a call got the answer that it got. The engine reports them through
/// engine_insight::on_decision; a decision_log keeps the last ones.

#include <holdfast/breaker.hpp>
#include <holdfast/clock.hpp>
#include <holdfast/failover/answer.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE {

/// How a call ended.
enum class decision_rule : std::uint8_t {
  live,         ///< the upstream answered
  recovered,    ///< the upstream did not answer; the last good answer was served
  soft_expiry,  ///< the kept answer was served first, as the soft expiry says
  drilled,      ///< a drill rehearsed an outage; the kept answer was served
  substituted,  ///< the answer is a default value, or from a hook
  passed,       ///< the failure rules passed the exception to the caller
  invalidated,  ///< as `passed`, and a tombstone was stored
  unserved      ///< nothing could be served; the exception reached the caller
};
/// The name of the enumerator.
[[nodiscard]] HOLDFAST_API std::string_view to_string(decision_rule rule) noexcept;

/// Why a kept answer was not served.
enum class miss_reason : std::uint8_t {
  none,         ///< a kept answer was served, or the call did not need one
  no_key,       ///< the call has no key, so nothing is kept for it
  not_found,    ///< no answer is kept
  expired,      ///< the kept answer has expired
  not_allowed,  ///< the payload class of the kept answer is not allowed
  undecodable,  ///< the kept answer could not be decoded
  older,        ///< a newer answer was served before
  read_failed,  ///< the store could not be read
  read_late     ///< the store did not answer within the read deadline
};
[[nodiscard]] HOLDFAST_API std::string_view to_string(miss_reason reason) noexcept;

/// One decision. Contains no payload and no message of an exception: both may be secret.
struct decision {
  /// Unique text, for example `4k7h2n9q`; see provenance::decision.
  std::string ref{};
  /// When the call ended.
  timestamp time{};
  std::string point{};
  /// Key of the row; empty if the call has none.
  std::string key{};
  std::string realm{};
  decision_rule rule = decision_rule::live;
  holdfast::origin origin = origin::live;
  /// Why the answer is not live.
  cause_code cause = cause_code::none;
  /// Type of the exception of the upstream, for example `std::runtime_error`; empty if there is
  /// none.
  std::string exception_type{};
  /// Why the kept answer was not served.
  miss_reason miss = miss_reason::none;
  /// The kept entry: the one that was served, or that was refused. Empty without one.
  std::optional<timestamp> as_of{};
  std::optional<timestamp> expires{};
  /// State of the breaker when the call ended. Empty if the point has none.
  std::optional<breaker_state> breaker{};
  /// Duration of the whole call, and the part of it before the recovery began: the time waited for
  /// the upstream.
  std::chrono::microseconds duration{};
  std::chrono::microseconds waited{};
  /// Attempts on the upstream; 0 if it was not called.
  unsigned attempts = 0;
};

/// The reference of provenance::decision: the number as eight digits of base 32. Empty for 0.
[[nodiscard]] HOLDFAST_API std::string decision_ref(std::uint64_t number);

/// What a decision says, in sentences: "Served the answer of 23:01:04 UTC (4 min old) because ...;
/// it may be served until ...".
[[nodiscard]] HOLDFAST_API std::string explain(const decision& reported);

struct point_outlook;  // see outlook.hpp
/// The same for an outlook: "If the upstream stays down, the first answers expire in 2 h 58 min,
/// half of them in 11 h, 90 % in 23 h. Of the calls of the last hour 96 % are covered now."
[[nodiscard]] HOLDFAST_API std::string explain(const point_outlook& outlook);

/// Keeps the last decisions.
/// Thread-safety: every function may be called from any thread.
class HOLDFAST_API decision_log {
 public:
  static constexpr std::size_t default_capacity = 10'000;
  /// Throws errc::invalid_argument if the capacity is 0.
  explicit decision_log(std::size_t capacity = default_capacity);
  decision_log(const decision_log&) = delete;
  decision_log& operator=(const decision_log&) = delete;
  ~decision_log();

  /// Replaces the oldest decision if the log is full.
  void record(decision reported);
  [[nodiscard]] std::optional<decision> find(std::string_view ref) const;
  /// The newest decisions of a point, the newest first. An empty name means every point.
  [[nodiscard]] std::vector<decision> latest(std::string_view point, std::size_t limit) const;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace HOLDFAST_NAMESPACE
