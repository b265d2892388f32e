#pragma once

/// \file
/// What only an outbox on SQL offers: the statements that create its tables, and publishing in the
/// caller's own transaction.

#include <holdfast/join/transaction.hpp>
#include <holdfast/outbox/backend.hpp>
#include <holdfast/sql.hpp>
#include <holdfast/version.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE {

/// Returns the statements that create the tables and indexes of an outbox. They leave existing
/// tables unchanged. Throws errc::invalid_argument (prefix) and errc::unsupported_type (dialect).
[[nodiscard]] HOLDFAST_API std::vector<std::string> outbox_schema(
    sql::dialect_id dialect, std::string_view prefix = "{holdfast}");

/// A backend that takes part in a transaction of the caller: its changes are committed and rolled
/// back with it.
/// Thread-safety: as outbox_backend. A transaction may be used by one thread at a time.
class HOLDFAST_API joining_outbox_backend {
 public:
  virtual ~joining_outbox_backend();

  /// Publishes events in `transaction`. Publishers of one key wait for each other until their
  /// transactions end. Throws where outbox_backend::publish returns a refused receipt; the caller
  /// then rolls back, or continues without the events.
  [[nodiscard]] virtual std::vector<receipt> publish_in(join::transaction& transaction,
                                                        std::size_t lane,
                                                        std::span<const event> events,
                                                        const publish_terms& terms) = 0;
  /// Says whether to apply the effect of a claimed event in `transaction`: `done` if the caller is
  /// to apply it and commit, `applied` if it was applied before, `stale` if the claim was lost. No
  /// other claim gets the event until the transaction ends.
  [[nodiscard]] virtual commit_status apply_once(join::transaction& transaction, std::size_t lane,
                                                 fence token, std::string_view id,
                                                 std::string_view key,
                                                 const publish_terms& terms) = 0;
};

}  // namespace HOLDFAST_NAMESPACE
