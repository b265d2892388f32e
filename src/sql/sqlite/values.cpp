#include "sql/sqlite/values.hpp"

#include <sqlite3.h>

#include <chrono>
#include <string>

namespace HOLDFAST_NAMESPACE::detail::sql::sqlite {

namespace {

struct binder {
  sqlite3_stmt* statement;
  int number;

  int operator()(std::monostate) const { return sqlite3_bind_null(statement, number); }
  int operator()(std::int64_t integer) const {
    return sqlite3_bind_int64(statement, number, integer);
  }
  int operator()(std::string_view text) const {
    return sqlite3_bind_text64(statement, number, text.data() != nullptr ? text.data() : "",
                               text.size(), SQLITE_STATIC, SQLITE_UTF8);
  }
  int operator()(std::span<const std::byte> bytes) const {
    return bytes.empty()
               ? sqlite3_bind_zeroblob(statement, number, 0)
               : sqlite3_bind_blob64(statement, number, bytes.data(), bytes.size(), SQLITE_STATIC);
  }
  int operator()(timestamp time) const {
    return sqlite3_bind_int64(statement, number, time.time_since_epoch().count());
  }
};

}  // namespace

int bind_parameter(sqlite3_stmt* statement, int number, const parameter& value) {
  return std::visit(binder{statement, number}, value);
}

value read_value(sqlite3_stmt* statement, int column, type expected) {
  if (expected == type::integer || expected == type::time) {
    if (sqlite3_column_type(statement, column) != SQLITE_INTEGER) return {};
    const std::int64_t integer = sqlite3_column_int64(statement, column);
    if (expected == type::integer) return integer;
    return timestamp(std::chrono::microseconds(integer));
  }
  const auto* data = static_cast<const char*>(sqlite3_column_blob(statement, column));
  if (data != nullptr)
    return std::string(data, static_cast<std::size_t>(sqlite3_column_bytes(statement, column)));
  // NULL, or a blob without bytes.
  if (sqlite3_column_type(statement, column) == SQLITE_NULL) return {};
  return std::string();
}

}  // namespace HOLDFAST_NAMESPACE::detail::sql::sqlite
