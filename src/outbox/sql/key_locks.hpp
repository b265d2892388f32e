#pragma once

/// \file
/// Locks that put the publishers of one key in order.
///
/// Events of a key are delivered in the order of their SEQ, which must also be the order of the
/// commits. A publisher therefore locks the key until its transaction ends. Keys are mapped to 256
/// stripes: advisory locks on PostgreSQL, rows of a table on MariaDB and MySQL. SQLite has one
/// writer at a time and needs no lock.
///
/// On Galera a lock is seen on one node only, so the publisher also writes the row: it deletes and
/// inserts it, because an UPDATE that changes no value is not replicated. Of two publishers on
/// different nodes that do not see each other, the second one to commit fails.

#include "outbox/sql/open.hpp"
#include "outbox/sql/statement.hpp"

#include <set>

namespace HOLDFAST_NAMESPACE::detail::outbox {

inline constexpr std::int64_t stripe_count = 256;

/// Stripes in ascending order, the order in which every publisher locks them.
using stripe_set = std::set<std::int64_t>;

/// All versions and processes compute the same stripe.
[[nodiscard]] std::int64_t stripe_of(std::string_view key) noexcept;

/// Thread-safety: every function may be called from any thread.
class key_locks {
 public:
  key_locks(const statement_builder& builder, key_order order);

  /// Waits for the stripes, and holds them until the transaction ends.
  void lock(const lane_session& session, const stripe_set& stripes) const;
  /// Locks the stripes that are free. Returns those it locked.
  [[nodiscard]] stripe_set try_lock(const lane_session& session, const stripe_set& stripes) const;

  /// PostgreSQL: the array of stripes for a statement that locks them itself.
  [[nodiscard]] std::string stripe_array(const stripe_set& stripes) const;
  /// The first number of the advisory locks of this outbox on PostgreSQL.
  [[nodiscard]] std::int64_t lock_class() const noexcept { return lock_class_; }

 private:
  void rewrite(const lane_session& session, const stripe_set& stripes) const;

  std::int64_t lock_class_;
  bool enabled_;
  std::optional<named_statement> lock_{};
  std::optional<named_statement> try_lock_{};
  std::optional<named_statement> erase_{};    ///< Galera
  std::optional<named_statement> restore_{};  ///< Galera
};

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
