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
/// The comments say: parameters -> result columns.
struct statements {
  grant_mode mode = grant_mode::batch;
  /// Name, count (not above the limit), limit -> name, granted, last, epoch.
  sql::batch_statement grant{};
  /// The same, but starts again after the limit.
  sql::batch_statement grant_cycling{};
  /// Name -> name, granted, last, epoch of the last grant. For batch_then_read.
  sql::batch_statement read_granted{};
  /// Name, count, limit -> name, granted, last, epoch. For transactions of the caller and
  /// one_by_one.
  sql::statement grant_one{};
  sql::statement grant_one_cycling{};
  /// Name, count, limit, limit, count, count. The insert id of the connection is the last ordinal.
  /// MySQL only; empty elsewhere.
  sql::statement grant_by_insert_id{};
  sql::statement peek{};             ///< name -> last, epoch
  sql::statement ensure_at_least{};  ///< name, ordinal
  sql::statement reset{};            ///< ordinal, name, last, epoch
  sql::statement give_back{};        ///< ordinal, name, last, epoch
  sql::statement list{};             ///< name, limit -> name, last, epoch
};

/// Throws errc::invalid_argument for an invalid prefix, an unknown dialect, and a failover_skip
/// that the dialect does not support.
[[nodiscard]] HOLDFAST_API statements make_statements(sql::dialect_id dialect,
                                                      const sequence_store_options& options);

}  // namespace HOLDFAST_NAMESPACE::detail::sequence
