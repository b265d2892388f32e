#include "sql/table_prefix.hpp"

#include <holdfast/error.hpp>

#include <string>

namespace HOLDFAST_NAMESPACE::detail::sql {

void check_table_prefix(std::string_view prefix) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  const auto fail = [](const std::string& message) {
    throw error(errc::invalid_argument, message, {.path = "prefix"});
  };
  if (prefix.size() > 100) fail("the table prefix is longer than 100 characters");
  bool qualifier_is_empty = true;
  for (const char c : prefix) {
    if (c == '.') {
      if (qualifier_is_empty)
        fail("the table prefix has an empty qualifier; write it like SCHEMA.MYAPP_");
      qualifier_is_empty = true;
    } else {
      if (!allowed(c))
        fail(
            "the table prefix may only contain letters, digits, underscores and dots between "
            "qualifiers");
      qualifier_is_empty = false;
    }
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail::sql
