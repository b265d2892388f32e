#pragma once

/// \file
/// The workers of an outbox: rows of the table of lanes with numbers below -1. OWNER is the name of
/// the worker, UNTIL the end of its time. So they need no table of their own.

#include "outbox/sql/lane_table.hpp"
#include "outbox/sql/statement.hpp"

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::outbox {

/// Thread-safety: every function may be called from any thread.
class sql_workers {
 public:
  sql_workers(const statement_builder& builder, const lane_table& lanes);

  /// See outbox_lane_locks::announce.
  std::vector<std::string> announce(const lane_session& session, std::string_view worker,
                                    std::chrono::milliseconds ttl) const;

 private:
  const lane_table& lanes_;
  named_statement insert_;
  named_statement update_;
  named_statement erase_;
  named_statement read_;
};

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
