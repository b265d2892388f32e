#pragma once

#include <holdfast/sql.hpp>

#include "terminal/command.hpp"
#include "terminal/text.hpp"

#include <string>
#include <vector>

namespace holdfast::cli {

/// Returns the SQL dialect that a value of `--dialect` names.
[[nodiscard]] inline sql::dialect_id schema_dialect(const option& dialect) {
  using sql::dialect_id;
  for (const auto id : {dialect_id::sqlite, dialect_id::postgresql, dialect_id::mysql,
                        dialect_id::mariadb, dialect_id::h2, dialect_id::sqlserver}) {
    if (dialect.text() == to_string(id)) return id;
  }
  return dialect_id::oracle;
}

/// Prints statements that create tables, as SQL or as one JSON object.
inline void print_schema(output& out, const std::vector<std::string>& statements, bool json) {
  if (json) {
    out << "{\"statements\":" << json_list(statements) << "}\n";
    return;
  }
  for (const auto& statement : statements) out << statement << ";\n";
}

}  // namespace holdfast::cli
