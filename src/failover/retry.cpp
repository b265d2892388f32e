#include "failover/retry.hpp"

#include "base/backoff.hpp"
#include "base/duration_limit.hpp"

#include <algorithm>

namespace HOLDFAST_NAMESPACE::detail::failover {

namespace {

retry_options with_limited_pauses(retry_options options) {
  options.backoff = limit_duration(options.backoff);
  options.max_backoff = limit_duration(options.max_backoff);
  return options;
}

}  // namespace

retry_plan::retry_plan(const retry_options& options, std::uint64_t seed)
    : options_(with_limited_pauses(options)), tokens_(options.reserve), random_(seed) {}

std::string retry_plan::problem_of(const retry_options& options) {
  if (options.attempts == 0 || options.attempts > 100)
    return "retry.attempts must be from 1 to 100";
  if (options.backoff.count() < 0 || options.max_backoff < options.backoff)
    return "retry.backoff must not be negative, nor longer than retry.max_backoff";
  if (!(options.budget >= 0 && options.budget <= 100)) return "retry.budget must be from 0 to 100";
  if (!(options.reserve >= 1 && options.reserve <= 1e6))
    return "retry.reserve must be from 1 to 1000000";
  return {};
}

void retry_plan::record_call() {
  const std::scoped_lock lock(mutex_);
  tokens_ = std::min(options_.reserve, tokens_ + options_.budget);
}

retry_plan::decision retry_plan::next(unsigned attempt) {
  if (attempt >= options_.attempts) return {.refused_by = refusal::attempts};
  const std::scoped_lock lock(mutex_);
  if (tokens_ < 1) return {.refused_by = refusal::budget};
  tokens_ -= 1;
  const auto longest = doubled_pause(options_.backoff, attempt - 1, options_.max_backoff);
  return {.pause = random_duration(std::chrono::microseconds(0), longest, random_)};
}

}  // namespace HOLDFAST_NAMESPACE::detail::failover
