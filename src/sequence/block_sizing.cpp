#include "sequence/block_sizing.hpp"

#include <algorithm>
#include <cmath>

namespace HOLDFAST_NAMESPACE::detail::sequence {

namespace {

std::int64_t first_size(const block_policy& policy) {
  if (const auto* fixed = std::get_if<fixed_blocks>(&policy)) return fixed->size;
  return std::get<adaptive_blocks>(policy).smallest;
}

}  // namespace

block_sizing::block_sizing(const block_policy& policy)
    : policy_(policy), size_(first_size(policy)) {}

std::int64_t block_sizing::next_size(time_point now, std::uint64_t drawn,
                                     std::chrono::steady_clock::duration starved,
                                     std::uint64_t remaining) {
  if (std::holds_alternative<fixed_blocks>(policy_)) return size_;
  if (last_request_) adapt(now - *last_request_ - (starved - starved_at_last_request_), drawn);
  last_request_ = now;
  starved_at_last_request_ = starved;
  drawn_at_last_request_ = drawn;
  // Near the end blocks shrink, so that one process does not hold ids that others could still use.
  constexpr std::uint64_t end_share = 1024;
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::min<std::uint64_t>(
                                       remaining / end_share, static_cast<std::uint64_t>(size_))));
}

void block_sizing::adapt(std::chrono::duration<double> elapsed, std::uint64_t drawn) {
  const auto& policy = std::get<adaptive_blocks>(policy_);
  const double seconds = std::max(elapsed.count(), 1e-6);
  // A block must last longer than it takes to get the next one.
  const double target = std::max(std::chrono::duration<double>(policy.target).count(),
                                 2.0 * std::chrono::duration<double>(latency_).count());
  // Tickets that were put back do not count as drawn any more, so `drawn` can be lower than before.
  const double current_rate =
      static_cast<double>(drawn - std::min(drawn, drawn_at_last_request_)) / seconds;
  // A higher rate counts at once: waiting costs callers, a large block costs a few ids. A lower
  // rate is averaged, and after one target time the past has a weight of 1/8.
  const double weight = 1.0 - std::exp2(-3.0 * std::min(seconds / target, 10.0));
  rate_ = current_rate > rate_ ? current_rate : rate_ + weight * (current_rate - rate_);
  // The size grows at most eightfold, and is halved at most once for each target time.
  const double halvings = std::clamp(std::floor(seconds / target), 1.0, 62.0);
  const double lowest = static_cast<double>(size_) * std::exp2(-halvings);
  const double highest = static_cast<double>(size_) * 8.0;
  const double size = std::clamp(rate_ * target, lowest, highest);
  size_ =
      std::clamp(static_cast<std::int64_t>(std::min(size, 1e18)), policy.smallest, policy.largest);
}

void block_sizing::record_latency(std::chrono::microseconds latency) {
  // The maximum, which decays slowly: a block that comes too late stalls callers.
  latency_ = std::max(latency, latency_ - latency_ / 8);
}

std::uint64_t block_sizing::margin(std::uint64_t lease_size) const {
  if (std::holds_alternative<fixed_blocks>(policy_)) return 0;
  const auto fraction_of_lease = [lease_size](double fraction) {
    return std::max(1.0, static_cast<double>(lease_size) * fraction);
  };
  const double needed = rate_ * std::chrono::duration<double>(latency_).count() * 4.0;
  const double margin = std::clamp(needed, fraction_of_lease(0.05), fraction_of_lease(0.9));
  return std::min(
      {lease_size, static_cast<std::uint64_t>(size_), static_cast<std::uint64_t>(margin)});
}

}  // namespace HOLDFAST_NAMESPACE::detail::sequence
