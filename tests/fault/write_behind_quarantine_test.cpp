// A row that the server refuses in a way that no driver knows does not keep the others from being
// written: MariaDB with a payload above max_allowed_packet, through ODBC and through its own
// client. And a server that hangs does not keep a store from answering what it has in memory.

#include <holdfast/database.hpp>
#include <holdfast/store/write_behind.hpp>

#include "fault/write_storm.hpp"
#include "support/mariadb_server.hpp"
#include "support/odbc_drivers.hpp"

#include <gtest/gtest.h>

#include <mutex>
#include <string>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

enum class driver : std::uint8_t { odbc, native };

class RefusedRow : public ::testing::TestWithParam<driver> {
 protected:
  std::string url() {
    const auto name = server_.create_database("packets");
    return GetParam() == driver::odbc ? odbc_mariadb(server_.port(), name) : server_.url(name);
  }
  mariadb_server server_{{.settings = {"max_allowed_packet=1048576"}}};
};

TEST_P(RefusedRow, AboveThePacketLimitDoesNotStopTheOthers) {
  const auto below = open(url()).store({.create_schema = true});
  std::mutex mutex;
  std::vector<std::string> given_up;
  const auto store = make_write_behind(below, {.on_failed = [&](const entry& e, const error&) {
                                         const std::scoped_lock lock(mutex);
                                         given_up.push_back(e.key);
                                       }});
  const auto start = system_clock()->now();
  std::vector<entry> entries;
  for (int i = 0; i < 101; ++i)
    entries.push_back(
        make_entry("k" + std::to_string(i), start, i == 50 ? std::string(2'000'000, 'x') : "v"));
  store->put(entries);
  const auto report = store->flush(steady::now() + 60s);
  EXPECT_EQ(report.unsaved + report.in_flight, 0U);
  EXPECT_EQ(report.failed, 1U);
  EXPECT_EQ(store->numbers().written, 100U);
  EXPECT_EQ(store->numbers().quarantined, GetParam() == driver::odbc ? 1U : 0U);
  EXPECT_EQ(below->count("n"), 100U);
  EXPECT_EQ(given_up, std::vector<std::string>{"k50"});
  const auto health = store->health();
  EXPECT_TRUE(health.available);
  EXPECT_FALSE(health.healthy());
  EXPECT_NE(health.problem.find("1 operations were given up"), std::string::npos) << health.problem;
  store->put(make_entry("later", system_clock()->now(), "v"));
  EXPECT_TRUE(store->flush(steady::now() + 60s).complete());
}

INSTANTIATE_TEST_SUITE_P(odbc, RefusedRow, ::testing::Values(driver::odbc));
INSTANTIATE_TEST_SUITE_P(native, RefusedRow, ::testing::Values(driver::native));

}  // namespace
}  // namespace holdfast::test
