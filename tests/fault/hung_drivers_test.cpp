// Calls of the H2 and ODBC drivers end in time although the server hangs (SIGSTOP).

#include <holdfast/database.hpp>

#include "sql/h2/connection.hpp"
#include "sql/odbc/call_thread.hpp"
#include "sql/odbc/connection.hpp"
#include "support/eventually.hpp"
#include "support/h2_server.hpp"
#include "support/mariadb_server.hpp"
#include "support/odbc_drivers.hpp"
#include "support/postgres_server.hpp"
#include "support/tds_server.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

constexpr auto limit = 300ms;
/// The drivers count in seconds: what they did would come later.
constexpr auto latest = 950ms;
/// For a server that does not hang, on a busy machine.
constexpr auto long_limit = 30s;

template <class Action>
steady::duration time_of(Action action) {
  const auto start = steady::now();
  EXPECT_THROW(action(), error);
  return steady::now() - start;
}

/// Connects with a limit for the connection and its statements.
using connector = std::function<std::unique_ptr<sql::connection>(std::chrono::milliseconds)>;

/// Checks the fastest of several calls, because the machine may be busy.
void expect_calls_end_in_time(server_control& server, const connector& connect) {
  const sql::statement select{.text = "SELECT 1", .results = {sql::type::integer}};
  std::vector<std::unique_ptr<sql::connection>> connections;
  for (int i = 0; i < 3; ++i) {
    connections.push_back(connect(long_limit));
    ASSERT_EQ(connections.back()->execute(select, {}).rows.size(), 1U);
    connections.back()->limit(limit);
  }
  server.pause();
  auto fastest = steady::duration::max();
  for (const auto& connection : connections) {
    fastest = std::min(fastest, time_of([&] { (void)connection->execute(select, {}); }));
    EXPECT_TRUE(connection->broken());
  }
  EXPECT_LT(fastest, latest) << "a call";
  EXPECT_GE(fastest, limit - 50ms);
  fastest =
      std::min(time_of([&] { (void)connect(limit); }), time_of([&] { (void)connect(limit); }));
  EXPECT_LT(fastest, latest) << "connecting";
  const auto start = steady::now();
  connections.clear();
  EXPECT_LT(steady::now() - start, 20s) << "closing does not wait";
  server.resume();
  EXPECT_TRUE(eventually([] { return detail::sql::odbc::call_thread::hanging() == 0; }))
      << "abandoned calls end when the server continues";
  EXPECT_EQ(connect(long_limit)->execute(select, {}).rows.size(), 1U);
}

connector odbc(const std::string& url) {
  return [url](std::chrono::milliseconds timeout) {
    return detail::sql::connect_odbc({.connection_string = url.substr(5),
                                      .connect_timeout = timeout,
                                      .statement_timeout = timeout});
  };
}

TEST(HungServer, H2) {
  h2_server server;
  expect_calls_end_in_time(server, [&](std::chrono::milliseconds timeout) {
    return detail::sql::connect_h2({.port = server.port(),
                                    .database = "hung",
                                    .user = "holdfast",
                                    .password = "secret",
                                    .connect_timeout = timeout,
                                    .statement_timeout = timeout});
  });
}

TEST(HungServer, PsqlOdbc) {
  postgres_server server;
  expect_calls_end_in_time(server, odbc(odbc_postgres(server.port(), "holdfast")));
}

TEST(HungServer, MariaOdbc) {
  mariadb_server server;
  expect_calls_end_in_time(server, odbc(odbc_mariadb(server.port(), "holdfast")));
}

TEST(HungServer, TdsOdbc) {
  tds_server server;
  expect_calls_end_in_time(server, odbc(odbc_tds(server.port(), "holdfast")));
}

}  // namespace
}  // namespace holdfast::test
