#pragma once

#include <holdfast/sql.hpp>
#include <holdfast/version.hpp>

namespace HOLDFAST_NAMESPACE::sql {

/// MySQL and MariaDB share most of their SQL.
[[nodiscard]] constexpr bool is_mysql(dialect_id dialect) noexcept {
  return dialect == dialect_id::mysql || dialect == dialect_id::mariadb;
}

}  // namespace HOLDFAST_NAMESPACE::sql
