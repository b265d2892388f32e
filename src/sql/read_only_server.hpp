#pragma once

#include <holdfast/error.hpp>
#include <holdfast/version.hpp>

#include "sql/public_names.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::sql {

/// Whether a server refused to write because it is read-only: a standby of PostgreSQL, a replica of
/// MySQL or MariaDB.
[[nodiscard]] inline bool is_read_only_server(const error& failure) {
  static constexpr std::array<std::string_view, 4> codes{"25006", "1290", "1792", "1836"};
  return std::ranges::find(codes, failure.backend_code()) != codes.end();
}

}  // namespace HOLDFAST_NAMESPACE::detail::sql
