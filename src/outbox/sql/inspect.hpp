#pragma once

/// \file
/// Operations that read an outbox: statistics, records of events, and the check of its structures.

#include <holdfast/outbox/operations.hpp>

#include "outbox/sql/tables.hpp"

namespace HOLDFAST_NAMESPACE::detail::outbox {

struct inspect_statements {
  named_statement count_states, find, scan, scan_parked;
  named_statement events_without_entry, entries_without_event, queues_without_head, recount;
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
  scan_page scan_tickets(const lane_session& session, std::string_view after,
                         std::size_t limit) const;
  /// A row of the statements find, scan and scan_parked.
  struct inspected_row {
    event_row event{};
    std::string head_id{};  ///< of the head of its queue
    std::int64_t now_ms = 0;
  };
  std::vector<inspected_row> read_rows(const sql::rows& rows) const;
  /// Adds what the entries say.
  std::vector<outbox_record> make_records(const lane_session& session,
                                          std::span<const inspected_row> rows) const;
  void insert_missing_events(const lane_session& session, const sql::rows& entry_ids,
                             std::int64_t now_ms) const;

  const outbox_tables& tables_;
  std::size_t lane_count_;
  inspect_statements statements_;
};

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
