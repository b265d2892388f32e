#pragma once

#include <holdfast/failover/options.hpp>

#include <mutex>
#include <random>

namespace HOLDFAST_NAMESPACE::detail::failover {

/// Decides whether and when a failed call is retried. A token bucket limits the extra load during
/// an outage: every call adds `budget` tokens, every retry takes one. Full jitter spreads the
/// retries. Thread-safety: every function may be called from any thread.
class HOLDFAST_API retry_plan {
 public:
  retry_plan(const retry_options& options, std::uint64_t seed);

  /// Describes what is wrong with the options; empty if nothing is.
  [[nodiscard]] static std::string problem_of(const retry_options& options);

  /// Adds the tokens of one call to the bucket.
  void record_call();

  enum class refusal : std::uint8_t { none, attempts, budget };
  struct decision {
    refusal refused_by = refusal::none;  ///< none: retry after the pause
    std::chrono::microseconds pause{};
  };
  /// Decides after attempt number `attempt` failed. The first attempt is 1.
  [[nodiscard]] decision next(unsigned attempt);

 private:
  const retry_options options_;
  std::mutex mutex_{};
  double tokens_;
  std::mt19937_64 random_;
};

}  // namespace HOLDFAST_NAMESPACE::detail::failover
