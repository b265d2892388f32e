#pragma once

/// \file
/// The calls of a point in the last hour: a sample of their keys, and how the checks of coverage
/// ended. Kept in twelve periods of five minutes, each with at most 20 keys.

#include <holdfast/clock.hpp>
#include <holdfast/version.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::failover {

/// How a check of coverage ended.
enum class coverage_result : std::uint8_t {
  covered,
  not_found,
  expired,
  not_servable,
  unread,
  undecided,
  end_of_results
};

/// A random number; each thread has a generator of its own.
[[nodiscard]] std::uint32_t random_number() noexcept;

/// Thread-safety: every function may be called from any thread.
class recent_calls {
 public:
  struct sampled_key {
    std::string key;
    std::string realm;
    double weight;  ///< calls that this key represents
  };

  /// Counts a call, and keeps its key if it is among those that represent the period.
  void record_call(timestamp now, std::string_view key, std::string_view realm);
  void record_coverage(timestamp now, coverage_result result) noexcept;

  [[nodiscard]] std::vector<sampled_key> keys(timestamp now) const;
  [[nodiscard]] std::uint64_t calls(timestamp now) const;
  using coverage_counts =
      std::array<std::uint64_t, static_cast<std::size_t>(coverage_result::end_of_results)>;
  [[nodiscard]] coverage_counts coverage(timestamp now) const;

 private:
  static constexpr std::size_t period_count = 12;
  static constexpr std::chrono::minutes period_length{5};
  static constexpr std::size_t keys_per_period = 20;

  struct asked_row {
    std::string key;
    std::string realm;
  };
  struct period {
    mutable std::mutex mutex{};
    std::atomic<std::int64_t> number{-1};  // of the period that the rest belongs to
    std::atomic<std::uint64_t> calls{0};
    std::vector<asked_row> rows{};
    std::array<std::atomic<std::uint64_t>, std::tuple_size_v<coverage_counts>> results{};
  };

  [[nodiscard]] static std::int64_t number_of(timestamp now) noexcept {
    return now.time_since_epoch() / period_length;
  }
  /// The period of this time, emptied if it was used for an earlier one.
  period& period_of(std::int64_t number);
  /// Calls `use` for each period of the last hour.
  template <class Use>
  void each(timestamp now, Use use) const;

  std::array<period, period_count> periods_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::failover
