#pragma once

#include <holdfast/sequence/options.hpp>
#include <holdfast/sql.hpp>
#include <holdfast/version.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail {

/// How blocks of many counters are granted with one commit.
enum class many_blocks : std::uint8_t {
  batch,       ///< one statement, which returns what it granted
  batch_look,  ///< one statement, and another that looks, in one transaction
  one_by_one   ///< a statement for each, in one transaction
};

/// Everything a block store says to one database: the dialect as data.
///
/// A grant is one statement: it makes the row or raises it, no further than the limit, and returns both ends. It needs no lock, no second look, and
/// no transaction of more than itself.
struct sequence_statements {
  many_blocks many = many_blocks::batch;
  sql::batch_statement grant{};          ///< name, count (not above the limit), limit -> name, granted, last, epoch
  sql::batch_statement grant_cycling{};  ///< the same, and begins again after the limit
  sql::batch_statement look{};           ///< name -> name, granted, last, epoch, of what was granted last; for batch_look
  sql::statement grant_one{};            ///< name, count, limit -> name, granted, last, epoch; for transactions, and one by one
  sql::statement grant_one_cycling{};    ///< the same, and begins again after the limit
  sql::statement last_insert_id{};       ///< name, count, limit, limit, count, count; the last ordinal is the connection's insert id. MySQL
  sql::statement peek{};                 ///< name -> last, epoch
  sql::statement ensure{};               ///< name, ordinal
  sql::statement reset{};                ///< ordinal, name, last, epoch
  sql::statement give_back{};            ///< ordinal, name, last, epoch
  sql::statement list{};                 ///< after, limit -> name, last, epoch
};

/// Throws errc::invalid_argument for a prefix that could be more than a name, an unknown dialect, and a failover that the dialect cannot see.
[[nodiscard]] HOLDFAST_API sequence_statements make_sequence_statements(sql::dialect_id dialect, const sequence_store_options& options);

/// The table, with its prefix.
[[nodiscard]] std::string sequence_table(const sequence_store_options& options);

}  // namespace HOLDFAST_NAMESPACE::detail
