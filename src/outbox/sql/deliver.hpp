#pragma once

/// \file
/// Delivery of events: claims, leases, settlements, and effects that are applied once.

#include <holdfast/outbox/commit.hpp>
#include <holdfast/outbox/operations.hpp>
#include <holdfast/version.hpp>

#include "outbox/sql/run_claimer.hpp"
#include "outbox/sql/settle_batch.hpp"
#include "outbox/sql/tables.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::outbox {

struct deliver_statements {
  named_statement due_events, first_due;
  named_statement lock_heads, demote, set_due;
  named_statement lock_followers, mark_delivered;
};
[[nodiscard]] deliver_statements make_deliver_statements(const statement_builder& builder);

/// Thread-safety: every function may be called from any thread.
class sql_deliverer {
 public:
  sql_deliverer(const statement_builder& builder, const outbox_tables& tables);

  /// Claims events that are due. Also parks followers of heads that were parked with
  /// park_policy::park.
  claimed claim(const lane_session& session, const claim_request& request) const;
  /// Moves the ends of leases. For each event: false if its lease was lost. Reads only the id and
  /// the key of a settlement.
  std::vector<bool> extend(const lane_session& session, fence token,
                           std::span<const settlement> events,
                           std::chrono::milliseconds lease) const;

  struct settle_result {
    settled answer{};
    /// Events became due that no waiting worker knows of.
    bool must_wake_workers = false;
  };
  /// Applies the settlements whose lease was not lost. Then claims the next runs of the keys whose
  /// run was acknowledged to its end, if requested.
  settle_result settle(const lane_session& session, fence token,
                       std::span<const settlement> settlements,
                       const std::optional<run_request>& next_run_request,
                       const publish_terms& terms) const;
  /// Parks up to `limit` followers of a head that was parked with park_policy::park. Returns true
  /// if a further call can park more. Returns false also if other transactions hold the remaining
  /// ones, since the next claim continues.
  bool park_followers(const lane_session& session, std::string_view key, std::size_t limit) const;
  /// See joining_outbox_backend::apply_once. A token of 0 applies the effect without a claim: only
  /// the mark of the effect is checked.
  commit_status apply_once(const lane_session& session, fence token, std::string_view id,
                           std::string_view key, const publish_terms& terms) const;

 private:
  /// Maps the SEQ of a due follower to the SEQ of its head.
  using head_by_follower = std::map<std::int64_t, std::int64_t>;
  /// What the rounds of a claim may still do.
  struct round_limits {
    std::size_t heads = 0;    ///< heads to claim
    std::size_t parking = 0;  ///< followers to park
  };
  struct parking_result {
    std::size_t parked = 0;
    bool more = false;  ///< followers remain
  };
  /// The rows that carry the leases of events: heads of keys, and events without a key.
  struct lease_rows {
    std::map<std::string, event_row, std::less<>> by_key_or_id{};
    std::set<std::int64_t> locked{};

    /// Adds the rows that `read` returns for a row_lock: locks those that no other transaction
    /// holds, and reads the others. `expected` is their number.
    template <class Read>
    void lock_or_read(std::size_t expected, const Read& read);
    void add(event_rows rows, bool are_locked);
  };

  // Steps of claim
  [[nodiscard]] bool claim_round(claim_progress& progress, round_limits& limits) const;
  [[nodiscard]] bool repair_misplaced(event_rows& due, claim_progress& progress) const;
  [[nodiscard]] bool continue_parking(event_rows& due, std::size_t& limit,
                                      claim_progress& progress) const;
  void demote_or_postpone(const lane_session& session, const head_by_follower& followers,
                          const event_rows& heads, std::int64_t now_ms) const;
  void demote_or_postpone_after_claim(const head_by_follower& followers,
                                      const claim_progress& progress) const;
  void demote(const lane_session& session, std::span<const std::int64_t> followers) const;
  void postpone(const lane_session& session, std::span<const std::int64_t> followers,
                std::int64_t now_ms) const;
  std::set<std::int64_t> lock_heads(const lane_session& session, const event_rows& heads,
                                    const head_by_follower& followers) const;
  void set_due(const lane_session& session, const json_rows& rows) const;
  std::optional<std::chrono::milliseconds> time_to_next_due(const lane_session& session,
                                                            std::int64_t now_ms) const;

  // Steps of extend
  lease_rows lock_or_read_lease_rows(const lane_session& session,
                                     std::span<const settlement> events) const;

  // Steps of settle
  void write_changes(const lane_session& session, const settle_batch& batch, const lane_row& lane,
                     const publish_terms& terms) const;
  [[nodiscard]] claimed claim_next(const lane_session& session, const run_request& request,
                                   lane_row& lane, settle_batch& batch) const;
  void claim_next_runs(std::span<const std::string> keys, claim_progress& progress) const;
  parking_result park_followers_of(const lane_session& session, event_row head, std::size_t limit,
                                   std::int64_t now_ms, lane_counters& changes) const;

  const outbox_tables& tables_;
  lock_scope locks_;
  deliver_statements statements_;
  run_claimer run_claimer_;
};

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
