#pragma once

#include <holdfast/database.hpp>
#include <holdfast/sequence/block_store.hpp>
#include <holdfast/version.hpp>

#include <memory>

namespace HOLDFAST_NAMESPACE {

/// Counters in the table {prefix}SEQUENCES. Throws errc::invalid_argument (prefix, dialect, failover_skip), and what the database throws when the table is to be
/// created.
[[nodiscard]] std::shared_ptr<block_store> make_sql_block_store(std::shared_ptr<database::state> on, const sequence_store_options& options);

namespace detail {

/// Why a database could forget a commit that it acknowledged, or (`fenced`: there is a failover_skip) which server it came from; one line each.
[[nodiscard]] std::vector<std::string> unsafe_settings_of(sql::connection& server, sql::dialect_id dialect, bool fenced);

}  // namespace detail

}  // namespace HOLDFAST_NAMESPACE
