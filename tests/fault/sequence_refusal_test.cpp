// Databases that run but do not grant: a read-only server, a full disk, no free connection, a table
// that is locked or altered. Callers get an error in time, no id comes twice, and drawing continues
// by itself.

#include <holdfast/database.hpp>
#include <holdfast/sequence.hpp>

#include "fault/sequence_ids.hpp"
#include "support/eventually.hpp"
#include "support/failure_of.hpp"
#include "support/limited_disk.hpp"
#include "support/mariadb_server.hpp"
#include "support/own_handles.hpp"
#include "support/postgres_server.hpp"
#include "support/read_only.hpp"
#include "support/shared_server.hpp"
#include "support/temporary_directory.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <latch>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

/// Draws until a call fails, and returns the message; empty if none fails.
std::string refusal_of(sequence& ids, std::vector<std::int64_t>& drawn) {
  std::string message;
  (void)eventually(
      [&] {
        try {
          drawn.push_back(ids.next(steady::now() + 200ms));
        } catch (const error& e) {
          EXPECT_TRUE(e.transient()) << e.what();
          message = e.what();
        }
        return !message.empty();
      },
      60s);
  return message;
}

sequence one_by_one(const std::string& url) {
  return open(url).sequence("torture.id", {.blocks = fixed_blocks{.size = 1}});
}

// ---- A read-only server.

template <class Server>
void continue_when_writable() {
  const Server server;
  prepare(server.url());
  auto ids = one_by_one(server.url());
  std::vector<std::int64_t> all{ids.next()};
  make_read_only(server, true);
  std::string message;
  EXPECT_TRUE(eventually([&] {
    return (message = refusal_of(ids, all)).find("read-only") != std::string::npos;
  })) << message;
  make_read_only(server, false);
  for (int i = 0; i < 5; ++i) all.push_back(ids.next(steady::now() + 60s));
  EXPECT_EQ(count_duplicates(all), 0U);
}

TEST(SequenceReadOnly, PostgresReportsItAndContinues) { continue_when_writable<postgres_server>(); }
TEST(SequenceReadOnly, MariadbReportsItAndContinues) { continue_when_writable<mariadb_server>(); }

// ---- A full disk.

TEST(SequenceDiskFull, SqliteGrantsNothingTwiceAndContinuesWhenThereIsSpace) {
  limited_disk disk;
  const auto url = "sqlite://" + (disk.path() / "ids.db").string();
  prepare(url);
  auto observer = one_by_one(url);
  std::vector<std::int64_t> all{observer.next()};
  // All rounds together must write less than a checkpoint: after that SQLite reuses its log, and
  // needs no space.
  disk.leave(400U << 10U);
  drawing load(2, drawer_of(url, {}, 2));
  for (int round = 1; round <= 4; ++round) {
    // On a busy machine the first failure may say that the store is slow.
    std::string message;
    EXPECT_TRUE(eventually([&] {
      return (message = refusal_of(observer, all)).find("the disk is full; nothing was written") !=
             std::string::npos;
    })) << message;
    disk.leave(round < 4 ? 400U << 10U : 64U << 20U);
  }
  wait_for_more(load);
  all.push_back(observer.next(steady::now() + 60s));
  const auto theirs = load.finish();
  all.insert(all.end(), theirs.begin(), theirs.end());
  EXPECT_EQ(count_duplicates(all), 0U);
}

/// PostgreSQL stops itself when there is no space for its log.
TEST(SequenceDiskFull, PostgresGrantsNothingTwiceAndContinuesWhenThereIsSpace) {
  limited_disk disk;
  postgres_server server({.directory = disk.path()});
  prepare(server.url());
  drawing load(2, drawer_of(server.url()));
  auto observer = one_by_one(server.url());
  wait_for_more(load);
  std::vector<std::int64_t> all{observer.next()};
  disk.leave(1U << 20U);
  ASSERT_TRUE(eventually(
      [&] {
        try {
          all.push_back(observer.next(steady::now() + 200ms));
          (void)server.run("SELECT pg_switch_wal()");  // needs another file of the log
        } catch (const error& e) {
          EXPECT_TRUE(e.transient()) << e.what();
        } catch (const std::
                     runtime_error&) {  // NOLINT(bugprone-empty-catch): it stopped, or is about to
        }
        return observer.stats().failures > 0;
      },
      60s))
      << "the disk never got full";
  disk.leave(512U << 20U);
  server.kill9();
  server.start();
  wait_for_more(load);
  all.push_back(observer.next(steady::now() + 60s));
  const auto theirs = load.finish();
  all.insert(all.end(), theirs.begin(), theirs.end());
  EXPECT_EQ(count_duplicates(all), 0U);
}

/// MariaDB allocates its log when it starts, so an existing counter needs no space. A new table
/// does.
TEST(SequenceDiskFull, MariadbContinuesToGrantAndReportsWhyItCreatesNoTable) {
  limited_disk disk;
  mariadb_server server({.directory = disk.path()});
  prepare(server.url());
  drawing load(2, drawer_of(server.url()));
  wait_for_more(load);
  disk.leave(0);
  wait_for_more(load);
  const sequence_store_options another{.prefix = "ANOTHER_", .create_schema = true};
  const auto refused = failure_of([&] { (void)open(server.url()).block_store(another)->list(1); });
  EXPECT_TRUE(refused.transient()) << refused.what();
  EXPECT_NE(std::string(refused.what()).find("the server has no space left; free some on its disk"),
            std::string::npos)
      << refused.what();
  disk.leave(512U << 20U);
  EXPECT_EQ(open(server.url()).sequence("torture.id", {.store = another}).next(), 1);
  server.kill9();
  server.start();
  wait_for_more(load);
  EXPECT_EQ(count_duplicates(load.finish()), 0U);
}

// ---- No free connection.

/// More callers than connections, each with its own pool, as processes have. No caller ends before
/// all have tried.
template <class Server>
void storm(const Server& server, const std::string& message) {
  constexpr int callers = 24;
  const auto url = server.url();
  prepare(url);
  auto connected =
      open(url).sequence("torture.id", {.blocks = fixed_blocks{.size = 2}, .wait = 60s});
  std::vector<std::int64_t> all{connected.next()};
  std::mutex mutex;
  std::vector<std::string> refusals;
  std::latch all_tried(callers);
  {
    std::vector<std::jthread> threads;
    threads.reserve(callers);
    for (int i = 0; i < callers; ++i) {
      threads.emplace_back([&] {
        std::vector<std::int64_t> own;
        for (bool tried = false; own.size() < 30;) {
          try {
            // Short: callers with a connection keep it until all have tried.
            auto ids =
                open(url).sequence("torture.id", {.blocks = fixed_blocks{.size = 5}, .wait = 2s});
            own.push_back(ids.next());
            if (!std::exchange(tried, true)) all_tried.arrive_and_wait();
            while (own.size() < 30) own.push_back(ids.next());
          } catch (const error& e) {
            EXPECT_TRUE(e.transient()) << e.what();
            if (!std::exchange(tried, true)) all_tried.count_down();
            const std::scoped_lock lock(mutex);
            refusals.emplace_back(e.what());
          }
          if (own.size() < 30) std::this_thread::sleep_for(5ms);
        }
        const std::scoped_lock lock(mutex);
        all.insert(all.end(), own.begin(), own.end());
      });
    }
    for (int i = 0; i < 100; ++i) {  // a caller with a connection is not affected
      const auto id = connected.next();
      const std::scoped_lock lock(mutex);
      all.push_back(id);
    }
  }
  EXPECT_EQ(connected.stats().failures, 0U);
  EXPECT_EQ(all.size(), 101U + 30U * callers);
  EXPECT_EQ(count_duplicates(all), 0U);
  std::size_t clear = 0;
  for (const auto& refusal : refusals) {
    clear += refusal.find(message) != std::string::npos ? 1U : 0U;
    EXPECT_EQ(refusal.find('\n'), std::string::npos) << refusal;
  }
  EXPECT_GT(clear, 0U) << refusals.size() << " were refused, none of them with the reason: "
                       << (refusals.empty() ? "" : refusals.front());
}

TEST(SequenceStorm, APostgresWithFewConnectionsReportsItAndServesAllInTheEnd) {
  const postgres_server server(
      {.settings = {"max_connections=10", "superuser_reserved_connections=2"}});
  storm(server, "raise max_connections, or make the pool smaller");
}

TEST(SequenceStorm, AMariadbWithFewConnectionsReportsItAndServesAllInTheEnd) {
  const mariadb_server server({.settings = {"max-connections=10"}});
  storm(server, "the server takes no more connections; raise its limits or make the pool smaller");
}

// ---- A table that is locked or altered.

struct ddl_on_sqlite : temporary_directory {
  std::string url = "sqlite://" + (path() / "ids.db").string();
  using handle = sqlite_handle;
  static constexpr auto lock = "BEGIN EXCLUSIVE";
  static constexpr auto unlock = "COMMIT";
};
template <class Server>
std::string new_database() {
  const auto& server = shared_server<Server>();
  return server.url(server.create_database("ddl"));
}
struct ddl_on_postgres {
  std::string url = new_database<postgres_server>();
  using handle = postgres_handle;
  static constexpr auto lock = "BEGIN; LOCK TABLE SEQUENCES IN ACCESS EXCLUSIVE MODE";
  static constexpr auto unlock = "COMMIT";
};
struct ddl_on_mariadb {
  std::string url = new_database<mariadb_server>();
  using handle = mariadb_handle;
  static constexpr auto lock = "LOCK TABLES SEQUENCES WRITE";
  static constexpr auto unlock = "UNLOCK TABLES";
};

template <class Database>
class SequenceDdl : public ::testing::Test {
 protected:
  Database server;
};
using ddl_databases = ::testing::Types<ddl_on_sqlite, ddl_on_postgres, ddl_on_mariadb>;
TYPED_TEST_SUITE(SequenceDdl, ddl_databases);

TYPED_TEST(SequenceDdl, ATableThatIsLockedAndAlteredGrantsNothingTwice) {
  const auto& url = this->server.url;
  prepare(url);
  drawing load(2, drawer_of(url, {}, 20, {.statement_timeout = 1s}));
  auto observer = open(url, {.statement_timeout = 1s})
                      .sequence("torture.id", {.blocks = fixed_blocks{.size = 1}});
  std::vector<std::int64_t> all{observer.next(steady::now() + 60s)};
  typename TypeParam::handle own(url);
  for (int i = 0; i < 3; ++i) {
    own.run("ALTER TABLE SEQUENCES ADD COLUMN NOTE" + std::to_string(i) + " TEXT");
    wait_for_more(load, 200);
  }
  own.run(TypeParam::lock);
  const auto start = steady::now();
  EXPECT_NE(refusal_of(observer, all), "");
  EXPECT_LT(steady::now() - start, 20s)
      << "a caller waits until its deadline, not until the lock is released";
  EXPECT_TRUE(eventually(
      [&, before = observer.stats().failures] { return observer.stats().failures > before; }, 60s))
      << "the refill does not wait for the lock either";
  const auto message = refusal_of(observer, all);
  EXPECT_EQ(message.find("the store is slow"), std::string::npos)
      << "from now on the reason is known: " << message;
  own.run(TypeParam::unlock);
  wait_for_more(load, 200);
  all.push_back(observer.next(steady::now() + 60s));
  own.run("ALTER TABLE SEQUENCES DROP COLUMN NOTE0");
  wait_for_more(load, 200);
  const auto theirs = load.finish();
  all.insert(all.end(), theirs.begin(), theirs.end());
  EXPECT_EQ(count_duplicates(all), 0U);
}

/// A prepared statement whose columns have changed is prepared again, without a failure.
TEST(SequenceDdlOnPostgres, AColumnOfAnotherTypeIsNotAFailure) {
  const ddl_on_postgres server;
  prepare(server.url);
  auto ids = one_by_one(server.url);
  postgres_handle own(server.url);
  for (int i = 1; i <= 6; ++i) {
    EXPECT_EQ(ids.next(), i);
    own.run("ALTER TABLE SEQUENCES ALTER COLUMN NAME TYPE VARCHAR(" + std::to_string(200 + i) +
            ")");
  }
  EXPECT_EQ(ids.stats().failures, 0U);
}

}  // namespace
}  // namespace holdfast::test
