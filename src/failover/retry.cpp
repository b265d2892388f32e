#include "failover/retry.hpp"

#include <algorithm>

namespace HOLDFAST_NAMESPACE {

namespace {

/// A pause is doubled, and added to the time: a year is for ever.
retry_options bounded(retry_options options) {
  constexpr std::chrono::hours longest{24 * 366};
  options.backoff = std::min<std::chrono::microseconds>(options.backoff, longest);
  options.max_backoff = std::min<std::chrono::microseconds>(options.max_backoff, longest);
  return options;
}

}  // namespace

retry_plan::retry_plan(const retry_options& options, std::uint64_t seed)
    : options_(bounded(options)), tokens_(options.reserve), random_(seed) {}

std::string retry_plan::problem_of(const retry_options& options) {
  if (options.attempts == 0 || options.attempts > 100) return "retry.attempts must be from 1 to 100";
  if (options.backoff.count() < 0 || options.max_backoff < options.backoff)
    return "retry.backoff must not be negative, nor longer than retry.max_backoff";
  if (!(options.budget >= 0 && options.budget <= 100)) return "retry.budget must be from 0 to 100";
  if (!(options.reserve >= 1 && options.reserve <= 1e6)) return "retry.reserve must be from 1 to 1000000";
  return {};
}

void retry_plan::called() {
  const std::scoped_lock lock(mutex_);
  tokens_ = std::min(options_.reserve, tokens_ + options_.budget);
}

retry_plan::decision retry_plan::again(unsigned made) {
  if (made >= options_.attempts) return {.why = refusal::attempts};
  const std::scoped_lock lock(mutex_);
  if (tokens_ < 1) return {.why = refusal::budget};
  tokens_ -= 1;
  auto longest = options_.backoff;
  for (unsigned i = 1; i < made && longest < options_.max_backoff; ++i) longest *= 2;
  longest = std::min(longest, options_.max_backoff);
  std::uniform_int_distribution<std::chrono::microseconds::rep> any(0, longest.count());
  return {.pause = std::chrono::microseconds(any(random_))};
}

}  // namespace HOLDFAST_NAMESPACE
