#pragma once

/// \file
/// PostgreSQL: claims and acknowledges events without a key in one statement each, which is also
/// the transaction. Events without a key wait for no other event, so nothing has to be read between
/// two statements. All other claims and settlements are made by sql_deliverer.

#include <holdfast/outbox/operations.hpp>

#include "outbox/sql/tables.hpp"

#include <atomic>
#include <optional>
#include <span>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::outbox {

/// Thread-safety: every function may be called from any thread.
class keyless_delivery {
 public:
  keyless_delivery(const statement_builder& builder, const outbox_tables& tables,
                   std::size_t lanes);

  /// Whether to try `claim`: the last claim of this process in the lane had events without a key,
  /// and no others.
  [[nodiscard]] bool may_claim(std::size_t lane) const { return only_keyless_.at(lane); }
  /// Remembers a claim of sql_deliverer for may_claim.
  void observe(const claimed& answer) const;
  /// Claims events that are due. Changes nothing and returns nothing if an event that needs
  /// sql_deliverer is among them.
  [[nodiscard]] std::optional<claimed> claim(const lane_session& session,
                                             const claim_request& request) const;

  /// Whether `settle` can apply the settlements: all of them acknowledge events without a key.
  [[nodiscard]] static bool may_settle(fence token, std::span<const settlement> settlements,
                                       const publish_terms& terms);
  [[nodiscard]] settled settle(const lane_session& session, fence token,
                               std::span<const settlement> settlements,
                               const std::optional<run_request>& next_run_request) const;
  /// Returns whether `maintain` should be called after `acknowledged` more events.
  [[nodiscard]] bool needs_maintenance(std::size_t lane, std::size_t acknowledged) const;
  /// Forgets ids that are older than the dedup window, and compacts the counters.
  void maintain(const lane_session& session, const publish_terms& terms) const;

 private:
  const outbox_tables& tables_;
  named_statement claim_;
  named_statement settle_;
  mutable std::vector<std::atomic<bool>> only_keyless_;              ///< of each lane
  mutable std::vector<std::atomic<std::size_t>> since_maintenance_;  ///< of each lane: events
};

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
