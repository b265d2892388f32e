#pragma once

/// \file
/// Counters in an SQL database.

#include <holdfast/sequence/block_store.hpp>
#include <holdfast/sequence/options.hpp>
#include <holdfast/version.hpp>

#include "sql/context.hpp"

#include <memory>

namespace HOLDFAST_NAMESPACE::detail::sequence {

/// Counters in the table {prefix}SEQUENCES. Throws errc::invalid_argument (prefix, dialect,
/// failover_skip), and errors of the database if it must create the table.
[[nodiscard]] HOLDFAST_API std::shared_ptr<block_store> make_sql_block_store(
    std::shared_ptr<sql::context> context, const sequence_store_options& options);

}  // namespace HOLDFAST_NAMESPACE::detail::sequence
