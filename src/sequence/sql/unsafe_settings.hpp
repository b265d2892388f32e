#pragma once

/// \file
/// Settings of SQL servers that break the promise of a sequence.

#include <holdfast/sql.hpp>
#include <holdfast/version.hpp>

#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::sequence {

/// The reasons why a database could lose a commit that it acknowledged, one line each. `fenced` (a
/// failover_skip is set): also the reasons why a replica could not tell which server granted a
/// block.
[[nodiscard]] std::vector<std::string> unsafe_sql_settings(sql::connection& server,
                                                           sql::dialect_id dialect, bool fenced);

}  // namespace HOLDFAST_NAMESPACE::detail::sequence
