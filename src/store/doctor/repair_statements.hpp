#pragma once

#include <holdfast/store.hpp>

#include "store/doctor/database_facts.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::store {

/// The statements that repair a table. Column definitions are taken from entries_schema, so that
/// they exist only once. Every function returns nothing if SQL cannot repair the problem.
class repair_statements {
 public:
  /// Refers to both facts, which must outlive it.
  repair_statements(const table_facts& table, const server_facts& server, const std::string& prefix,
                    const store_options& options);

  [[nodiscard]] std::vector<std::string> create_table() const { return schema_; }
  [[nodiscard]] std::vector<std::string> create_index() const;
  /// Existing rows become expired entries with the oldest possible version.
  [[nodiscard]] std::vector<std::string> add_column(std::string_view name) const;
  /// Changes type, length, collation and nullability to those of the schema.
  [[nodiscard]] std::vector<std::string> change_column(const column_facts& column) const;
  /// Makes a column nullable that the store does not know.
  [[nodiscard]] std::vector<std::string> allow_null(const column_facts& column) const;
  /// Adds the primary key. Keeps the newest row of every key.
  [[nodiscard]] std::vector<std::string> add_key() const;
  /// Replaces a unique index on other columns by the key.
  [[nodiscard]] std::vector<std::string> replace_key(const index_facts& wrong_index) const;
  [[nodiscard]] std::vector<std::string> change_storage() const;
  [[nodiscard]] std::vector<std::string> grant() const;

 private:
  [[nodiscard]] std::string definition_of(std::string_view column) const;
  [[nodiscard]] std::vector<std::string> rebuild() const;
  [[nodiscard]] std::string alter() const { return "ALTER TABLE " + table_.name + " "; }

  const table_facts& table_;
  const server_facts& server_;
  std::vector<std::string> schema_;
};

}  // namespace HOLDFAST_NAMESPACE::detail::store
