#pragma once

/// \file
/// Helpers for the tests of the MySQL driver.

#include <holdfast/error.hpp>

#include "sql/mysql/connection.hpp"
#include "support/eventually.hpp"
#include "support/mariadb_server.hpp"
#include "support/shared_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {

using namespace std::chrono_literals;
using namespace std::string_literals;
using detail::sql::connect_mysql;
using detail::sql::mysql_options;
using sql::connection;
using sql::parameter;
using sql::statement;
using sql::type;
using sql::value;
using testing::HasSubstr;
using testing::Not;

using steady = std::chrono::steady_clock;

inline mysql_options options_for(std::uint16_t port, const std::string& database) {
  mysql_options options;
  options.host = "127.0.0.1";
  options.port = port;
  options.user = "holdfast";
  options.password = "secret";
  options.database = database;
  return options;
}

/// Returns what the call throws. No message may contain the password.
template <class Call>
error failure(Call call) {
  try {
    call();
  } catch (const error& e) {
    EXPECT_THAT(e.what(), Not(HasSubstr("secret")));
    return e;
  }
  ADD_FAILURE() << "nothing was thrown";
  return {errc::internal, "nothing was thrown"};
}

inline void expect_kind(const error& e, errc code, bool transient, const std::string& number) {
  EXPECT_EQ(e.code(), code) << e.what();
  EXPECT_EQ(e.transient(), transient) << e.what();
  EXPECT_EQ(e.backend_code(), number) << e.what();
  EXPECT_FALSE(e.in_doubt()) << e.what();
}

inline std::vector<parameter> values(std::initializer_list<parameter> list) { return list; }

inline std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

inline std::int64_t number(connection& c, const std::string& query) {
  return std::get<std::int64_t>(
      c.execute({.text = query, .results = {type::integer}}, {}).rows.at(0, 0));
}

inline std::chrono::milliseconds since(steady::time_point begin) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(steady::now() - begin);
}

/// Waits for a connection that runs SLEEP.
inline bool sleeps(const mariadb_endpoint& server, const std::string& id) {
  return eventually([&] {
    return server.run(
               "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE = 'User sleep' "
               "AND ID = " +
               id) == "1\n";
  });
}

/// Each test has its own database on the shared server.
class MysqlConnection : public testing::Test {
 protected:
  MysqlConnection()
      : server_(shared_server<mariadb_server>()), database_(server_.create_database("mysql")) {}
  ~MysqlConnection() override { server_.drop_database(database_); }

  [[nodiscard]] mysql_options options() const { return options_for(server_.port(), database_); }
  [[nodiscard]] std::unique_ptr<connection> connect() const { return connect_mysql(options()); }
  void administer(const std::string& sql) const { server_.run(sql, database_); }
  /// Kills the connection, or with `target` QUERY its statement, from another one as soon as it is
  /// in SLEEP.
  [[nodiscard]] std::jthread kill_in_sleep(connection& c, const std::string& target = "") const {
    const auto id = std::to_string(number(c, "SELECT CONNECTION_ID()"));
    c.limit(60s);
    return std::jthread([this, id, target] {
      EXPECT_TRUE(sleeps(server_, id));
      administer("KILL " + target + " " + id);
    });
  }

  const mariadb_endpoint& server_;
  std::string database_;
};

}  // namespace holdfast::test
