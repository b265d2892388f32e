#pragma once

/// \file
/// Joins a transaction on an SQLite handle of the application. Header-only: needs <sqlite3.h>, and
/// the application links SQLite.

#include <holdfast/join/transaction.hpp>
#include <holdfast/sql.hpp>
#include <holdfast/version.hpp>

#include <sqlite3.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace HOLDFAST_NAMESPACE::join {

/// The transaction that is open on `handle`. Begin it with BEGIN IMMEDIATE: a transaction that
/// starts with a read cannot write after another connection wrote. Thread-safety and lifetime: see
/// join::transaction.
class sqlite final : public transaction {
 public:
  explicit sqlite(::sqlite3* handle) noexcept : handle_(handle) {}

  [[nodiscard]] sql::dialect_id dialect() const override { return sql::dialect_id::sqlite; }

  sql::outcome execute(const sql::statement& s,
                       std::span<const sql::parameter> parameters) override {
    check_parameters(s, parameters);
    if (sqlite3_get_autocommit(handle_) != 0) throw no_transaction();
    ::sqlite3_stmt* prepared = nullptr;
    if (const int code = sqlite3_prepare_v2(handle_, s.text.data(), static_cast<int>(s.text.size()),
                                            &prepared, nullptr);
        code != SQLITE_OK)
      fail(code);
    const std::unique_ptr<::sqlite3_stmt, int (*)(::sqlite3_stmt*)> owner(prepared,
                                                                          &sqlite3_finalize);
    for (std::size_t i = 0; i < parameters.size(); ++i)
      bind(prepared, static_cast<int>(i) + 1, parameters[i]);
    sql::outcome result{.rows = sql::rows(s.results.size())};
    const auto changes_before = sqlite3_total_changes(handle_);
    for (int code = sqlite3_step(prepared); code != SQLITE_DONE; code = sqlite3_step(prepared)) {
      if (code != SQLITE_ROW) fail(code);
      for (std::size_t i = 0; i < s.results.size(); ++i)
        result.rows.add(read(prepared, static_cast<int>(i), s.results[i]));
    }
    result.affected = static_cast<std::uint64_t>(sqlite3_total_changes(handle_) - changes_before);
    return result;
  }

 private:
  [[noreturn]] void fail(int code) const {
    const int extended = sqlite3_extended_errcode(handle_);
    throw sqlite_failure((extended & 0xFF) == (code & 0xFF) ? extended : code,
                         sqlite3_errmsg(handle_));
  }

  /// SQLITE_STATIC does not copy: the caller's memory outlives the statement.
  void bind(::sqlite3_stmt* prepared, int index, const sql::parameter& value) const {
    int code = SQLITE_OK;
    if (const auto* number = std::get_if<std::int64_t>(&value)) {
      code = sqlite3_bind_int64(prepared, index, *number);
    } else if (const auto* text = std::get_if<std::string_view>(&value)) {
      code = sqlite3_bind_text64(prepared, index, text->data() != nullptr ? text->data() : "",
                                 text->size(), SQLITE_STATIC, SQLITE_UTF8);
    } else if (const auto* bytes = std::get_if<std::span<const std::byte>>(&value)) {
      code = bytes->empty() ? sqlite3_bind_zeroblob(prepared, index, 0)
                            : sqlite3_bind_blob64(prepared, index, bytes->data(), bytes->size(),
                                                  SQLITE_STATIC);
    } else if (const auto* time = std::get_if<timestamp>(&value)) {
      code = sqlite3_bind_int64(prepared, index, time->time_since_epoch().count());
    } else {
      code = sqlite3_bind_null(prepared, index);
    }
    if (code != SQLITE_OK) fail(code);
  }

  [[nodiscard]] static sql::value read(::sqlite3_stmt* prepared, int column, sql::type type) {
    const int stored = sqlite3_column_type(prepared, column);
    if (stored == SQLITE_NULL) return {};
    if (type == sql::type::integer || type == sql::type::time) {
      if (stored != SQLITE_INTEGER) return {};
      const std::int64_t number = sqlite3_column_int64(prepared, column);
      if (type == sql::type::integer) return number;
      return timestamp(std::chrono::microseconds(number));
    }
    const auto* data = static_cast<const char*>(sqlite3_column_blob(prepared, column));
    const auto size = static_cast<std::size_t>(sqlite3_column_bytes(prepared, column));
    return data == nullptr ? std::string() : std::string(data, size);
  }

  ::sqlite3* handle_;
};

}  // namespace HOLDFAST_NAMESPACE::join
