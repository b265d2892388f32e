#pragma once

#include <holdfast/clock.hpp>

#include <atomic>
#include <chrono>

namespace holdfast::test {

/// A clock that stands still until it is told to move. Wall time can also jump on its own, as when
/// somebody sets the machine's clock. Thread-safety: every function may be called from any thread.
class virtual_clock final : public holdfast::clock {
 public:
  /// 2026-01-01T00:00:00Z, unless told otherwise: a time with nothing special about it. Steady time
  /// begins at an hour, not at zero: code that takes a default-constructed time_point for "no time
  /// yet" would pass by accident.
  explicit virtual_clock(timestamp start = default_start(),
                         std::chrono::steady_clock::duration steady_start = std::chrono::hours(1))
      : wall_(start.time_since_epoch()), steady_(steady_start) {}

  /// A steady time that no machine has reached, for tests that what is waited for comes on the
  /// machine's own clock.
  static constexpr std::chrono::hours far_ahead{24 * 365 * 100};
  [[nodiscard]] static constexpr timestamp default_start() {
    return std::chrono::sys_days(std::chrono::year(2026) / 1 / 1);
  }

  [[nodiscard]] timestamp now() const noexcept override { return timestamp(wall_.load()); }
  [[nodiscard]] std::chrono::steady_clock::time_point steady() const noexcept override {
    return std::chrono::steady_clock::time_point(
        std::chrono::steady_clock::duration(steady_.load()));
  }

  /// Time passes: both move on. Never backwards: throws std::invalid_argument.
  void advance(std::chrono::microseconds time);
  /// Somebody sets the clock: wall time only, in either direction.
  void jump(std::chrono::microseconds difference) noexcept;

 private:
  std::atomic<std::chrono::microseconds> wall_;
  std::atomic<std::chrono::steady_clock::duration> steady_;
};

}  // namespace holdfast::test
