#pragma once

/// \file
/// The metrics of what the server knows about stores, outboxes, sequences and instances: those of a
/// snapshot, for a Prometheus that does not read /v1/status.

#include <holdfast/metrics.hpp>
#include <holdfast/version.hpp>

#include "serve/followed_counter.hpp"
#include "serve/live/snapshot.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// Thread-safety: none; the sampling thread has it.
class state_metrics {
 public:
  explicit state_metrics(std::shared_ptr<metrics_sink> sink);

  /// Brings the metrics up to date. A database that does not answer keeps its last numbers, and is
  /// not available.
  void update(const snapshot& current, std::size_t open_incidents);

 private:
  using gauge = std::shared_ptr<metrics::gauge>;
  struct store_series {
    gauge available;
    gauge unsaved;
  };
  struct outbox_series {
    gauge available;
    // Null before the first answer: a 0 would look as if events came with the next one.
    gauge pending{};
    gauge parked{};
    gauge tickets{};
    gauge overdue{};
    gauge paused{};
    // Totals of the outbox. A counter of the server begins with its first answer, so that the
    // restart of a server is not a burst of events.
    std::unique_ptr<followed_counter> published{};
    std::unique_ptr<followed_counter> acked{};
  };
  struct sequence_series {
    gauge remaining;
    followed_counter granted;
  };

  void update_store(const store_sample& sample);
  void update_outbox(const outbox_sample& sample);
  void update_sequences(const snapshot& current);
  void update_instances(const snapshot& current);
  void add_outbox_numbers(outbox_series& series, std::string_view name,
                          const outbox_stats& first) const;
  [[nodiscard]] sequence_series sequence_gauges(const sequence_sample& sample) const;

  std::shared_ptr<metrics_sink> sink_;
  gauge open_incidents_;
  std::map<std::string, store_series> stores_{};
  std::map<std::string, outbox_series> outboxes_{};
  std::map<std::string, sequence_series> sequences_{};
  std::map<std::pair<std::string_view, std::string_view>, gauge> instances_{};  // kind and state
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve
