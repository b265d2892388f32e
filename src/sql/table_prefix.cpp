#include "sql/table_prefix.hpp"

#include <holdfast/error.hpp>

#include <string>

namespace HOLDFAST_NAMESPACE::sql {

void check_table_prefix(std::string_view prefix) {
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; };
  const auto fail = [](const std::string& why) { throw error(errc::invalid_argument, why, {.path = "prefix"}); };
  if (prefix.size() > 100) fail("the table prefix is longer than 100 characters");
  bool empty_part = true;
  for (const char c : prefix) {
    if (c == '.') {
      if (empty_part) fail("the table prefix has an empty qualifier; write it like SCHEMA.MYAPP_");
      empty_part = true;
    } else {
      if (!plain(c)) fail("the table prefix may only contain letters, digits, underscores and dots between qualifiers");
      empty_part = false;
    }
  }
}

}  // namespace HOLDFAST_NAMESPACE::sql
