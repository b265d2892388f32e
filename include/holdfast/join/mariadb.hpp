#pragma once

/// \file
/// Opt-in, header-only: joins a transaction on a MariaDB or MySQL connection of the caller's. Needs <mysql.h> (libmariadb's, or
/// libmysqlclient's), and the caller links that library.

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

/// The transaction that is open on `handle`, begun by START TRANSACTION or by the first statement where autocommit is off. Moments are
/// sent and read as UTC. The character set of the handle has to be utf8mb4, as mysql_character_set_name tells it (so do not use SET NAMES);
/// else every statement is refused with errc::invalid_argument, since texts would be kept as other texts.
/// Thread-safety and lifetime as join::transaction.
class mariadb final : public transaction {
 public:
  explicit mariadb(MYSQL* handle) noexcept : handle_(handle) {}

  [[nodiscard]] sql::dialect_id dialect() const override {
    const char* version = mysql_get_server_info(handle_);
    return version != nullptr && std::strstr(version, "MariaDB") != nullptr ? sql::dialect_id::mariadb : sql::dialect_id::mysql;
  }

  sql::outcome execute(const sql::statement& s, std::span<const sql::parameter> parameters) override {
    check_parameters(s, parameters);
    if ((handle_->server_status & SERVER_STATUS_IN_TRANS) == 0 && (handle_->server_status & SERVER_STATUS_AUTOCOMMIT) != 0)
      throw no_transaction();
    const char* charset = mysql_character_set_name(handle_);
    if (charset == nullptr || std::strcmp(charset, "utf8mb4") != 0) {
      throw error(errc::invalid_argument, "the character set of the connection is " +
                                              std::string(charset != nullptr ? charset : "unknown") +
                                              ", not utf8mb4: call mysql_set_character_set(handle, \"utf8mb4\") after connecting");
    }
    const std::unique_ptr<MYSQL_STMT, closing> prepared(mysql_stmt_init(handle_));
    if (!prepared) throw mysql_failure(mysql_errno(handle_), mysql_sqlstate(handle_), mysql_error(handle_));
    if (mysql_stmt_prepare(prepared.get(), s.text.data(), static_cast<unsigned long>(s.text.size())) != 0) fail(*prepared);
    if (mysql_stmt_param_count(prepared.get()) != parameters.size())
      throw error(errc::invalid_argument, "the statement has other parameters than it declares");
    std::vector<scalar> scalars(parameters.size());
    std::vector<MYSQL_BIND> binds(parameters.size());
    for (std::size_t i = 0; i < parameters.size(); ++i) bind(binds[i], scalars[i], parameters[i]);
    if (!binds.empty() && mysql_stmt_bind_param(prepared.get(), binds.data()) != 0) fail(*prepared);
    if (mysql_stmt_execute(prepared.get()) != 0) fail(*prepared);
    sql::outcome result{.rows = sql::rows(s.results.size())};
    if (mysql_stmt_field_count(prepared.get()) == 0) result.affected = mysql_stmt_affected_rows(prepared.get());
    else read_all(*prepared, s.results, result.rows);
    return result;
  }

 private:
  struct closing {
    void operator()(MYSQL_STMT* s) const noexcept { mysql_stmt_close(s); }
  };
  /// my_bool, where the library has it; bool where it is MySQL's own.
  using flag = std::remove_pointer_t<decltype(MYSQL_BIND::is_null)>;
  struct scalar {
    long long number = 0;
    MYSQL_TIME moment{};
    flag null = 0;
    flag cut = 0;
    unsigned long length = 0;
  };

  [[noreturn]] static void fail(MYSQL_STMT& s) { throw mysql_failure(mysql_stmt_errno(&s), mysql_stmt_sqlstate(&s), mysql_stmt_error(&s)); }

  static void bind(MYSQL_BIND& to, scalar& kept, const sql::parameter& given) {
    // The library only reads what it is given; its declaration is older than const.
    const auto point = [&](enum_field_types type, const void* data, std::size_t size) {
      to.buffer_type = type;
      to.buffer = const_cast<void*>(data != nullptr ? data : "");
      to.buffer_length = static_cast<unsigned long>(size);
    };
    if (const auto* number = std::get_if<std::int64_t>(&given)) {
      kept.number = *number;
      point(MYSQL_TYPE_LONGLONG, &kept.number, sizeof kept.number);
    } else if (const auto* text = std::get_if<std::string_view>(&given)) {
      point(MYSQL_TYPE_STRING, text->data(), text->size());
    } else if (const auto* bytes = std::get_if<std::span<const std::byte>>(&given)) {
      point(MYSQL_TYPE_BLOB, bytes->data(), bytes->size());
    } else if (const auto* moment = std::get_if<timestamp>(&given)) {
      kept.moment = date_of(*moment);
      point(MYSQL_TYPE_DATETIME, &kept.moment, sizeof kept.moment);
    } else {
      to.buffer_type = MYSQL_TYPE_NULL;
    }
  }

  [[nodiscard]] static MYSQL_TIME date_of(timestamp moment) {
    const auto day = std::chrono::floor<std::chrono::days>(moment);
    const std::chrono::year_month_day date(day);
    const std::chrono::hh_mm_ss time(moment - day);
    if (date.year() < std::chrono::year(0) || date.year() > std::chrono::year(9999))
      throw error(errc::out_of_range, "the time is outside the years 0 to 9999, which a DATETIME can hold");
    MYSQL_TIME made{};
    made.year = static_cast<unsigned>(static_cast<int>(date.year()));
    made.month = static_cast<unsigned>(date.month());
    made.day = static_cast<unsigned>(date.day());
    made.hour = static_cast<unsigned>(time.hours().count());
    made.minute = static_cast<unsigned>(time.minutes().count());
    made.second = static_cast<unsigned>(time.seconds().count());
    made.second_part = static_cast<unsigned long>(time.subseconds().count());
    made.time_type = MYSQL_TIMESTAMP_DATETIME;
    return made;
  }

  [[nodiscard]] static sql::value moment_of(const MYSQL_TIME& date) {
    const std::chrono::year_month_day day(std::chrono::year(static_cast<int>(date.year)), std::chrono::month(date.month),
                                          std::chrono::day(date.day));
    if (!day.ok()) return {};
    return timestamp(std::chrono::sys_days(day)) + std::chrono::hours(date.hour) + std::chrono::minutes(date.minute) +
           std::chrono::seconds(date.second) + std::chrono::microseconds(date.second_part);
  }

  static void read_all(MYSQL_STMT& from, std::span<const sql::type> wanted, sql::rows& into) {
    if (wanted.empty()) return;  // closing the statement drops the rows
    if (mysql_stmt_field_count(&from) != wanted.size())
      throw error(errc::invalid_argument, "the statement returns other columns than it declares");
    std::vector<scalar> scalars(wanted.size());
    std::vector<MYSQL_BIND> binds(wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      binds[i].is_null = &scalars[i].null;
      binds[i].error = &scalars[i].cut;
      binds[i].length = &scalars[i].length;
      if (wanted[i] == sql::type::integer) {
        binds[i].buffer_type = MYSQL_TYPE_LONGLONG;
        binds[i].buffer = &scalars[i].number;
      } else if (wanted[i] == sql::type::time) {
        binds[i].buffer_type = MYSQL_TYPE_DATETIME;
        binds[i].buffer = &scalars[i].moment;
        binds[i].buffer_length = sizeof(MYSQL_TIME);
      } else {
        binds[i].buffer_type = MYSQL_TYPE_BLOB;  // without room: fetched when its length is known
      }
    }
    if (mysql_stmt_bind_result(&from, binds.data()) != 0 || mysql_stmt_store_result(&from) != 0) fail(from);
    for (int state = mysql_stmt_fetch(&from); state != MYSQL_NO_DATA; state = mysql_stmt_fetch(&from)) {
      if (state != 0 && state != MYSQL_DATA_TRUNCATED) fail(from);
      for (unsigned i = 0; i < wanted.size(); ++i) into.add(read(from, i, wanted[i], scalars[i]));
    }
  }

  [[nodiscard]] static sql::value read(MYSQL_STMT& from, unsigned column, sql::type wanted, const scalar& held) {
    if (held.null != 0) return {};
    if (wanted == sql::type::integer) return std::int64_t{held.number};
    if (wanted == sql::type::time) return moment_of(held.moment);
    std::string text(held.length, '\0');
    if (text.empty()) return text;
    scalar whole_of;
    MYSQL_BIND whole{};
    whole.buffer_type = MYSQL_TYPE_BLOB;
    whole.buffer = text.data();
    whole.buffer_length = static_cast<unsigned long>(text.size());
    whole.length = &whole_of.length;
    whole.is_null = &whole_of.null;
    whole.error = &whole_of.cut;
    if (mysql_stmt_fetch_column(&from, &whole, column, 0) != 0) fail(from);
    return text;
  }

  MYSQL* handle_;
};

}  // namespace HOLDFAST_NAMESPACE::join
