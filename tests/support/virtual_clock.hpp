#pragma once

#include <holdfast/clock.hpp>

#include <atomic>
#include <chrono>

namespace holdfast::test {

/// A clock that stands still until it is told to move. Wall time can also jump on its own, as when somebody sets the machine's clock.
/// Thread-safety: every function may be called from any thread.
class virtual_clock final : public holdfast::clock {
 public:
  /// 2026-01-01T00:00:00Z, unless told otherwise: a time with nothing special about it.
  explicit virtual_clock(timestamp start = std::chrono::sys_days(std::chrono::year(2026) / 1 / 1)) : wall_(start.time_since_epoch()) {}

  [[nodiscard]] timestamp now() const noexcept override { return timestamp(wall_.load()); }
  [[nodiscard]] std::chrono::steady_clock::time_point steady() const noexcept override {
    return std::chrono::steady_clock::time_point(std::chrono::steady_clock::duration(steady_.load()));
  }

  /// Time passes: both move on. Never backwards: throws std::invalid_argument.
  void advance(std::chrono::microseconds time);
  /// Somebody sets the clock: wall time only, in either direction.
  void jump(std::chrono::microseconds difference) noexcept;

 private:
  std::atomic<std::chrono::microseconds> wall_;
  // Not at zero: code that takes "no time yet" for a default-constructed time_point would pass by accident.
  std::atomic<std::chrono::steady_clock::duration> steady_{std::chrono::hours(1)};
};

}  // namespace holdfast::test
