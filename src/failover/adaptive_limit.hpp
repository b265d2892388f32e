#pragma once

/// \file
/// How many calls of one upstream may run at once, learned from how many of them are late.

#include <holdfast/version.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>

namespace HOLDFAST_NAMESPACE::detail::failover {

/// A limit of concurrent calls, so that an upstream that gets slower the more calls it has keeps
/// answering at its capacity.
/// - It shrinks by a quarter when too many callers had to leave, at most once per time budget. If
///   the other calls are quick, it does not: what makes some calls late is not their number then.
/// - It shrinks by one per round of calls while they wait for each other in the upstream: they take
///   twice as long as the fastest calls, and more than half of their budget.
/// - Otherwise it grows by one per round of calls that use it.
/// Thread-safety: none.
class adaptive_limit {
 public:
  using moment = std::chrono::steady_clock::time_point;
  using duration = std::chrono::steady_clock::duration;

  explicit adaptive_limit(std::size_t maximum)
      : maximum_(static_cast<double>(maximum)),
        minimum_(std::min(4.0, maximum_)),
        limit_(maximum_) {}

  [[nodiscard]] std::size_t value() const noexcept { return static_cast<std::size_t>(limit_); }

  /// A call answered in time, while `running` calls were running.
  void record_in_time(std::size_t running, duration took, duration budget) noexcept {
    ++in_time_;
    fastest_ = fastest_ == duration::zero() ? took : std::min(fastest_ + fastest_ / 1024, took);
    mean_ = in_time_ == 1 ? took : mean_ + (took - mean_) / 8;
    if (took > 2 * fastest_ && 2 * took > budget) limit_ = std::max(minimum_, limit_ - 1 / limit_);
    else if (2 * running >= value()) limit_ = std::min(maximum_, limit_ + 1 / limit_);
  }

  /// A caller left at its deadline, after `budget`, while `running` calls were running.
  void record_late(std::size_t running, moment now, duration budget) noexcept {
    ++late_;
    if (now < next_decrease_ || late_ < tolerated_fraction * (late_ + in_time_)) return;
    const bool others_are_quick = in_time_ != 0 && (mean_ < budget / 4 || 2 * mean_ < 3 * fastest_);
    if (!others_are_quick)
      limit_ = std::max(minimum_, decrease * std::min(limit_, static_cast<double>(running)));
    next_decrease_ = now + budget;
    late_ = in_time_ = 0;
  }

 private:
  static constexpr double decrease = 0.75;
  static constexpr double tolerated_fraction = 0.05;

  const double maximum_;
  const double minimum_;
  double limit_;
  duration fastest_{};  // of recent calls in time
  duration mean_{};     // of calls in time, since the last decrease
  double late_ = 0;     // since the last decrease
  double in_time_ = 0;  // since the last decrease
  moment next_decrease_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::failover
