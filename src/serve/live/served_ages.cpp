#include "serve/live/served_ages.hpp"

#include <algorithm>

namespace HOLDFAST_NAMESPACE::detail::serve {

std::int64_t served_ages::period_of(timestamp time) { return time.time_since_epoch() / window; }

void served_ages::record(const decision& reported) {
  if (reported.origin != origin::stored || !reported.as_of) return;
  const auto number = period_of(reported.time);
  const auto age = std::max(std::chrono::microseconds(0), reported.time - *reported.as_of);
  const std::scoped_lock lock(mutex_);
  auto it = points_.find(reported.point);
  if (it == points_.end()) {
    if (points_.size() >= max_points) return;
    it = points_.emplace(reported.point, std::array<period, 2>{}).first;
  }
  auto& own = it->second[static_cast<std::size_t>(number & 1)];
  if (own.number != number) own = {.number = number};
  own.oldest = std::max(own.oldest, age);
}

std::optional<std::chrono::microseconds> served_ages::oldest(const std::string& point,
                                                             timestamp now) const {
  const auto number = period_of(now);
  std::optional<std::chrono::microseconds> result;
  const std::scoped_lock lock(mutex_);
  const auto it = points_.find(point);
  if (it == points_.end()) return result;
  for (const auto& part : it->second) {
    if (part.number == number || part.number == number - 1)
      result = std::max(result.value_or(part.oldest), part.oldest);
  }
  return result;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
