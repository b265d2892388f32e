#pragma once

/// \file
/// Joins a transaction on a MariaDB or MySQL connection of the application. Header-only: needs
/// <mysql.h> of libmariadb or libmysqlclient, and the application links that library.

#include <holdfast/join/transaction.hpp>
#include <holdfast/sql.hpp>
#include <holdfast/version.hpp>

#include <mysql.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

namespace HOLDFAST_NAMESPACE::join {

/// The transaction that is open on `handle`: begun by START TRANSACTION, or by the first statement
/// if autocommit is off. Times are sent and read as UTC.
///
/// The character set of the handle must be utf8mb4: with another one the server would store
/// different text. Statements are refused with errc::invalid_argument otherwise. Set it with
/// mysql_set_character_set, not with SET NAMES, which the client library does not notice.
/// Thread-safety and lifetime: see join::transaction.
class mariadb final : public transaction {
 public:
  explicit mariadb(MYSQL* handle) noexcept : handle_(handle) {}

  [[nodiscard]] sql::dialect_id dialect() const override {
    const char* version = mysql_get_server_info(handle_);
    return version != nullptr && std::strstr(version, "MariaDB") != nullptr
               ? sql::dialect_id::mariadb
               : sql::dialect_id::mysql;
  }

  sql::outcome execute(const sql::statement& s,
                       std::span<const sql::parameter> parameters) override {
    check_parameters(s, parameters);
    check_connection();
    const std::unique_ptr<MYSQL_STMT, close_statement> prepared(mysql_stmt_init(handle_));
    if (!prepared)
      throw mysql_failure(mysql_errno(handle_), mysql_sqlstate(handle_), mysql_error(handle_));
    if (mysql_stmt_prepare(prepared.get(), s.text.data(),
                           static_cast<unsigned long>(s.text.size())) != 0)
      fail(*prepared);
    if (mysql_stmt_param_count(prepared.get()) != parameters.size())
      throw error(errc::invalid_argument, "the statement has other parameters than it declares");
    std::vector<scalar> scalars(parameters.size());
    std::vector<MYSQL_BIND> binds(parameters.size());
    for (std::size_t i = 0; i < parameters.size(); ++i) bind(binds[i], scalars[i], parameters[i]);
    if (!binds.empty() && mysql_stmt_bind_param(prepared.get(), binds.data()) != 0) fail(*prepared);
    if (mysql_stmt_execute(prepared.get()) != 0) fail(*prepared);
    sql::outcome result{.rows = sql::rows(s.results.size())};
    if (mysql_stmt_field_count(prepared.get()) == 0)
      result.affected = mysql_stmt_affected_rows(prepared.get());
    else read_all(*prepared, s.results, result.rows);
    return result;
  }

 private:
  struct close_statement {
    void operator()(MYSQL_STMT* s) const noexcept { mysql_stmt_close(s); }
  };
  /// my_bool in libmariadb, bool in libmysqlclient.
  using flag = std::remove_pointer_t<decltype(MYSQL_BIND::is_null)>;
  /// Memory that a MYSQL_BIND points to.
  struct scalar {
    long long number = 0;
    MYSQL_TIME date{};
    flag null = 0;
    flag truncated = 0;
    unsigned long length = 0;
  };

  [[noreturn]] static void fail(MYSQL_STMT& s) {
    throw mysql_failure(mysql_stmt_errno(&s), mysql_stmt_sqlstate(&s), mysql_stmt_error(&s));
  }

  void check_connection() const {
    if ((handle_->server_status & SERVER_STATUS_IN_TRANS) == 0 &&
        (handle_->server_status & SERVER_STATUS_AUTOCOMMIT) != 0)
      throw no_transaction();
    const char* charset = mysql_character_set_name(handle_);
    if (charset == nullptr || std::strcmp(charset, "utf8mb4") != 0) {
      throw error(
          errc::invalid_argument,
          "the character set of the connection is " +
              std::string(charset != nullptr ? charset : "unknown") +
              ", not utf8mb4: call mysql_set_character_set(handle, \"utf8mb4\") after connecting");
    }
  }

  static void bind(MYSQL_BIND& bind, scalar& memory, const sql::parameter& value) {
    // The library only reads the buffer of a parameter, although it is declared without const.
    const auto set = [&](enum_field_types type, const void* data, std::size_t size) {
      bind.buffer_type = type;
      bind.buffer = const_cast<void*>(data != nullptr ? data : "");
      bind.buffer_length = static_cast<unsigned long>(size);
    };
    if (const auto* number = std::get_if<std::int64_t>(&value)) {
      memory.number = *number;
      set(MYSQL_TYPE_LONGLONG, &memory.number, sizeof memory.number);
    } else if (const auto* text = std::get_if<std::string_view>(&value)) {
      set(MYSQL_TYPE_STRING, text->data(), text->size());
    } else if (const auto* bytes = std::get_if<std::span<const std::byte>>(&value)) {
      set(MYSQL_TYPE_BLOB, bytes->data(), bytes->size());
    } else if (const auto* time = std::get_if<timestamp>(&value)) {
      memory.date = to_date(*time);
      set(MYSQL_TYPE_DATETIME, &memory.date, sizeof memory.date);
    } else {
      bind.buffer_type = MYSQL_TYPE_NULL;
    }
  }

  [[nodiscard]] static MYSQL_TIME to_date(timestamp time) {
    const auto day = std::chrono::floor<std::chrono::days>(time);
    const std::chrono::year_month_day ymd(day);
    const std::chrono::hh_mm_ss hms(time - day);
    if (ymd.year() < std::chrono::year(0) || ymd.year() > std::chrono::year(9999))
      throw error(errc::out_of_range,
                  "the time is outside the years 0 to 9999, which a DATETIME can hold");
    MYSQL_TIME date{};
    date.year = static_cast<unsigned>(static_cast<int>(ymd.year()));
    date.month = static_cast<unsigned>(ymd.month());
    date.day = static_cast<unsigned>(ymd.day());
    date.hour = static_cast<unsigned>(hms.hours().count());
    date.minute = static_cast<unsigned>(hms.minutes().count());
    date.second = static_cast<unsigned>(hms.seconds().count());
    date.second_part = static_cast<unsigned long>(hms.subseconds().count());
    date.time_type = MYSQL_TIMESTAMP_DATETIME;
    return date;
  }

  [[nodiscard]] static sql::value to_timestamp(const MYSQL_TIME& date) {
    const std::chrono::year_month_day day(std::chrono::year(static_cast<int>(date.year)),
                                          std::chrono::month(date.month),
                                          std::chrono::day(date.day));
    if (!day.ok()) return {};
    return timestamp(std::chrono::sys_days(day)) + std::chrono::hours(date.hour) +
           std::chrono::minutes(date.minute) + std::chrono::seconds(date.second) +
           std::chrono::microseconds(date.second_part);
  }

  static void read_all(MYSQL_STMT& executed, std::span<const sql::type> types, sql::rows& rows) {
    if (types.empty()) return;  // closing the statement discards the rows
    if (mysql_stmt_field_count(&executed) != types.size())
      throw error(errc::invalid_argument, "the statement returns other columns than it declares");
    std::vector<scalar> scalars(types.size());
    std::vector<MYSQL_BIND> binds(types.size());
    for (std::size_t i = 0; i < types.size(); ++i) {
      binds[i].is_null = &scalars[i].null;
      binds[i].error = &scalars[i].truncated;
      binds[i].length = &scalars[i].length;
      if (types[i] == sql::type::integer) {
        binds[i].buffer_type = MYSQL_TYPE_LONGLONG;
        binds[i].buffer = &scalars[i].number;
      } else if (types[i] == sql::type::time) {
        binds[i].buffer_type = MYSQL_TYPE_DATETIME;
        binds[i].buffer = &scalars[i].date;
        binds[i].buffer_length = sizeof(MYSQL_TIME);
      } else {
        // No buffer yet: the fetch reports the length, and read() fetches the value.
        binds[i].buffer_type = MYSQL_TYPE_BLOB;
      }
    }
    if (mysql_stmt_bind_result(&executed, binds.data()) != 0 ||
        mysql_stmt_store_result(&executed) != 0)
      fail(executed);
    for (int status = mysql_stmt_fetch(&executed); status != MYSQL_NO_DATA;
         status = mysql_stmt_fetch(&executed)) {
      if (status != 0 && status != MYSQL_DATA_TRUNCATED) fail(executed);
      for (unsigned i = 0; i < types.size(); ++i) rows.add(read(executed, i, types[i], scalars[i]));
    }
  }

  [[nodiscard]] static sql::value read(MYSQL_STMT& executed, unsigned column, sql::type type,
                                       const scalar& fetched) {
    if (fetched.null != 0) return {};
    if (type == sql::type::integer) return std::int64_t{fetched.number};
    if (type == sql::type::time) return to_timestamp(fetched.date);
    std::string text(fetched.length, '\0');
    if (text.empty()) return text;
    scalar memory;
    MYSQL_BIND bind{};
    bind.buffer_type = MYSQL_TYPE_BLOB;
    bind.buffer = text.data();
    bind.buffer_length = static_cast<unsigned long>(text.size());
    bind.length = &memory.length;
    bind.is_null = &memory.null;
    bind.error = &memory.truncated;
    if (mysql_stmt_fetch_column(&executed, &bind, column, 0) != 0) fail(executed);
    return text;
  }

  MYSQL* handle_;
};

}  // namespace HOLDFAST_NAMESPACE::join
