#pragma once

/// \file
/// What a database reports about itself and about a store's table, in terms that all dialects
/// share.

#include <holdfast/sql.hpp>
#include <holdfast/version.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::store {

/// What a column can store.
enum class column_kind : std::uint8_t {
  text,
  bytes,
  time,        ///< a point in time
  local_time,  ///< a date and a time without a zone
  anything,    ///< SQLite: stores values of any type unchanged
  other        ///< a type that the store cannot use
};

struct column_facts {
  std::string name;
  /// The type as the database writes it.
  std::string type{};
  column_kind kind = column_kind::other;
  /// Characters or bytes. 0: no limit.
  std::int64_t length = 0;
  /// Digits of the fraction of a second.
  std::int64_t digits = 6;
  std::string collation{};
  /// Whether two texts are equal only if their bytes are.
  bool exact = true;
  /// Whether the character set contains all of Unicode.
  bool whole_unicode = true;
  bool not_null = false;
  /// NOT NULL without a default or a generated value.
  bool needs_value = false;
};

struct index_facts {
  std::string name;
  bool primary = false;
  /// Whether it is dropped with DROP CONSTRAINT (PostgreSQL).
  bool constraint = false;
  bool unique = false;
  /// In order. A column that is indexed by a prefix is written `NAME(8)`.
  std::vector<std::string> columns{};

  /// Whether FAILOVER_NAME and FAILOVER_KEY are among the columns.
  [[nodiscard]] bool has_key_columns() const;
  /// Whether it is unique on exactly these two columns.
  [[nodiscard]] bool is_key() const;
};

struct table_facts {
  /// With prefix and qualifiers.
  std::string name;
  bool exists = false;
  /// MySQL: the storage engine. PostgreSQL: `unlogged`, `temporary` or empty. `no table` for a
  /// view.
  std::string storage{};
  std::vector<column_facts> columns{};
  std::vector<index_facts> indexes{};
};

struct server_setting {
  std::string name;
  std::string value;
  /// Where the value was set, as PostgreSQL names it; empty on other servers.
  std::string source{};
};

struct server_facts {
  sql::dialect_id dialect = sql::dialect_id::unknown;
  std::string version{};
  /// The user as GRANT expects it.
  std::string user{};
  /// The name of the database. SQLite: the file.
  std::string database{};
  std::vector<server_setting> settings{};

  /// Returns the setting, or null.
  [[nodiscard]] const server_setting* find(std::string_view name) const noexcept;
};

}  // namespace HOLDFAST_NAMESPACE::detail::store
