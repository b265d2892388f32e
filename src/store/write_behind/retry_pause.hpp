#pragma once

#include <holdfast/store/write_behind.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <optional>
#include <random>

namespace HOLDFAST_NAMESPACE::detail::store {

/// The pause after failures of the store below: it doubles with each failure, with jitter.
class retry_pause {
 public:
  using time = std::chrono::steady_clock::time_point;

  explicit retry_pause(const write_behind_options& options);

  void add_failure(time now);
  void reset() noexcept;
  /// Ends the current pause. Keeps the number of failures.
  void skip() noexcept { not_before_ = time::min(); }
  [[nodiscard]] unsigned failures() const noexcept { return failures_; }
  [[nodiscard]] time not_before() const noexcept { return not_before_; }
  /// The time of the first failure since the last success.
  [[nodiscard]] std::optional<time> failing_since() const noexcept { return failing_since_; }

 private:
  std::chrono::microseconds first_;
  std::chrono::microseconds longest_;
  unsigned failures_ = 0;
  time not_before_ = time::min();
  std::optional<time> failing_since_{};
  std::minstd_rand random_;
};

}  // namespace HOLDFAST_NAMESPACE::detail::store
