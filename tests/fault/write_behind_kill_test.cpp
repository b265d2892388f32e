// kill -9 during a storm: what is missing was not flushed.

#include <holdfast/database.hpp>
#include <holdfast/store/write_behind.hpp>

#include "support/kill_harness.hpp"
#include "support/ledger.hpp"
#include "support/postgres_server.hpp"
#include "support/shared_server.hpp"
#include "support/temporary_directory.hpp"
#include "support/worker.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

/// Everything that a worker of a generation put, up to this number, was acknowledged.
struct promise {
  std::int64_t worker = 0;
  std::int64_t generation = 0;
  std::int64_t number = 0;
};

std::string key_of(std::int64_t worker, std::int64_t generation, std::int64_t number) {
  return std::to_string(worker) + "-" + std::to_string(generation) + "-" + std::to_string(number);
}

// Puts as fast as it can, and flushes now and then. An honest one notes what a flush acknowledged,
// a dishonest one what a put did.
HOLDFAST_WORKER(behind_writer) {
  ledger<promise> book(arguments.at(1));
  const bool honest = arguments.at(2) == "honest";
  promise next{.worker = std::stoll(arguments.at(3)), .generation = std::stoll(arguments.at(4))};
  const auto store = make_write_behind(open(arguments.at(0)).store(), {.block_for = 30s});
  bool alive = false;
  for (; !worker_should_stop(); ++next.number) {
    const auto now = system_clock()->now();
    const entry one{.name = "n",
                    .key = key_of(next.worker, next.generation, next.number),
                    .as_of = now,
                    .expire_on = now + 24h,
                    .payload = std::to_string(next.number),
                    .payload_class = "c"};
    store->put({&one, 1});
    if (next.number % 50 != 49) continue;
    if (honest && !store->flush(std::chrono::steady_clock::now() + 30s).complete()) continue;
    book.add(next);
    // Not before the first promise: who is killed earlier proves nothing.
    if (!std::exchange(alive, true)) worker_is_alive();
  }
  return store->close(std::chrono::steady_clock::now() + 30s).complete() ? 0 : 1;
}

/// How many of the acknowledged are missing after all those kills.
std::size_t missing(const std::string& url, const std::string& how) {
  const temporary_directory place("behind", "", medium::memory);
  const auto store = open(url).store({.create_schema = true});
  const auto report =
      kill_harness({.workers = 2,
                    .kills = 20,
                    .shortest = 5ms,
                    .longest = 60ms,
                    .log = place.path() / "log"})
          .run("behind_writer", [&](std::size_t worker, std::size_t generation) {
            return std::vector<std::string>{url, place.path() / "book", how, std::to_string(worker),
                                            std::to_string(generation)};
          });
  EXPECT_EQ(report.killed, 20U);
  EXPECT_TRUE(report.failures.empty()) << report.failures.front();
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> promised;
  for (const auto& one : ledger<promise>(place.path() / "book").read()) {
    auto& last = promised.try_emplace({one.worker, one.generation}, -1).first->second;
    last = std::max(last, one.number);
  }
  EXPECT_GT(promised.size(), 3U) << "hardly anything was promised, so nothing is proved";
  std::size_t lost = 0;
  for (const auto& [who, last] : promised) {
    for (std::int64_t number = 0; number <= last; ++number) {
      const auto found = store->find("n", key_of(who.first, who.second, number));
      if (!found || found->payload != std::to_string(number)) ++lost;
    }
  }
  return lost;
}

std::string sqlite_in(const temporary_directory& place) {
  return "sqlite://" + (place.path() / "store.db").string();
}

TEST(WriteBehindKill, WhatAFlushAcknowledgedIsOnSqlite) {
  const temporary_directory place("behind", "", medium::memory);
  EXPECT_EQ(missing(sqlite_in(place), "honest"), 0U);
}

TEST(WriteBehindKill, WhatAFlushAcknowledgedIsOnPostgres) {
  const auto& server = shared_server<postgres_server>();
  EXPECT_EQ(missing(server.url(server.create_database("behind")), "honest"), 0U);
}

TEST(WriteBehindKill, ThatTestCanFail) {
  const temporary_directory place("behind", "", medium::memory);
  EXPECT_GT(missing(sqlite_in(place), "dishonest"), 0U) << "a put acknowledges nothing";
}

}  // namespace
}  // namespace holdfast::test
