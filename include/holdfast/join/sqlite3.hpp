#pragma once

/// \file
/// Opt-in, header-only: joins a transaction on an SQLite handle of the caller's. Needs <sqlite3.h>, and the caller links SQLite.

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

/// The transaction that is open on `handle`. Begin it with BEGIN IMMEDIATE: one that starts by reading cannot write any more when another
/// connection wrote meanwhile. Thread-safety and lifetime as join::transaction.
class sqlite final : public transaction {
 public:
  explicit sqlite(::sqlite3* handle) noexcept : handle_(handle) {}

  [[nodiscard]] sql::dialect_id dialect() const override { return sql::dialect_id::sqlite; }

  sql::outcome execute(const sql::statement& s, std::span<const sql::parameter> parameters) override {
    check_parameters(s, parameters);
    if (sqlite3_get_autocommit(handle_) != 0) throw no_transaction();
    ::sqlite3_stmt* made = nullptr;
    if (const int done = sqlite3_prepare_v2(handle_, s.text.data(), static_cast<int>(s.text.size()), &made, nullptr); done != SQLITE_OK)
      fail(done);
    const std::unique_ptr<::sqlite3_stmt, int (*)(::sqlite3_stmt*)> prepared(made, &sqlite3_finalize);
    for (std::size_t i = 0; i < parameters.size(); ++i) bind(made, static_cast<int>(i) + 1, parameters[i]);
    sql::outcome result{.rows = sql::rows(s.results.size())};
    const auto before = sqlite3_total_changes(handle_);
    for (int done = sqlite3_step(made); done != SQLITE_DONE; done = sqlite3_step(made)) {
      if (done != SQLITE_ROW) fail(done);
      for (std::size_t i = 0; i < s.results.size(); ++i) result.rows.add(read(made, static_cast<int>(i), s.results[i]));
    }
    result.affected = static_cast<std::uint64_t>(sqlite3_total_changes(handle_) - before);
    return result;
  }

 private:
  [[noreturn]] void fail(int code) const {
    const int extended = sqlite3_extended_errcode(handle_);
    throw sqlite_failure((extended & 0xFF) == (code & 0xFF) ? extended : code, sqlite3_errmsg(handle_));
  }

  /// The caller's memory outlives the statement, so nothing is copied.
  void bind(::sqlite3_stmt* to, int at, const sql::parameter& given) const {
    int done = SQLITE_OK;
    if (const auto* number = std::get_if<std::int64_t>(&given)) {
      done = sqlite3_bind_int64(to, at, *number);
    } else if (const auto* text = std::get_if<std::string_view>(&given)) {
      done = sqlite3_bind_text64(to, at, text->data() != nullptr ? text->data() : "", text->size(), SQLITE_STATIC, SQLITE_UTF8);
    } else if (const auto* bytes = std::get_if<std::span<const std::byte>>(&given)) {
      done = bytes->empty() ? sqlite3_bind_zeroblob(to, at, 0) : sqlite3_bind_blob64(to, at, bytes->data(), bytes->size(), SQLITE_STATIC);
    } else if (const auto* moment = std::get_if<timestamp>(&given)) {
      done = sqlite3_bind_int64(to, at, moment->time_since_epoch().count());
    } else {
      done = sqlite3_bind_null(to, at);
    }
    if (done != SQLITE_OK) fail(done);
  }

  [[nodiscard]] static sql::value read(::sqlite3_stmt* from, int at, sql::type wanted) {
    const int held = sqlite3_column_type(from, at);
    if (held == SQLITE_NULL) return {};
    if (wanted == sql::type::integer || wanted == sql::type::time) {
      if (held != SQLITE_INTEGER) return {};
      const std::int64_t number = sqlite3_column_int64(from, at);
      if (wanted == sql::type::integer) return number;
      return timestamp(std::chrono::microseconds(number));
    }
    const auto* data = static_cast<const char*>(sqlite3_column_blob(from, at));
    const auto size = static_cast<std::size_t>(sqlite3_column_bytes(from, at));
    return data == nullptr ? std::string() : std::string(data, size);
  }

  ::sqlite3* handle_;
};

}  // namespace HOLDFAST_NAMESPACE::join
