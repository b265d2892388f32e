#pragma once

#include "store/probe_facts.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::probing {

/// The statements that mend a table, in the words of its dialect. What a column should be is read off the schema, so that there is one
/// place that says it. Every function returns nothing where SQL cannot help.
class cures {
 public:
  cures(const table& of, const server& on, const std::string& prefix, const store_options& options);

  [[nodiscard]] std::vector<std::string> create_table() const { return schema_; }
  [[nodiscard]] std::vector<std::string> create_index() const;
  /// Existing rows become the oldest possible, expired entries.
  [[nodiscard]] std::vector<std::string> add_column(std::string_view name) const;
  /// Makes a column what the schema says: type, length, collation, NULL or not.
  [[nodiscard]] std::vector<std::string> change_column(const column& is) const;
  /// A column of somebody else's that wants a value may be NULL.
  [[nodiscard]] std::vector<std::string> allow_null(const column& is) const;
  /// Keeps of every key the newest row.
  [[nodiscard]] std::vector<std::string> add_key() const;
  [[nodiscard]] std::vector<std::string> replace_key(const index& in_the_way) const;
  [[nodiscard]] std::vector<std::string> change_storage() const;
  [[nodiscard]] std::vector<std::string> grant() const;

 private:
  [[nodiscard]] std::string definition_of(std::string_view column) const;
  [[nodiscard]] std::vector<std::string> rebuild() const;
  [[nodiscard]] std::string alter() const { return "ALTER TABLE " + table_.name + " "; }

  const table& table_;
  const server& server_;
  std::vector<std::string> schema_;
};

}  // namespace HOLDFAST_NAMESPACE::probing
