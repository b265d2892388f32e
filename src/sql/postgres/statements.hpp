#pragma once

#include <holdfast/version.hpp>

#include "sql/postgres/values.hpp"
#include "sql/statement_cache.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::sql::postgres {

/// The statements that one connection has prepared on the server, and their names. This class only
/// keeps the list; the connection prepares and deallocates.
class prepared_statements {
 public:
  static constexpr std::size_t limit = 256;  ///< each costs the server about ten kilobytes

  /// The name for a statement: a hash of its text and types. A pooler may lend one server session
  /// to many clients; the same name then always means the same statement.
  [[nodiscard]] static std::string name_of(std::string_view text, std::span<const oid> types);

  /// Returns the name of a prepared statement and marks it as used, or returns null.
  [[nodiscard]] const std::string* find(std::string_view text, std::span<const oid> types);
  /// Returns the name that must be deallocated before this statement is prepared, or null: the name
  /// of the same text with other types, or the least recently used if the list is full.
  [[nodiscard]] const std::string* obstacle_to(std::string_view text) const;
  void add(std::string text, std::span<const oid> types, std::string name);
  void remove(std::string_view name);

 private:
  struct entry {
    std::vector<oid> types;
    std::string name;
  };
  statement_cache<entry> entries_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::sql::postgres
