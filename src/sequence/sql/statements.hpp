#pragma once

/// \file
/// The SQL statements of a block store, as data for each dialect.

#include <holdfast/sequence/options.hpp>
#include <holdfast/sql.hpp>
#include <holdfast/version.hpp>

#include <cstdint>

namespace HOLDFAST_NAMESPACE::detail::sequence {

/// How blocks of several counters are granted with one commit.
enum class grant_mode : std::uint8_t {
  batch,            ///< one statement, which returns what it granted
  batch_then_read,  ///< one statement, and another that reads the result, in one transaction
  one_by_one        ///< one statement for each counter, in one transaction
};

/// A grant is one statement: it creates or raises the row, not above the limit, and returns the
/// size and the end of the block. It needs no lock and no other statement.
///
/// A grant for several counters must not wait for one that another transaction has locked, and must
/// not hold locks while it waits: two such grants could deadlock. PostgreSQL skips locked rows in
/// the statement itself, MySQL and MariaDB lock the free rows first. Both leave out rows that do
/// not exist yet, whose creation may have to wait. What is left out is requested alone.
///
/// `defined` in the comments: only if the table has the column DEFINITION. A row with another
/// definition is not granted and not changed; a row without one gets it.
///
/// The comments say: parameters -> result columns.
struct statements {
  grant_mode mode = grant_mode::batch;
  /// The table has the column DEFINITION.
  bool defined = true;
  /// Name, count (not above the limit), limit, definition if `defined` -> name, granted, last,
  /// epoch.
  sql::batch_statement grant{};
  /// The same, but starts again after the limit.
  sql::batch_statement grant_cycling{};
  /// Name -> name. Locks the rows that are not locked. MySQL and MariaDB only; empty elsewhere.
  sql::batch_statement lock_free{};
  /// Name -> name, granted, last, epoch of the last grant. For batch_then_read.
  sql::batch_statement read_granted{};
  /// As `grant`, for one counter, and waits for it. For single requests, transactions of the caller
  /// and one_by_one. PostgreSQL also returns the address of the row, here and in `grant`.
  sql::statement grant_one{};
  sql::statement grant_one_cycling{};
  /// Name, count, limit, [definition,] address -> as `grant_one`. Nothing if the row is not at that
  /// address any more, or grants nothing. PostgreSQL only; empty elsewhere.
  ///
  /// PostgreSQL writes a new version of the row for each block, and cannot remove old ones while
  /// any transaction is open that is older. A search by name reads them all. The address is that
  /// of the newest version.
  sql::statement grant_at_address{};
  /// Name, count, limit, [definition,] limit, count, [definition,] count. The insert id of the
  /// connection is the last ordinal. MySQL only; empty elsewhere.
  sql::statement grant_by_insert_id{};
  sql::statement peek{};             ///< name -> last, epoch
  sql::statement ensure_at_least{};  ///< name, ordinal
  sql::statement reset{};            ///< ordinal, name, last, epoch
  sql::statement give_back{};        ///< ordinal, name, last, epoch
  sql::statement list{};             ///< name, limit -> name, last, epoch
  sql::statement definition{};       ///< name -> definition. Only if `defined`
  /// Definition, ordinal, name, last, epoch, definition before. Only if `defined`.
  sql::statement redefine{};
  /// The same for a counter whose definition has a failover_skip: only on the server that granted
  /// last.
  sql::statement redefine_fenced{};
};

/// Throws errc::invalid_argument for an invalid prefix, an unknown dialect, and a failover_skip
/// that the dialect does not support.
[[nodiscard]] HOLDFAST_API statements make_statements(sql::dialect_id dialect,
                                                      const sequence_store_options& options,
                                                      bool defined = true);

}  // namespace HOLDFAST_NAMESPACE::detail::sequence
