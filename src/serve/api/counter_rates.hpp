#pragma once

#include <holdfast/version.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// How fast counters grow, from the times at which they were looked at. Keeps `most` counters, and
/// starts again if there are more.
/// Thread-safety: may be called from any thread.
class counter_rates {
 public:
  explicit counter_rates(std::size_t most = 1000) : most_(most) {}

  /// Records the last ordinal of a counter. Returns the ordinals in a second since it was recorded
  /// at least a second ago, or nothing. A counter that went back starts again.
  [[nodiscard]] std::optional<double> record(const std::string& name, std::int64_t ordinal,
                                             std::chrono::steady_clock::time_point now);

 private:
  struct sample {
    std::chrono::steady_clock::time_point time{};
    std::int64_t ordinal = 0;
    std::optional<double> rate{};
  };
  const std::size_t most_;
  std::mutex mutex_{};
  std::map<std::string, sample> samples_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve
