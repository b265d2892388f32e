#pragma once

/// \file
/// Operations that read an outbox: statistics, records of events, and the check of its structures.

#include <holdfast/outbox/operations.hpp>

#include "outbox/sql/tables.hpp"

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::outbox {

struct inspect_statements {
  named_statement count_states, count_stuck, find, scan, scan_state;
  named_statement check_page, blocking_behind, events_without_entry, entries_without_event,
      rename_entry, foreign_tickets, erase_ticket, erase_foreign_tickets, insert_ticket,
      marks_without_event, bad_counters, erase_foreign_counters, queues_without_head, recount;
};
[[nodiscard]] inspect_statements make_inspect_statements(const statement_builder& builder);

/// The functions are those of outbox_backend, in a transaction.
/// Thread-safety: every function may be called from any thread.
class sql_inspector {
 public:
  sql_inspector(const statement_builder& builder, const outbox_tables& tables,
                std::size_t lane_count);

  outbox_stats stats(const lane_session& session) const;
  std::optional<outbox_record> find(const lane_session& session, std::string_view id) const;
  scan_page scan(const lane_session& session, scan_what kind, std::string_view after,
                 std::size_t limit) const;
  check_report check(const lane_session& session, bool repair) const;

 private:
  scan_page scan_parked(const lane_session& session, std::string_view after,
                        std::size_t limit) const;
  scan_page scan_tickets(const lane_session& session, std::string_view after,
                         std::size_t limit) const;
  /// A row of the statements find, scan and scan_state.
  struct inspected_row {
    event_row event{};
    std::string head_id{};  ///< of the head of its queue
    std::int64_t now_ms = 0;
  };
  std::vector<inspected_row> read_rows(const sql::rows& rows) const;
  /// Adds what the entries say.
  std::vector<outbox_record> make_records(const lane_session& session,
                                          std::span<const inspected_row> rows) const;

  // Steps of check
  struct check_run {
    const lane_session& session;
    bool repair = false;
    std::int64_t now_ms = 0;
    check_report report{};
  };
  /// A row of the statements check_page and events_without_entry.
  struct checked_row {
    event_row event{};
    std::int64_t lane = 0;
    std::optional<std::int64_t> entry_bytes{};  ///< empty if it has no entry
  };
  std::vector<checked_row> read_checked_rows(const sql::rows& rows) const;
  /// The lane in which the event must be.
  [[nodiscard]] std::size_t lane_for(const checked_row& row) const;
  void check_entries(check_run& run) const;
  void restore_event(check_run& run, const std::string& id, const std::string& text,
                     std::vector<checked_row>& without_entry) const;
  void insert_missing_event(check_run& run, const std::string& id, const std::string& key,
                            std::size_t bytes) const;
  void check_rows(check_run& run) const;
  /// Adds the queues that a repaired row has left or joined.
  void repair_page(check_run& run, std::span<const checked_row> page,
                   std::map<std::size_t, std::set<std::string, std::less<>>>& queues) const;
  void check_tickets(check_run& run) const;
  void check_marks(check_run& run) const;
  void check_counters(check_run& run) const;

  const outbox_tables& tables_;
  std::size_t lane_count_;
  inspect_statements statements_;
};

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
