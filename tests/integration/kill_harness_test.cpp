// The harness that kills, and the ledger that remembers.

#include "support/kill_harness.hpp"

#include "support/ledger.hpp"
#include "support/temporary_directory.hpp"
#include "support/worker.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <set>
#include <string>
#include <thread>

namespace {

using namespace holdfast::test;
using namespace std::chrono_literals;

struct entry {
  std::int64_t worker = 0;
  std::int64_t generation = 0;
  std::int64_t number = 0;

  friend auto operator<=>(const entry&, const entry&) = default;
};

TEST(Ledger, GivesBackWhatWasAdded) {
  const temporary_directory place;
  ledger<entry> book(place.path() / "ledger");
  EXPECT_TRUE(book.read().empty());
  book.add({1, 2, 3});
  ledger<entry> other(place.path() / "ledger");
  other.add({4, 5, 6});
  EXPECT_EQ(book.read(), (std::vector<entry>{{1, 2, 3}, {4, 5, 6}}));
}

TEST(Ledger, LeavesOutATornRecordAndOnlyThat) {
  const temporary_directory place;
  const auto path = place.path() / "ledger";
  ledger<entry> book(path);
  book.add({1, 1, 1});
  const auto whole = std::filesystem::file_size(path);
  book.add({2, 2, 2});
  for (auto size = whole; size < 2 * whole; ++size) {
    std::filesystem::resize_file(path, size);
    EXPECT_EQ(book.read(), (std::vector<entry>{{1, 1, 1}})) << size;
  }
  book.add({3, 3, 3});
  EXPECT_EQ(book.read(), (std::vector<entry>{{1, 1, 1}, {3, 3, 3}}));
}

// A "database" that is another ledger: it stores a number, then acknowledges it. Or, for a test
// that must go red, the other way round.
HOLDFAST_WORKER(storer) {
  ledger<entry> database(arguments.at(0));
  ledger<entry> acknowledged(arguments.at(1));
  const bool honest = arguments.at(2) == "honest";
  worker_is_alive();
  for (entry next{std::stoll(arguments.at(3)), std::stoll(arguments.at(4)), 0};
       !worker_should_stop(); ++next.number) {
    if (honest) database.add(next);
    acknowledged.add(next);
    std::this_thread::sleep_for(20us);
    if (!honest) database.add(next);
  }
  return 0;
}

// Acknowledged and not stored.
std::size_t lost(const std::string& how, kill_report& report) {
  const temporary_directory place("kills", "", medium::memory);
  const auto database = place.path() / "database";
  const auto acknowledged = place.path() / "acknowledged";
  kill_harness harness({.workers = 2, .kills = 40, .longest = 5ms, .log = place.path() / "log"});
  report = harness.run("storer", [&](std::size_t worker, std::size_t generation) {
    return std::vector<std::string>{database, acknowledged, how, std::to_string(worker),
                                    std::to_string(generation)};
  });
  const auto stored = ledger<entry>(database).read();
  const std::set<entry> there(stored.begin(), stored.end());
  std::size_t missing = 0;
  const auto all = ledger<entry>(acknowledged).read();
  EXPECT_GT(all.size(), 40U);
  for (const auto& one : all) missing += there.contains(one) ? 0U : 1U;
  return missing;
}

TEST(KillHarness, FindsNothingMissingFromAnHonestStore) {
  kill_report report;
  EXPECT_EQ(lost("honest", report), 0U);
  EXPECT_EQ(report.killed, 40U);
  EXPECT_GE(report.started, 42U);
  EXPECT_TRUE(report.failures.empty()) << report.failures.front();
}

TEST(KillHarness, FindsWhatWasAcknowledgedTooEarly) {
  kill_report report;
  EXPECT_GT(lost("dishonest", report), 0U);
}

HOLDFAST_WORKER(failing) {
  worker_is_alive();
  return 7;
}

TEST(KillHarness, ReportsAWorkerThatFails) {
  const auto report =
      kill_harness({.shortest = 20s, .longest = 20s}).run("failing", std::vector<std::string>{});
  ASSERT_EQ(report.failures.size(), 1U);
  EXPECT_NE(report.failures.front().find("exit code 7"), std::string::npos)
      << report.failures.front();
}

TEST(KillHarness, ReportsAWorkerThatDoesNotExist) {
  const auto report = kill_harness({.kills = 5}).run("nobody", std::vector<std::string>{});
  EXPECT_EQ(report.failures.size(), 1U);
}

}  // namespace
