#pragma once

/// \file
/// When the kept answers of the server's own points expire, if their upstreams stay down. The
/// engine asks its store for that, which may take time, so the thread that asks the database calls
/// `ask`, and the sampler only takes the last answers.

#include <holdfast/clock.hpp>
#include <holdfast/failover/engine.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// Times, and not durations: they do not change from second to second.
struct expiry_times {
  std::optional<timestamp> first{};
  std::optional<timestamp> half{};
};

struct expiry_limits {
  /// How old an answer becomes before the engine is asked again.
  std::chrono::milliseconds max_age{30'000};
  /// Of one call of `ask`.
  std::chrono::milliseconds time{1'000};
};

/// Thread-safety: may be called from any thread; `ask` by one at a time.
class point_expiries {
 public:
  explicit point_expiries(std::weak_ptr<const engine> source, expiry_limits limits = {})
      : source_(std::move(source)), limits_(limits) {}

  /// Asks for the points whose answers are too old, those that have waited longest first, until the
  /// time is used up. A point whose store does not answer keeps its last answer.
  void ask();
  [[nodiscard]] expiry_times get(const std::string& point) const;

 private:
  struct cached_times {
    expiry_times times{};
    std::chrono::steady_clock::time_point asked{};
  };
  [[nodiscard]] std::vector<std::string> waiting_points(
      const engine& points, std::chrono::steady_clock::time_point now) const;

  const std::weak_ptr<const engine> source_;
  const expiry_limits limits_;
  mutable std::mutex mutex_{};
  std::map<std::string, cached_times, std::less<>> cached_{};  // as many as points
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve
