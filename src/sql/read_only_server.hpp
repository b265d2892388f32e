#pragma once

#include <holdfast/error.hpp>
#include <holdfast/version.hpp>

#include "sql/public_names.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::sql {

/// Whether a server refused to write because it is read-only: a standby of PostgreSQL, a replica of
/// MySQL, MariaDB, SQL Server (3906) or Oracle (16000). ODBC drivers report SQLSTATE and number,
/// for example `HY000/1290`.
[[nodiscard]] inline bool is_read_only_server(const error& failure) {
  static constexpr std::array<std::string_view, 6> codes{"25006", "1290", "1792",
                                                         "1836",  "3906", "16000"};
  const std::string_view code = failure.backend_code();
  const auto slash = std::min(code.find('/'), code.size());
  const auto number = code.substr(std::min(slash + 1, code.size()));
  return std::ranges::find(codes, code.substr(0, slash)) != codes.end() ||
         std::ranges::find(codes, number) != codes.end();
}

/// Whether a server refused a statement because of its own state, so that a new connection may lead
/// to one that accepts it: it is read-only, or a node that is not part of its Galera cluster.
[[nodiscard]] inline bool is_unusable_server(const error& failure) {
  static constexpr std::array<std::string_view, 2> left_cluster{"1047", "1180"};
  return is_read_only_server(failure) ||
         std::ranges::find(left_cluster, failure.backend_code()) != left_cluster.end();
}

}  // namespace HOLDFAST_NAMESPACE::detail::sql
