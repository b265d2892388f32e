#pragma once

/// \file
/// What an outbox on SQL has beyond the others: its tables, and the caller's own transaction.

#include <holdfast/join/transaction.hpp>
#include <holdfast/outbox/backend.hpp>
#include <holdfast/sql.hpp>
#include <holdfast/version.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE {

/// What creates the tables of an outbox on a database of this dialect, one statement each. Nothing happens where they are there already.
/// Throws errc::invalid_argument (prefix) and errc::unsupported_type (dialect).
[[nodiscard]] HOLDFAST_API std::vector<std::string> outbox_schema(sql::dialect_id dialect, std::string_view prefix = "{identity:outbox}");

/// A backend that can take part in a transaction of the caller's: there when it commits, never there when it rolls back.
/// Thread-safety: as outbox_backend; the transaction belongs to the thread that calls.
class HOLDFAST_API joining_outbox_backend {
 public:
  virtual ~joining_outbox_backend();

  /// Throws what would be a receipt of a refusal elsewhere: the caller then rolls back, or goes on without the event.
  /// Publishers of one key wait for each other until their transactions end.
  [[nodiscard]] virtual std::vector<receipt> publish_in(join::transaction& in, std::size_t lane, std::span<const event> events,
                                                        const publish_terms& terms) = 0;
  /// Whether the effect of a claimed event is to be applied, in this transaction: `done` once (apply it, then commit), `applied` when it was
  /// before, `stale` when the claim was lost. Until the end of the transaction nobody else gets the event.
  [[nodiscard]] virtual commit_status apply_once(join::transaction& in, std::size_t lane, fence token, std::string_view id,
                                                 std::string_view key, const publish_terms& terms) = 0;
};

}  // namespace HOLDFAST_NAMESPACE
