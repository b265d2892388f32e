#pragma once

/// \file
/// Operations on parked events, on lanes (pause, lock), and on tickets.

#include <holdfast/outbox/operations.hpp>

#include "outbox/sql/publish.hpp"
#include "outbox/sql/tables.hpp"
#include "outbox/sql/wake.hpp"

namespace HOLDFAST_NAMESPACE::detail::outbox {

/// The functions are those of outbox_backend, in a transaction.
/// Thread-safety: every function may be called from any thread.
class sql_admin {
 public:
  sql_admin(const statement_builder& builder, const outbox_tables& tables,
            const sql_publisher& publisher, const sql_wake& wake);

  std::vector<bool> replay(const lane_session& session, std::span<const std::string> ids) const;
  std::vector<bool> discard(const lane_session& session, std::span<const std::string> ids) const;
  void pause(const lane_session& session, bool paused) const;

  scheduled schedule(const lane_session& session, std::string_view ticket,
                     std::optional<timestamp> expires_at, std::chrono::milliseconds delay,
                     const event& event, const publish_terms& terms) const;
  cancel_status cancel(const lane_session& session, std::string_view ticket) const;
  drained drain(const lane_session& session, std::size_t limit, const publish_terms& terms) const;

  lock_grant lock(const lane_session& session, std::string_view owner,
                  std::chrono::milliseconds ttl) const;
  lock_grant renew(const lane_session& session, std::string_view owner,
                   std::chrono::milliseconds ttl) const;
  [[nodiscard]] bool unlock(const lane_session& session, std::string_view owner) const;

 private:
  void append_to_queue(const lane_session& session, const event_row& row,
                       std::int64_t now_ms) const;
  lock_grant grant(const lane_session& session, lane_row& row, std::string_view owner,
                   std::chrono::milliseconds ttl) const;
  void fire(const lane_session& session, std::span<const ticket_row> tickets, std::int64_t now_ms,
            const publish_terms& terms) const;

  const outbox_tables& tables_;
  const sql_publisher& publisher_;
  const sql_wake& wake_;
  named_statement insert_replayed_;
};

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
