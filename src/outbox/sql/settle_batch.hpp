#pragma once

/// \file
/// Decides what a list of settlements changes. It works on locked rows in memory; sql_deliverer
/// reads the rows and writes the changes.

#include <holdfast/outbox/operations.hpp>

#include "outbox/sql/counter_table.hpp"
#include "outbox/sql/event_table.hpp"

namespace HOLDFAST_NAMESPACE::detail::outbox {

class settle_batch {
 public:
  settle_batch(event_rows_by_id rows, fence token, std::int64_t now_ms);

  /// Applies the next settlement. Those of one key must come in the order of its run.
  void apply(const settlement& settlement);

  // Results, in the order of the settlements.
  std::vector<bool> done{};  ///< for each settlement: false if the lease was lost
  /// Keys whose followers are still to be parked
  std::vector<std::string> keys_to_park{};
  event_rows changed{};                        ///< rows to write
  std::vector<std::int64_t> delivered_seqs{};  ///< rows of acknowledged events
  std::vector<std::string> delivered_ids{};    ///< their ids
  promotions_by_key promotions{};              ///< keys whose head left the queue
  std::vector<std::string> completed_keys{};   ///< keys whose run was acknowledged to its end
  lane_counters changes{};

 private:
  /// The head of a key, as it is after the settlements so far, and the claim that covers it.
  struct key_head {
    std::int64_t seq = 0;
    fence token = 0;
    std::int64_t run_length = 0;
    std::int64_t due = 0;
  };

  [[nodiscard]] bool is_held(const event_row& row, std::string_view key) const;
  [[nodiscard]] bool repeats_parking(const event_row& row, const settlement& settlement) const;
  void acknowledge(const event_row& row);
  void release(event_row row);
  void retry(event_row row, const settlement& settlement);
  void park(event_row row, const settlement& settlement);
  void remove_head(const event_row& row);
  void stop_run(const event_row& row);

  event_rows_by_id rows_;
  std::map<std::string, key_head, std::less<>> heads_{};
  fence token_;
  std::int64_t now_ms_;
};

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
