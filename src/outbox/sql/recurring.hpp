#pragma once

/// \file
/// Recurring events. They are rows of the table of tickets, in lanes of their own: those of lane n
/// have LANE = -2 - n. Programs of the versions before do not read these rows, so that they can run
/// at the same time, and no table changes.

#include <holdfast/outbox/recurring.hpp>

#include "outbox/sql/publish.hpp"
#include "outbox/sql/tables.hpp"
#include "outbox/sql/wake.hpp"

namespace HOLDFAST_NAMESPACE::detail::outbox {

/// LANE of the recurring events of a lane.
[[nodiscard]] constexpr std::int64_t recurring_lane(std::size_t lane) noexcept {
  return -2 - static_cast<std::int64_t>(lane);
}

/// The functions are those of outbox_backend.
/// Thread-safety: every function may be called from any thread.
class sql_recurring {
 public:
  sql_recurring(const statement_builder& builder, const outbox_tables& tables,
                const sql_publisher& publisher, const sql_wake& wake);

  recurrence_page read(const lane_session& session, const recurrence_query& query) const;
  /// In a transaction.
  update_status update(const lane_session& session, const recurrence_update& update,
                       const publish_terms& terms) const;

 private:
  [[nodiscard]] std::optional<std::string> lock_text(const lane_session& session,
                                                     std::string_view name) const;
  /// Returns false if another program has added one with this name meanwhile.
  bool write(const lane_session& session, const recurrence_update& update) const;
  void publish(const lane_session& session, std::span<const event> events,
               const publish_terms& terms) const;

  const outbox_tables& tables_;
  const sql_publisher& publisher_;
  const sql_wake& wake_;
  named_statement find_;   ///< name -> recurrence rows
  named_statement due_;    ///< now, latest, limit -> recurrence rows, the earliest first
  named_statement scan_;   ///< name, limit -> recurrence rows, by name
  named_statement first_;  ///< -> the smallest time
  named_statement count_;
  named_statement lock_;  ///< name -> text
  named_statement insert_;
  named_statement change_;
  named_statement erase_;
};

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
