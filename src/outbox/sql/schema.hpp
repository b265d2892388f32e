#pragma once

/// \file
/// The tables of an outbox: their names, the states of an event row, and the CREATE statements.
///
/// | table | rows |
/// | --- | --- |
/// | X_OUTBOX | one for each event and each remembered id; narrow, often updated |
/// | X_OUTBOX_ENTRY | the JSON text of each event; wide, only inserted and deleted |
/// | X_OUTBOX_TICKET | one for each ticket that has not fired |
/// | X_OUTBOX_LANE | one for each lane: pause, lock, last token; and one that holds the prefix |
/// | X_OUTBOX_TALLY | changes of the counters, see counter_table.hpp |
/// | X_OUTBOX_STRIPE | MariaDB and MySQL: rows that publishers lock, see key_locks.hpp |
///
/// All times are milliseconds since 1970 by the clock of the database.

#include <holdfast/sql.hpp>
#include <holdfast/version.hpp>

#include "sql/schema_set.hpp"
#include "sql/table_access.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::outbox {

/// The column PLACE of an event row.
enum class row_state : std::int64_t {
  queued = 0,     ///< to be delivered: due, waiting, claimed, or behind another event of its key
  parked = 2,     ///< kept aside
  blocking = 3,   ///< kept aside, and its key waits for it
  remembered = 4  ///< only the id is left, see remembered_ids.hpp
};

struct table_names {
  std::string events;
  std::string entries;
  std::string tickets;
  std::string lanes;
  std::string counters;
  std::string stripes;
};

/// Derives the names from the hash tag, which must be the whole prefix: letters become lower case,
/// characters other than letters, digits and `_` become `_`. Throws errc::invalid_argument.
[[nodiscard]] table_names table_names_of(std::string_view prefix);

/// SQL text with `{name}` for parts that depend on the dialect or the outbox.
using fragment_map = std::map<std::string, std::string, std::less<>>;
/// Replaces fragments, also those inside of fragments. Throws errc::internal if one is unknown.
[[nodiscard]] std::string expand_fragments(std::string_view text, const fragment_map& fragments);

/// The tables, the numbers of states, and the column types.
/// Throws errc::unsupported_type if the outbox does not support the dialect.
[[nodiscard]] fragment_map schema_fragments(sql::dialect_id dialect, const table_names& tables);

/// The statements that create the tables and indexes that do not exist yet. Throws
/// errc::unsupported_type.
[[nodiscard]] std::vector<std::string> create_statements(sql::dialect_id dialect,
                                                         const table_names& tables);

/// Whether a database of this dialect can hold an outbox.
[[nodiscard]] HOLDFAST_API bool supports(sql::dialect_id dialect) noexcept;

/// The set of tables of the outbox with this prefix. Throws errc::invalid_argument for an invalid
/// prefix.
[[nodiscard]] HOLDFAST_API sql::schema_set outbox_tables_schema(std::string_view prefix);

/// What publishers and workers need of the tables of an outbox. Names one column of each table: the
/// others are checked when the outbox is opened. Throws errc::invalid_argument for an invalid
/// prefix.
[[nodiscard]] HOLDFAST_API std::vector<sql::table_need> table_needs(sql::dialect_id dialect,
                                                                    std::string_view prefix);

/// Returns the number of lanes of an existing outbox. A damaged outbox may lack a row of a lane;
/// the number is a power of two in any case. Throws errors of the database.
[[nodiscard]] HOLDFAST_API std::size_t count_lanes(sql::connection& connection,
                                                   std::string_view prefix);

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
