#pragma once

#include <holdfast/version.hpp>

#include "sql/postgres/values.hpp"
#include "sql/statement_cache.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::sql::h2 {

/// The statements that one connection has prepared, and their names. Names are reused and never
/// deallocated: H2 runs the previous statement again when it gets an unknown name.
class prepared_statements {
 public:
  static constexpr std::size_t limit = 200;

  /// Returns the name of a prepared statement and marks it as used, or returns null.
  [[nodiscard]] const std::string* find(std::string_view text,
                                        std::span<const postgres::oid> types);
  /// The name under which a statement has to be prepared: a new one, or, at the limit, that of the
  /// least recently used statement, which is forgotten.
  [[nodiscard]] std::string name_for(std::string_view text);
  const std::string& add(std::string text, std::span<const postgres::oid> types, std::string name);

 private:
  struct entry {
    std::vector<postgres::oid> types;
    std::string name;
  };
  statement_cache<entry> entries_{};
  std::uint64_t names_ = 0;  // number of names so far
};

}  // namespace HOLDFAST_NAMESPACE::detail::sql::h2
