// The end of a process whose threads still use ODBC connections. A driver destroys its mutexes when
// its library is finalised: the thread sanitizer sees a thread that uses one after that.

#include <holdfast/sql.hpp>

#include "sql/odbc/connection.hpp"
#include "support/odbc_drivers.hpp"
#include "support/postgres_server.hpp"
#include "support/shared_server.hpp"
#include "support/worker.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

constexpr std::ptrdiff_t threads = 3;

HOLDFAST_WORKER(ends_while_connections_are_closed) {
  constexpr int connections = 20;
  static std::latch ready(threads);
  static std::atomic<bool> ends{false};
  for (std::ptrdiff_t i = 0; i < threads; ++i) {
    std::thread([text = arguments.at(0)] {
      std::vector<std::unique_ptr<sql::connection>> own;
      for (int opened = 0; opened < connections; ++opened)
        own.push_back(detail::sql::connect_odbc({.connection_string = text}));
      ready.count_down();
      ends.wait(false);
      while (!own.empty()) {
        own.back()->run("SELECT 1");
        own.pop_back();
      }
    }).detach();
  }
  ready.wait();
  ends = true;
  ends.notify_all();
  return 0;
}

TEST(OdbcEnd, OfTheProcessWaitsForCallsOfTheDriver) {
  const auto& server = shared_server<postgres_server>();
  const auto url = odbc_postgres(server.port(), server.create_database("odbc_end"));
  const auto result =
      run_program(worker_options("ends_while_connections_are_closed", {url.substr(5)}));
  EXPECT_TRUE(result.status.success()) << result.status.describe() << '\n' << result.error;
}

}  // namespace
}  // namespace holdfast::test
