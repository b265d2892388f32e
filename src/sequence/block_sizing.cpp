#include "sequence/block_sizing.hpp"

#include <algorithm>
#include <cmath>

namespace HOLDFAST_NAMESPACE::detail {

namespace {

std::int64_t first_size(const block_policy& policy) {
  if (const auto* fixed = std::get_if<fixed_blocks>(&policy)) return fixed->size;
  return std::get<adaptive_blocks>(policy).smallest;
}

}  // namespace

block_sizing::block_sizing(const block_policy& policy) : policy_(policy), size_(first_size(policy)) {}

std::int64_t block_sizing::next_size(time_point now, std::uint64_t drawn, std::uint64_t left) {
  if (std::holds_alternative<fixed_blocks>(policy_)) return size_;
  follow(now, drawn);
  // Near the end blocks shrink, so that one process does not hold what others could still use.
  constexpr std::uint64_t part = 1024;
  const auto fair = static_cast<std::int64_t>(std::min<std::uint64_t>(left / part, static_cast<std::uint64_t>(size_)));
  return std::max<std::int64_t>(1, fair);
}

void block_sizing::follow(time_point now, std::uint64_t drawn) {
  const auto& how = std::get<adaptive_blocks>(policy_);
  if (asked_before_) {
    const double seconds = std::max(std::chrono::duration<double>(now - asked_).count(), 1e-6);
    // Tickets that were given up are not drawn any more: there can be fewer than before.
    const double here = static_cast<double>(drawn - std::min(drawn, drawn_)) / seconds;
    const double target = std::chrono::duration<double>(how.target).count();
    // The longer it took, the less the past counts: after one target it is worth an eighth.
    const double weight = 1.0 - std::exp2(-3.0 * std::min(seconds / target, 10.0));
    // A burst is believed at once: waiting costs callers, a large block costs a few ids.
    rate_ = here > rate_ ? here : rate_ + weight * (here - rate_);
    // Grows eightfold at most, halves for each target that has passed.
    const double halvings = std::clamp(std::floor(seconds / target), 1.0, 62.0);
    const double lowest = static_cast<double>(size_) * std::exp2(-halvings);
    const double highest = static_cast<double>(size_) * 8.0;
    const double wanted = std::clamp(rate_ * target, lowest, highest);
    size_ = std::clamp(static_cast<std::int64_t>(std::min(wanted, 1e18)), how.smallest, how.largest);
  }
  asked_before_ = true;
  asked_ = now;
  drawn_ = drawn;
}

void block_sizing::arrived(std::chrono::microseconds latency) {
  // The largest of late, forgotten slowly: the price of being late is a stall.
  latency_ = std::max(latency, latency_ - latency_ / 8);
}

std::uint64_t block_sizing::margin(std::uint64_t lease) const {
  if (std::holds_alternative<fixed_blocks>(policy_)) return 0;
  const auto part = [lease](double of) { return std::max(1.0, static_cast<double>(lease) * of); };
  const double needed = rate_ * std::chrono::duration<double>(latency_).count() * 4.0;
  return std::min(lease, static_cast<std::uint64_t>(std::clamp(needed, part(0.05), part(0.9))));
}

}  // namespace HOLDFAST_NAMESPACE::detail
