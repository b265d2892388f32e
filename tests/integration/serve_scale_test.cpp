// The questions that the console asks a database do not grow with it. They are counted where the
// database counts: virtual machine steps of SQLite, buffers of PostgreSQL, commands of Redis.
// HOLDFAST_CONSOLE_SCALE=1000000 parks a million events; the default is 33,000, which is three
// times of what one question may look at.

#include "support/outbox_api.hpp"
#include "support/postgres_server.hpp"
#include "support/redis_server.hpp"
#include "support/temporary_directory.hpp"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iomanip>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace {

using namespace holdfast;
using test::outbox_api;

constexpr std::size_t batch_size = 1'000;
/// In each lane at first. A question looks at 10,000 events, and at 10,000 of each lane to count.
constexpr std::size_t events_at_first = 11'000;

std::size_t parked_events() {
  const char* text = std::getenv("HOLDFAST_CONSOLE_SCALE");  // NOLINT(concurrency-mt-unsafe)
  return text == nullptr || *text == '\0' ? 33'000 : std::stoul(text);
}

/// What a question has cost.
struct cost {
  std::uint64_t statements = 0;
  std::uint64_t work = 0;  // in the unit of the database
  std::chrono::milliseconds time{};
};
using cost_by_question = std::map<std::string, cost>;

void publish(const outbox& target, std::size_t count, const std::string& type) {
  for (std::size_t done = 0; done < count; done += batch_size) {
    std::vector<event> events;
    for (std::size_t i = done; i < std::min(count, done + batch_size); ++i)
      events.push_back({.type = type, .key = "", .payload = R"({"total":12.5})"});
    for (const auto& receipt : target.publish_all(events)) ASSERT_TRUE(receipt.safe());
  }
}

/// Parks events of two types, which a worker has refused.
void park(const outbox& target, std::size_t count) {
  publish(target, count / 2, "order.paid");
  publish(target, count - count / 2, "order.sent");
  for (std::size_t lane = 0; lane < target.lanes(); ++lane) {
    for (;;) {
      const auto claim = target.claim({.lane = lane, .most = batch_size});
      if (claim.events.empty()) break;
      std::vector<settlement> settlements;
      for (const auto& each : claim.events)
        settlements.push_back({.id = each.event.id,
                               .key = each.event.key,
                               .action = settlement::kind::park,
                               .error = "HTTP status 422"});
      (void)target.settle(lane, claim.fence, std::move(settlements));
    }
  }
}

/// Every question of the pages of an outbox. `count` returns what was counted since the start.
cost_by_question ask(outbox_api& api, const std::function<cost()>& count) {
  const auto id = outbox_api::json(api.send("GET", "/parked?limit=1", "viewer"))
                      .at("items")
                      .at(0)
                      .at("id")
                      .get<std::string>();
  cost_by_question result;
  const std::map<std::string, std::string> questions{
      {"numbers", ""},
      {"groups", "/parked/groups"},
      {"parked", "/parked?limit=100"},
      {"parked of a type", "/parked?limit=100&type=order.sent"},
      {"parked, no match", "/parked?limit=100&type=order.none"},
      {"events", "/events?limit=100"},
      {"event", "/events/" + id + "/explain"}};
  for (const auto& [name, path] : questions) {
    (void)api.send("GET", path, "viewer");  // plans and buffers
    const auto before = count();
    const auto begin = std::chrono::steady_clock::now();
    const auto answer = api.send("GET", path, "viewer");
    const auto time = std::chrono::steady_clock::now() - begin;
    EXPECT_EQ(answer.status, 200) << name << answer.body;
    const auto after = count();
    result[name] = {.statements = after.statements - before.statements,
                    .work = after.work - before.work,
                    .time = std::chrono::duration_cast<std::chrono::milliseconds>(time)};
  }
  return result;
}

/// Three times as many events cost the same. `most_work` is the bound of a single question, and
/// `variation` what else changes its work. `clean_up` does what the database does by itself sooner
/// or later.
void expect_bounded(
    outbox_api& api, const std::function<cost()>& count, std::uint64_t most_work,
    std::uint64_t variation, const std::function<void()>& clean_up = [] {}) {
  const auto first = events_at_first * api.orders().lanes();
  const auto total = std::max(parked_events(), 2 * first);
  park(api.orders(), first);
  clean_up();
  const auto before = ask(api, count);
  park(api.orders(), total - first);
  publish(api.orders(), batch_size, "order.open");
  clean_up();
  const auto after = ask(api, count);
  std::cout << total << " parked events: question, statements, work, ms\n";
  for (const auto& [name, spent] : after) {
    std::cout << "  " << std::left << std::setw(18) << name << std::right << std::setw(6)
              << spent.statements << std::setw(10) << spent.work << std::setw(7)
              << spent.time.count() << "\n";
    const auto& base = before.at(name);
    // A page of Redis has more or less than 100 events.
    EXPECT_LE(spent.statements, 2 * base.statements + 10) << name;
    EXPECT_LE(spent.work, base.work + base.work / 2 + variation)
        << name << ", before " << base.work;
    EXPECT_LE(spent.work, most_work) << name;
  }
}

// ---- SQLite

std::atomic<std::uint64_t> sqlite_statements = 0;
std::atomic<std::uint64_t> sqlite_steps = 0;

int count_statement(unsigned /*event*/, void* /*context*/, void* statement, void* /*time*/) {
  sqlite_statements += 1;
  sqlite_steps += static_cast<std::uint64_t>(
      sqlite3_stmt_status(static_cast<sqlite3_stmt*>(statement), SQLITE_STMTSTATUS_VM_STEP, 1));
  return 0;
}

int count_statements_of(sqlite3* connection, const char** /*problem*/,
                        const sqlite3_api_routines* /*api*/) {
  return sqlite3_trace_v2(connection, SQLITE_TRACE_PROFILE, count_statement, nullptr);
}

/// Counts the statements of all connections that are opened while it exists.
struct sqlite_counter {
  sqlite_counter() { sqlite3_auto_extension(entry()); }
  ~sqlite_counter() { sqlite3_cancel_auto_extension(entry()); }
  sqlite_counter(const sqlite_counter&) = delete;
  sqlite_counter& operator=(const sqlite_counter&) = delete;
  static void (*entry())() {
    return reinterpret_cast<void (*)()>(count_statements_of);  // NOLINT: as the manual says
  }
  static cost now() { return {.statements = sqlite_statements, .work = sqlite_steps}; }
};

TEST(ConsoleQuestions, AreBoundedOnSqlite) {
  const sqlite_counter counter;
  for (const std::size_t lanes : {1U, 2U}) {
    const test::temporary_directory directory("scale");
    outbox_api api({.url = "sqlite://" + (directory.path() / "events.db").string(),
                    .lanes = lanes,
                    .create_schema = true});
    expect_bounded(api, sqlite_counter::now, 2'000'000, 100'000);
  }
}

// ---- PostgreSQL

TEST(ConsoleQuestions, AreBoundedOnPostgres) {
  const test::postgres_server server(
      {.settings = {"shared_preload_libraries=pg_stat_statements", "pg_stat_statements.track=top"},
       .durable = false});
  (void)server.run("CREATE EXTENSION pg_stat_statements");
  outbox_api api({.url = server.url(), .create_schema = true});
  const auto count = [&] {
    std::istringstream line(
        server.run("SELECT SUM(calls), SUM(shared_blks_hit + shared_blks_read) FROM "
                   "pg_stat_statements WHERE userid <> (SELECT oid FROM pg_roles WHERE "
                   "rolname = CURRENT_USER)"));
    cost result;
    line >> result.statements >> result.work;
    return result;
  };
  // The index has an entry for each row version until a vacuum; its time depends on the machine.
  expect_bounded(api, count, 100'000, 20'000, [&] { (void)server.run("VACUUM ANALYZE"); });
}

// ---- Redis

TEST(ConsoleQuestions, AreBoundedOnRedis) {
  const test::redis_server server({.durable = false});
  outbox_api api({.url = server.url(), .create_schema = true});
  const auto count = [&] {
    // cmdstat_zscan:calls=120,usec=...
    std::istringstream lines(server.run({"INFO", "commandstats"}));
    cost result;
    for (std::string line; std::getline(lines, line);) {
      const auto calls = line.find("calls=");
      if (calls == std::string::npos || line.starts_with("cmdstat_info")) continue;
      result.statements += std::stoull(line.substr(calls + 6));
    }
    result.work = result.statements;
    return result;
  };
  expect_bounded(api, count, 100'000, 10'000);
}

}  // namespace
