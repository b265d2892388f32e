// Sequences behind PgBouncer in transaction mode, where a prepared statement may be executed in
// another session of the server than it was prepared in.

#include <holdfast/database.hpp>
#include <holdfast/sequence.hpp>

#include "support/failure_of.hpp"
#include "support/own_handles.hpp"
#include "support/pgbouncer.hpp"
#include "support/postgres_server.hpp"
#include "support/shared_server.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

/// The setting that sequences need: Holdfast sends options when it connects, and PgBouncer refuses
/// them by default.
const std::string ignore_options = "ignore_startup_parameters=options";

TEST(SequenceBehindPgBouncer, ManyPoolsShareAFewSessionsAndNoIdComesTwice) {
  const auto& server = shared_server<postgres_server>();
  const auto name = server.create_database("bounced");
  const pgbouncer between(server, {ignore_options, "default_pool_size=3"});
  const auto url = server.url_through(between.port(), name);
  (void)open(url).block_store({.create_schema = true})->list(1);
  std::vector<std::vector<std::int64_t>> drawn(6);
  {
    std::vector<std::jthread> threads;
    threads.reserve(drawn.size());
    for (auto& own : drawn) {
      threads.emplace_back([&] {
        auto db = open(url);
        auto first = db.sequence("first", {.blocks = fixed_blocks{3}, .wait = 1min});
        auto second = db.sequence("second", {.blocks = fixed_blocks{3}, .wait = 1min});
        for (int i = 0; i < 60; ++i) {
          own.push_back(first.next());
          // The session that runs it may have prepared another statement, or none.
          (void)second.next();
        }
        EXPECT_LE(own.back(), first.peek());
      });
    }
  }
  std::set<std::int64_t> distinct;
  for (const auto& own : drawn) distinct.insert(own.begin(), own.end());
  EXPECT_EQ(distinct.size(), 60 * drawn.size());
  EXPECT_EQ(server.run("SELECT count(DISTINCT pid) <= 3 FROM pg_stat_activity WHERE datname = '" +
                           name + "' AND usename = 'holdfast'",
                       name),
            "t\n")
      << "they did not share sessions, so nothing is proved";
}

TEST(SequenceBehindPgBouncer, TransactionsOfTheCallerLeaveNoGaps) {
  const auto& server = shared_server<postgres_server>();
  const pgbouncer between(server, {ignore_options, "default_pool_size=2"});
  const auto url = server.url_through(between.port(), server.create_database("bounced"));
  auto ids = open(url).sequence("invoice", {.store = {.create_schema = true}});
  postgres_handle own(url);
  auto joined = own.joined();
  for (int i = 1; i <= 6; ++i) {
    own.run("BEGIN");
    EXPECT_EQ(ids.next_in_transaction(joined), (i + 1) / 2);
    own.run(i % 2 == 0 ? "COMMIT" : "ROLLBACK");
  }
}

TEST(SequenceBehindPgBouncer, WithoutTheSettingASequenceIsRefusedWithItsName) {
  const auto& server = shared_server<postgres_server>();
  const pgbouncer between(server);
  const auto refused =
      failure_of([&] { (void)open(server.url_through(between.port())).sequence("n").next(); });
  EXPECT_FALSE(refused.transient()) << "a retry cannot help";
  EXPECT_NE(std::string(refused.what()).find("ignore_startup_parameters = options"),
            std::string::npos)
      << refused.what();
  EXPECT_EQ(std::string(refused.what()).find('\n'), std::string::npos) << refused.what();
}

}  // namespace
}  // namespace holdfast::test
