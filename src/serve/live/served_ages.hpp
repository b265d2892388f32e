#pragma once

#include <holdfast/failover/decision.hpp>
#include <holdfast/version.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// The age of the oldest kept answer that each point has served lately: in the last `window`, and
/// at most twice that.
/// Thread-safety: may be called from any thread.
class served_ages {
 public:
  static constexpr std::chrono::seconds window{15};

  /// Ignores decisions that served no kept answer.
  void record(const decision& reported);
  [[nodiscard]] std::optional<std::chrono::microseconds> oldest(const std::string& point,
                                                                timestamp now) const;

 private:
  /// Points beyond that are ignored.
  static constexpr std::size_t max_points = 2'000;
  struct period {
    std::int64_t number = -1;  // windows since 1970
    std::chrono::microseconds oldest{};
  };
  [[nodiscard]] static std::int64_t period_of(timestamp time);

  mutable std::mutex mutex_{};
  std::map<std::string, std::array<period, 2>, std::less<>> points_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve
