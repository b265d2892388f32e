#include "store/write_behind/queue_metrics.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::store {

namespace {

struct counted_result {
  std::string_view label;
  std::uint64_t write_behind_numbers::* count;
  /// Counted under a label of its own.
  std::uint64_t write_behind_numbers::* excluded_count = nullptr;

  [[nodiscard]] std::uint64_t count_in(const write_behind_numbers& numbers) const noexcept {
    return numbers.*count - (excluded_count == nullptr ? 0 : numbers.*excluded_count);
  }
};

constexpr std::array<counted_result, queue_metrics::result_count> counted_results{
    {{"queued", &write_behind_numbers::queued},
     {"coalesced", &write_behind_numbers::coalesced},
     {"written", &write_behind_numbers::written},
     {"skipped", &write_behind_numbers::skipped},
     {"dropped", &write_behind_numbers::dropped},
     {"failed", &write_behind_numbers::failed, &write_behind_numbers::quarantined},
     {"quarantined", &write_behind_numbers::quarantined},
     {"refused", &write_behind_numbers::refused},
     {"written_through", &write_behind_numbers::written_through}}};

}  // namespace

queue_metrics::queue_metrics(const std::shared_ptr<metrics_sink>& sink) {
  if (!sink) return;
  const auto isolated = isolate(sink);
  for (std::size_t i = 0; i < counted_results.size(); ++i) {
    operations_[i] = isolated->counter("holdfast_write_behind_operations_total",
                                       {{.name = "result", .value = counted_results[i].label}},
                                       "Operations of write-behind stores, by what became of them");
  }
  pending_ = isolated->gauge("holdfast_write_behind_pending", {},
                             "Operations that wait or are on their way");
  bytes_ = isolated->gauge("holdfast_write_behind_pending_bytes", {},
                           "Memory of the operations that wait or are on their way");
  oldest_ = isolated->gauge("holdfast_write_behind_oldest_seconds", {},
                            "Age of the operation that is pending longest");
}

void queue_metrics::update(const write_behind_numbers& previous,
                           const write_behind_numbers& current) {
  for (std::size_t i = 0; i < counted_results.size(); ++i) {
    const auto before = counted_results[i].count_in(previous);
    const auto after = counted_results[i].count_in(current);
    if (after != before) operations_[i]->add(after - before);
  }
  pending_->set(static_cast<double>(current.pending));
  bytes_->set(static_cast<double>(current.pending_bytes));
  oldest_->set(std::chrono::duration<double>(current.oldest).count());
}

}  // namespace HOLDFAST_NAMESPACE::detail::store
