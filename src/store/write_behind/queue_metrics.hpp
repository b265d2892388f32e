#pragma once

#include <holdfast/metrics.hpp>
#include <holdfast/store/write_behind.hpp>

#include <array>
#include <cstddef>
#include <memory>

namespace HOLDFAST_NAMESPACE::detail::store {

/// Exports write_behind_numbers as holdfast_write_behind_... metrics.
class queue_metrics {
 public:
  /// Number of values of the label `result`.
  static constexpr std::size_t result_count = 9;

  /// A null sink disables it.
  explicit queue_metrics(const std::shared_ptr<metrics_sink>& sink);

  [[nodiscard]] bool enabled() const noexcept { return pending_ != nullptr; }
  /// Adds the differences to `previous` to the counters, and sets the gauges.
  void update(const write_behind_numbers& previous, const write_behind_numbers& current);

 private:
  std::array<std::shared_ptr<metrics::counter>, result_count> operations_{};  // by result
  std::shared_ptr<metrics::gauge> pending_{};
  std::shared_ptr<metrics::gauge> bytes_{};
  std::shared_ptr<metrics::gauge> oldest_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::store
