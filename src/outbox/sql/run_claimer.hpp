#pragma once

/// \file
/// The last step of a claim: hands out the heads of keys that are due, and the events after them.

#include <holdfast/outbox/operations.hpp>
#include <holdfast/version.hpp>

#include "outbox/checks.hpp"
#include "outbox/sql/tables.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::outbox {

/// A claim that is being made: its limits, what it may still hand out, and its answer so far.
struct claim_progress {
  const lane_session& session;
  lane_row& lane;  ///< new_token updates it
  std::size_t max_run_length = 1;
  std::chrono::milliseconds lease{};
  std::size_t remaining_events = max_events_per_call;
  std::size_t remaining_bytes = 0;
  claimed& answer;
  lane_counters& changes;                 ///< the caller adds them to the counters of the lane
  std::set<std::int64_t> leased_heads{};  ///< SEQ of the rows that the claim has changed
};

/// Thread-safety: every function may be called from any thread.
class run_claimer {
 public:
  run_claimer(const statement_builder& builder, const outbox_tables& tables);

  /// Claims events that have no key or are the head of their key, each with its followers, until
  /// the limits are reached. The caller has locked the rows of the heads. Removes rows without an
  /// entry, and promotes the next events of their keys.
  void claim(event_rows heads, claim_progress& progress) const;

  struct statements {
    named_statement followers;
    named_statement lease_events;                      ///< heads that come alone
    named_statement lease_runs;                        ///< heads with followers
    std::optional<named_statement> followers_of_many;  ///< PostgreSQL
  };
  [[nodiscard]] static statements make_statements(const statement_builder& builder);

 private:
  /// A head and the followers that are claimed with it. One lease covers all of them.
  struct event_run {
    event_row head{};
    event_rows followers{};
  };
  using entry_map = std::map<std::string, std::string, std::less<>>;
  /// Followers that were read before they were needed, by the SEQ of their head.
  using read_ahead = std::map<std::int64_t, event_rows>;

  std::vector<event_run> collect_runs(event_rows heads, claim_progress& progress) const;
  void collect_followers(event_run& run, event_rows followers, claim_progress& progress) const;
  [[nodiscard]] event_rows followers_of(std::span<const event_row> heads, read_ahead& followers,
                                        const claim_progress& progress) const;
  [[nodiscard]] static bool hand_out(const event_row& row, bool is_head, const entry_map& entries,
                                     claim_progress& progress);

  const outbox_tables& tables_;
  const bool has_one_writer_;  ///< SQLite
  statements statements_;
};

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
