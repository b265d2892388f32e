#pragma once

/// \file
/// The table of tickets: events that are published when their time has come.

#include "outbox/sql/statement.hpp"

namespace HOLDFAST_NAMESPACE::detail::outbox {

struct ticket_row {
  std::string name{};
  std::int64_t expires = 0;
  std::string key{};   ///< of the event
  std::string body{};  ///< of its entry
};

struct ticket_statements {
  named_statement find;          ///< locks the ticket; -> expires
  named_statement insert;        ///< ticket, expires, key, body
  named_statement update;        ///< ticket, expires, key, body
  named_statement erase;         ///< ticket
  named_statement lock_expired;  ///< now, limit; skips locked tickets -> ticket rows, oldest first
  named_statement erase_list;    ///< tickets
  named_statement first_expiry;  ///< -> the smallest expiry
  named_statement scan;          ///< after, limit -> ticket rows in the order of names
};
[[nodiscard]] ticket_statements make_ticket_statements(const statement_builder& builder);
[[nodiscard]] std::vector<ticket_row> read_ticket_rows(const sql::rows& rows);

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
