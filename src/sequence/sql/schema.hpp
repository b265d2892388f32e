#pragma once

/// \file
/// The table of counters. The public part is sequence_schema (holdfast/sequence.hpp).

#include <holdfast/sequence/options.hpp>
#include <holdfast/version.hpp>

#include "sql/schema_set.hpp"

#include <string>

namespace HOLDFAST_NAMESPACE::detail::sequence {

/// Since this version of the table counters have definitions.
inline constexpr int definitions_since = 2;

/// {prefix}SEQUENCES. Throws errc::invalid_argument for an invalid prefix.
[[nodiscard]] std::string table_name(const sequence_store_options& options);

/// The set of tables of the sequences with one prefix. Throws errc::invalid_argument for an invalid
/// prefix.
[[nodiscard]] HOLDFAST_API sql::schema_set counter_schema(const sequence_store_options& options);

}  // namespace HOLDFAST_NAMESPACE::detail::sequence
