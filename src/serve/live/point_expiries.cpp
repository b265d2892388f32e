#include "serve/live/point_expiries.hpp"

#include <holdfast/error.hpp>

#include <algorithm>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

using expiries_clock = std::chrono::steady_clock;

}  // namespace

void point_expiries::ask() {
  const auto points = source_.lock();
  if (!points) return;
  const auto begin = expiries_clock::now();
  for (const auto& name : waiting_points(*points, begin)) {
    if (expiries_clock::now() - begin >= limits_.time) return;
    std::optional<expiry_times> times;
    try {
      const auto outlook = points->outlook(name);
      times = {.first = outlook.first, .half = outlook.half};
    } catch (const error&) {  // NOLINT(bugprone-empty-catch)
      // The store does not answer, which its health says.
    }
    const std::scoped_lock lock(mutex_);
    auto& cached = cached_[name];
    cached.asked = expiries_clock::now();
    if (times) cached.times = *times;
  }
}

std::vector<std::string> point_expiries::waiting_points(const engine& points,
                                                        expiries_clock::time_point now) const {
  std::vector<std::pair<expiries_clock::time_point, std::string>> waiting;
  const auto all = points.points();
  const std::scoped_lock lock(mutex_);
  for (const auto& status : all) {
    const auto it = cached_.find(status.name);
    if (it == cached_.end()) waiting.emplace_back(expiries_clock::time_point{}, status.name);
    else if (now - it->second.asked >= limits_.max_age)
      waiting.emplace_back(it->second.asked, status.name);
  }
  std::ranges::sort(waiting);
  std::vector<std::string> names;
  names.reserve(waiting.size());
  for (auto& [asked, name] : waiting) names.push_back(std::move(name));
  return names;
}

expiry_times point_expiries::get(const std::string& point) const {
  const std::scoped_lock lock(mutex_);
  const auto it = cached_.find(point);
  return it == cached_.end() ? expiry_times{} : it->second.times;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
