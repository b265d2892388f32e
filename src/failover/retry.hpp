#pragma once

#include <holdfast/failover/options.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <random>
#include <string>

namespace HOLDFAST_NAMESPACE {

/// Decides whether a failed call is tried again, and when. A budget (a bucket of tokens: every call puts a part of one in, every retry takes
/// one out) keeps an outage from being answered with several times the load; full jitter keeps callers from coming back together.
/// Thread-safety: every function may be called from any thread.
class retry_plan {
 public:
  retry_plan(const retry_options& options, std::uint64_t seed);

  [[nodiscard]] static std::string problem_of(const retry_options& options);

  /// A call begins: its part goes into the bucket.
  void called();

  enum class refusal : std::uint8_t { none, attempts, budget };
  struct decision {
    refusal why = refusal::none;  ///< none: try again after the pause
    std::chrono::microseconds pause{};
  };
  /// After attempt number `made` (the first is 1) failed.
  [[nodiscard]] decision again(unsigned made);

  [[nodiscard]] const retry_options& options() const noexcept { return options_; }

 private:
  const retry_options options_;
  std::mutex mutex_{};
  double tokens_;
  std::mt19937_64 random_;
};

}  // namespace HOLDFAST_NAMESPACE
