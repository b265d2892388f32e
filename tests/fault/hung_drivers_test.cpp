// A server that hangs (SIGSTOP) ends every driver's call in time: H2, and whatever an ODBC driver does about it.

#include <holdfast/database.hpp>

#include "sql/h2_connection.hpp"
#include "sql/odbc_connection.hpp"
#include "sql/odbc_thread.hpp"
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

constexpr auto limit = 500ms;
/// With a server that is well, on a machine that is busy.
constexpr auto patience = 30s;

template <class Action>
steady::duration time_of(Action action) {
  const auto start = steady::now();
  EXPECT_THROW(action(), error);
  return steady::now() - start;
}

/// Connects within a limit, which is that of its statements, too.
using connector = std::function<std::unique_ptr<sql::connection>(std::chrono::milliseconds)>;

/// Of some calls the quickest counts: this machine may be busy, the limit is not.
void ends_in_time(server_control& server, const connector& connect) {
  const sql::statement ask{.text = "SELECT 1", .results = {sql::type::integer}};
  std::vector<std::unique_ptr<sql::connection>> before;
  for (int i = 0; i < 3; ++i) {
    before.push_back(connect(patience));
    ASSERT_EQ(before.back()->execute(ask, {}).rows.size(), 1U);
    before.back()->limit(limit);
  }
  server.pause();
  auto quickest = steady::duration::max();
  for (const auto& each : before) {
    quickest = std::min(quickest, time_of([&] { (void)each->execute(ask, {}); }));
    EXPECT_TRUE(each->broken());
  }
  EXPECT_LT(quickest, limit + 250ms) << "a call";
  EXPECT_GE(quickest, limit - 50ms);
  quickest = std::min(time_of([&] { (void)connect(limit); }), time_of([&] { (void)connect(limit); }));
  EXPECT_LT(quickest, limit + 250ms) << "connecting";
  const auto start = steady::now();
  before.clear();
  EXPECT_LT(steady::now() - start, 5s) << "and closing waits for nobody";
  server.resume();
  EXPECT_TRUE(eventually([] { return sql::odbc::call_thread::hanging() == 0; })) << "what was left alone ends by itself";
  EXPECT_EQ(connect(patience)->execute(ask, {}).rows.size(), 1U);
}

connector odbc(const std::string& url) {
  return [url](std::chrono::milliseconds within) {
    return sql::connect_odbc({.connection_string = url.substr(5), .connect_timeout = within, .statement_timeout = within});
  };
}

TEST(HungServer, H2) {
  h2_server server;
  ends_in_time(server, [&](std::chrono::milliseconds within) {
    return sql::connect_h2({.port = server.port(),
                            .database = "hung",
                            .user = "holdfast",
                            .password = "secret",
                            .connect_timeout = within,
                            .statement_timeout = within});
  });
}

TEST(HungServer, PsqlOdbc) {
  postgres_server server;
  ends_in_time(server, odbc(odbc_postgres(server.port(), "holdfast")));
}

TEST(HungServer, MariaOdbc) {
  mariadb_server server;
  ends_in_time(server, odbc(odbc_mariadb(server.port(), "holdfast")));
}

TEST(HungServer, TdsOdbc) {
  tds_server server;
  ends_in_time(server, odbc(odbc_tds(server.port(), "holdfast")));
}

}  // namespace
}  // namespace holdfast::test
