// What was acknowledged is there: after races, kill -9, a frozen server, a cut connection, a power
// failure.

#include <holdfast/database.hpp>

#include "fault/write_storm.hpp"
#include "support/cutting_proxy.hpp"
#include "support/eventually.hpp"
#include "support/h2_server.hpp"
#include "support/mariadb_server.hpp"
#include "support/odbc_drivers.hpp"
#include "support/postgres_server.hpp"
#include "support/shared_server.hpp"
#include "support/temporary_directory.hpp"
#include "support/unsynced_vfs.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

/// A server, and how it is reached.
template <class Server>
struct direct {
  using server = Server;
  static std::string url(const server_endpoint& of, const std::string& database = "holdfast") {
    return of.url(database);
  }
  static std::string url_through(const server_endpoint& of, std::uint16_t port,
                                 const std::string& database) {
    return of.url_through(port, database);
  }
};
struct psqlodbc {
  using server = postgres_server;
  static std::string url(const server_endpoint& of, const std::string& database = "holdfast") {
    return odbc_postgres(of.port(), database);
  }
  static std::string url_through(const server_endpoint&, std::uint16_t port,
                                 const std::string& database) {
    return odbc_postgres(port, database);
  }
};

/// Where time is not what is tested: a busy machine may take its time.
const database_options patient{.connect_timeout = 60s, .statement_timeout = 60s};

template <class Way>
class StoreFaults : public ::testing::Test {};
using ways =
    ::testing::Types<direct<postgres_server>, direct<mariadb_server>, direct<h2_server>, psqlodbc>;
TYPED_TEST_SUITE(StoreFaults, ways);

TYPED_TEST(StoreFaults, EightWritersTwoCleanersTwoReadersLeaveTheNewest) {
  const auto& server = shared_server<typename TypeParam::server>();
  const auto url = TypeParam::url(server, server.create_database("races"));
  (void)open(url).store({.create_schema = true, .start = start_mode::require});
  constexpr int writers = 8;
  constexpr int rounds = 60;
  const timestamp start = system_clock()->now();
  std::atomic<int> errors{0};
  const auto guarded = [&errors](auto work) {
    try {
      work();
    } catch (const std::exception& e) {
      ++errors;
      ADD_FAILURE() << e.what();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int w = 0; w < writers; ++w) {
      // A database object each: eight processes would have no common pool either.
      threads.emplace_back([&, w] {
        guarded([&] {
          const auto mine = open(url, patient).store();
          for (int round = 0; round < rounds; ++round) {
            std::vector<entry> batch;
            for (int k = 0; k < 4; ++k) {
              const auto as_of = start + 1us * (round * writers + w);
              batch.push_back(
                  make_entry("k" + std::to_string(k), as_of, std::to_string(round * writers + w)));
            }
            mine->put(batch);
            entry dying = make_entry("d" + std::to_string(w), system_clock()->now(), "x");
            dying.expire_on = dying.as_of + 1ms;
            mine->put({&dying, 1});
          }
        });
      });
    }
    for (int other = 0; other < 2; ++other) {
      threads.emplace_back([&](std::stop_token stop) {
        guarded([&] {
          const auto mine = open(url, patient).store();
          while (!stop.stop_requested()) (void)mine->expire(system_clock()->now(), 3);
        });
      });
      threads.emplace_back([&](std::stop_token stop) {
        guarded([&] {
          const auto mine = open(url, patient).store();
          timestamp seen{};
          while (!stop.stop_requested()) {
            const auto found = mine->find("n", "k0");
            if (!found) continue;
            EXPECT_GE(found->as_of, seen) << "a reader never goes back in time";
            seen = found->as_of;
          }
        });
      });
    }
    for (int w = 0; w < writers; ++w) threads[static_cast<std::size_t>(w)].join();
  }
  EXPECT_EQ(errors, 0);
  const auto store = open(url).store();
  for (int k = 0; k < 4; ++k)
    EXPECT_EQ(*store->find("n", "k" + std::to_string(k))->payload,
              std::to_string(writers * rounds - 1));
}

TYPED_TEST(StoreFaults, WhatWasAcknowledgedSurvivesKillsDuringAWriteStorm) {
  typename TypeParam::server server;
  const auto store =
      open(TypeParam::url(server), {.statement_timeout = 2s}).store({.create_schema = true});
  acknowledged ledger;
  for (int kill = 0; kill < 3; ++kill) {
    const auto before = ledger.count();
    std::jthread a([&](std::stop_token stop) { write_storm(*store, ledger, stop, 1); });
    std::jthread b([&](std::stop_token stop) { write_storm(*store, ledger, stop, 2); });
    const auto deadline = std::chrono::steady_clock::now() + 20s;
    while (ledger.count() < before + 100 && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(5ms);
    server.kill9();
    a.request_stop();
    b.request_stop();
    a.join();
    b.join();
    server.start();
    EXPECT_GT(ledger.count(), before) << "nothing was written, so nothing was proved";
    ledger.check(*store);
  }
}

TYPED_TEST(StoreFaults, AFrozenServerEndsEveryCallInTime) {
  typename TypeParam::server server;
  const auto e = make_entry("k", system_clock()->now(), "before");
  open(TypeParam::url(server)).store({.create_schema = true})->put({&e, 1});
  const auto store =
      open(TypeParam::url(server), {.connect_timeout = 1s, .statement_timeout = 500ms}).store();
  server.pause();
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THROW((void)store->find("n", "k"), error);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 12s) << "bounded tries of a bounded time";
  EXPECT_FALSE(store->health().available);
  server.resume();
  EXPECT_TRUE(eventually([&] {
    try {
      return *store->find("n", "k").value().payload == "before";
    } catch (const error&) {
      return false;
    }
  }));
}

TYPED_TEST(StoreFaults, ACutConnectionIsReplaced) {
  const auto& server = shared_server<typename TypeParam::server>();
  const auto database = server.create_database("cut");
  cutting_proxy proxy(server.port());
  const auto store = open(TypeParam::url_through(server, proxy.port(), database))
                         .store({.create_schema = true, .start = start_mode::require});
  acknowledged ledger;
  for (int cut = 0; cut < 5; ++cut) {
    std::jthread writer([&](std::stop_token stop) { write_storm(*store, ledger, stop, 3); });
    std::this_thread::sleep_for(50ms);
    proxy.cut();
    std::this_thread::sleep_for(50ms);
  }
  EXPECT_GT(ledger.count(), 5U);
  ledger.check(*store);
}

TYPED_TEST(StoreFaults, AStatementCutAnywhereIsWrittenWholeOrNotAtAll) {
  const auto& server = shared_server<typename TypeParam::server>();
  const auto database = server.create_database("cut_anywhere");
  cutting_proxy proxy(server.port());
  const auto direct = open(TypeParam::url(server, database), patient)
                          .store({.create_schema = true, .start = start_mode::require});
  const auto store =
      open(TypeParam::url_through(server, proxy.port(), database), {.statement_timeout = 5s})
          .store();
  const auto base = system_clock()->now();
  const auto batch_of = [&](int round) {
    std::vector<entry> batch;
    for (int k = 0; k < 20; ++k) {
      batch.push_back(make_entry("k" + std::to_string(k), base + 1us * round,
                                 std::to_string(round) + std::string(1000, 'x')));
    }
    return batch;
  };
  store->put(batch_of(0));
  int acknowledged_round = 0;
  std::uint64_t cuts = 0;
  for (int round = 1; round <= 40; ++round) {
    // Somewhere in the request, at its very end, in the reply.
    if (round % 2 == 0) proxy.cut_after(flow::to_server, static_cast<std::uint64_t>(round) * 701);
    else proxy.cut_after(flow::to_client, static_cast<std::uint64_t>(round) * 3);
    try {
      store->put(batch_of(round));
      acknowledged_round = round;
    } catch (const error& e) {
      EXPECT_TRUE(e.transient()) << e.what();
    }
    cuts = proxy.cuts();
    const auto first = direct->find("n", "k0");
    ASSERT_TRUE(first);
    EXPECT_GE(first->as_of, base + 1us * acknowledged_round) << "round " << round;
    for (int k = 1; k < 20; ++k)
      EXPECT_EQ(direct->find("n", "k" + std::to_string(k))->as_of, first->as_of)
          << "half of a batch";
  }
  EXPECT_GE(cuts, 20U) << "hardly a statement was cut, so hardly anything was proved";
  EXPECT_EQ(acknowledged_round, 40) << "the store tries again on a fresh connection";
}

/// Writes to SQLite until the power fails, 200 times, and checks what is there when it is back.
/// Returns what was lost.
std::size_t lost_in_power_failures(const std::string& synchronous, std::uint64_t seed) {
  temporary_directory directory;
  unsynced_vfs disk("store_disk_" + synchronous, {.seed = seed});
  const auto url = "sqlite://" + (directory.path() / "store.db").string() + "?vfs=" + disk.name() +
                   "&synchronous=" + synchronous;
  (void)open(url).store({.create_schema = true, .start = start_mode::require});
  std::map<std::string, timestamp> promised;
  std::mt19937_64 random(seed);
  std::size_t lost = 0;
  for (int crash = 0; crash < 200; ++crash) {
    disk.crash_after(1 + random() % 60);
    try {
      const auto store = open(url).store();
      for (int i = 0; i < 50; ++i) {
        const auto key = "k" + std::to_string(random() % 20);
        const auto e =
            make_entry(key, system_clock()->now(), std::string(1 + random() % 5000, 'x'));
        store->put({&e, 1});
        promised[key] = e.as_of;
      }
    } catch (const error&) {
      // The power failed.
    }
    disk.crash_after(0);
    if (!disk.off() && disk.crashes() == static_cast<std::uint64_t>(crash)) disk.crash();
    try {
      const auto after = open(url).store();
      for (const auto& [key, as_of] : promised) {
        const auto found = after->find("n", key);
        if (!found || found->as_of < as_of) ++lost;
      }
    } catch (const error&) {
      ++lost;  // not even readable
      break;
    }
    if (lost > 0) break;
  }
  return lost;
}

TEST(StoreOnSqlite, SurvivesTwoHundredPowerFailures) {
  EXPECT_EQ(lost_in_power_failures("full", 20261115), 0U);
}

TEST(StoreOnSqlite, ThatTestCanFail) { EXPECT_GT(lost_in_power_failures("off", 20261115), 0U); }

}  // namespace
}  // namespace holdfast::test
