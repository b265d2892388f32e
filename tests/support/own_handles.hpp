#pragma once

/// \file
/// Handles of the client libraries themselves, as an application has them: what the adaptors of
/// join/ are for. The three have the same shape.

#include <holdfast/join/libpq.hpp>
#include <holdfast/join/mariadb.hpp>
#include <holdfast/join/sqlite3.hpp>

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

namespace holdfast::test {

/// `sqlite:///path`
class sqlite_handle {
 public:
  explicit sqlite_handle(const std::string& url) {
    if (sqlite3_open(url.substr(std::string_view("sqlite://").size()).c_str(), &handle_) !=
        SQLITE_OK)
      throw std::runtime_error("sqlite3_open");
    sqlite3_busy_timeout(handle_, 30'000);
  }
  sqlite_handle(const sqlite_handle&) = delete;
  sqlite_handle& operator=(const sqlite_handle&) = delete;
  ~sqlite_handle() { sqlite3_close(handle_); }

  void run(const std::string& text) {
    if (sqlite3_exec(handle_, text.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
      throw std::runtime_error(sqlite3_errmsg(handle_));
  }
  [[nodiscard]] join::sqlite joined() const { return join::sqlite(handle_); }
  static std::string columns() {
    return "id INTEGER PRIMARY KEY, words TEXT, raw BLOB, moment INTEGER, bare TEXT";
  }
  static std::string with(std::string text) { return text; }
  static constexpr auto dialect = sql::dialect_id::sqlite;
  static constexpr const char* begin = "BEGIN IMMEDIATE";

 private:
  sqlite3* handle_ = nullptr;
};

/// `postgresql://user:password@host:port/name`
class postgres_handle {
 public:
  explicit postgres_handle(const std::string& url) : handle_(PQconnectdb(url.c_str())) {
    if (PQstatus(handle_) != CONNECTION_OK) throw std::runtime_error(PQerrorMessage(handle_));
  }
  postgres_handle(const postgres_handle&) = delete;
  postgres_handle& operator=(const postgres_handle&) = delete;
  ~postgres_handle() { PQfinish(handle_); }

  void run(const std::string& text) {
    PGresult* done = PQexec(handle_, text.c_str());
    const bool well = PQresultStatus(done) == PGRES_COMMAND_OK;
    PQclear(done);
    if (!well) throw std::runtime_error(PQerrorMessage(handle_));
  }
  [[nodiscard]] join::libpq joined() const { return join::libpq(handle_); }
  void speak(const char* encoding) { PQsetClientEncoding(handle_, encoding); }
  static constexpr const char* right_encoding = "UTF8";
  static constexpr const char* wrong_encoding = "LATIN1";
  static std::string columns() {
    return "id BIGINT PRIMARY KEY, words TEXT, raw BYTEA, moment TIMESTAMPTZ, bare TEXT";
  }
  /// Parameters are numbered.
  static std::string with(std::string text) {
    for (int next = 1; text.find('?') != std::string::npos; ++next)
      text.replace(text.find('?'), 1, "$" + std::to_string(next));
    return text;
  }
  static constexpr auto dialect = sql::dialect_id::postgresql;
  static constexpr const char* begin = "BEGIN";

 private:
  PGconn* handle_ = nullptr;
};

/// `mysql://holdfast:secret@127.0.0.1:port/name`
class mariadb_handle {
 public:
  explicit mariadb_handle(const std::string& url, unsigned long flags = 0)
      : handle_(mysql_init(nullptr)) {
    const auto colon = url.rfind(':');
    const auto slash = url.rfind('/');
    const auto port =
        static_cast<unsigned>(std::atoi(url.substr(colon + 1, slash - colon - 1).c_str()));
    if (mysql_real_connect(handle_, "127.0.0.1", "holdfast", "secret",
                           url.substr(slash + 1).c_str(), port, nullptr, flags) == nullptr)
      throw std::runtime_error(mysql_error(handle_));
    mysql_set_character_set(handle_, "utf8mb4");
  }
  mariadb_handle(const mariadb_handle&) = delete;
  mariadb_handle& operator=(const mariadb_handle&) = delete;
  ~mariadb_handle() { mysql_close(handle_); }

  void run(const std::string& text) {
    if (mysql_real_query(handle_, text.data(), text.size()) != 0)
      throw std::runtime_error(mysql_error(handle_));
  }
  [[nodiscard]] join::mariadb joined() const { return join::mariadb(handle_); }
  void speak(const char* encoding) { mysql_set_character_set(handle_, encoding); }
  static constexpr const char* right_encoding = "utf8mb4";
  static constexpr const char* wrong_encoding = "latin1";
  static std::string columns() {
    return "id BIGINT PRIMARY KEY, words LONGTEXT, raw LONGBLOB, moment DATETIME(6), bare TEXT";
  }
  static std::string with(std::string text) { return text; }
  static constexpr auto dialect = sql::dialect_id::mariadb;
  static constexpr const char* begin = "START TRANSACTION";

 private:
  MYSQL* handle_ = nullptr;
};

}  // namespace holdfast::test
