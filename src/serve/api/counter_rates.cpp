#include "serve/api/counter_rates.hpp"

namespace HOLDFAST_NAMESPACE::detail::serve {

std::optional<double> counter_rates::record(const std::string& name, std::int64_t ordinal,
                                            std::chrono::steady_clock::time_point now) {
  const std::scoped_lock lock(mutex_);
  if (samples_.size() >= most_ && !samples_.contains(name)) samples_.clear();
  auto [it, is_new] = samples_.try_emplace(name, sample{.time = now, .ordinal = ordinal});
  auto& last = it->second;
  if (is_new) return std::nullopt;
  if (ordinal < last.ordinal) {
    last = {.time = now, .ordinal = ordinal};
    return std::nullopt;
  }
  const std::chrono::duration<double> elapsed = now - last.time;
  // Blocks come at once, so a short time says little.
  if (elapsed < std::chrono::seconds(1)) return last.rate;
  last.rate = static_cast<double>(ordinal - last.ordinal) / elapsed.count();
  last.time = now;
  last.ordinal = ordinal;
  return last.rate;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
