#pragma once

/// \file
/// Counters in an SQL database.

#include <holdfast/sequence/block_store.hpp>
#include <holdfast/sequence/options.hpp>
#include <holdfast/version.hpp>

#include "sql/context.hpp"

#include <memory>

namespace HOLDFAST_NAMESPACE::detail::sequence {

/// Counters in the table {prefix}SEQUENCES. Connects at the first operation, which creates the
/// table if the options say so, and throws errc::invalid_argument for an unsupported dialect.
/// Throws errc::invalid_argument for an invalid prefix or failover_skip.
[[nodiscard]] HOLDFAST_API std::shared_ptr<block_store> make_sql_block_store(
    std::shared_ptr<sql::context> context, const sequence_store_options& options);

}  // namespace HOLDFAST_NAMESPACE::detail::sequence
