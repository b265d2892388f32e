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

}  // namespace HOLDFAST_NAMESPACE::detail::sql
