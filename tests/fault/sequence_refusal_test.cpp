// Databases that are there and do not grant: a server that only reads, no room on the disk, no connection left, a table that somebody locks or
// alters. Callers are told in time, no id comes twice, and it goes on by itself.

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

/// Draws until it is refused, and says why; empty: it never was.
std::string refusal_of(sequence& ids, std::vector<std::int64_t>& drawn) {
  std::string why;
  (void)eventually(
      [&] {
        try {
          drawn.push_back(ids.next(steady::now() + 200ms));
        } catch (const error& e) {
          EXPECT_TRUE(e.transient()) << e.what();
          why = e.what();
        }
        return !why.empty();
      },
      60s);
  return why;
}

sequence one_by_one(const std::string& url) { return open(url).sequence("torture.id", {.blocks = fixed_blocks{.size = 1}}); }

// ---- A server that does not write.

template <class Server>
void waits_until_it_writes() {
  const Server server;
  prepare(server.url());
  auto ids = one_by_one(server.url());
  std::vector<std::int64_t> all{ids.next()};
  make_read_only(server, true);
  std::string why;
  EXPECT_TRUE(eventually([&] { return (why = refusal_of(ids, all)).find("read-only") != std::string::npos; })) << why;
  make_read_only(server, false);
  for (int i = 0; i < 5; ++i) all.push_back(ids.next(steady::now() + 60s));
  EXPECT_EQ(count_again(all), 0U);
}

TEST(SequenceReadOnly, PostgresSaysSoAndGoesOn) { waits_until_it_writes<postgres_server>(); }
TEST(SequenceReadOnly, MariadbSaysSoAndGoesOn) { waits_until_it_writes<mariadb_server>(); }

// ---- No room on the disk.

TEST(SequenceDiskFull, SqliteGrantsNothingTwiceAndGoesOnWhenThereIsRoom) {
  limited_disk disk;
  const auto url = "sqlite://" + (disk.path() / "ids.db").string();
  prepare(url);
  auto looks_on = one_by_one(url);
  std::vector<std::int64_t> all{looks_on.next()};
  // Not so much, all rounds together, that SQLite would begin its log again from the front, for which it needs no room.
  disk.leave(400U << 10U);
  drawing under(2, drawer_of(url, {}, 2));
  for (int round = 1; round <= 4; ++round) {
    // On a busy machine it may be told first that the store is slow.
    std::string why;
    EXPECT_TRUE(eventually([&] {
      return (why = refusal_of(looks_on, all)).find("the disk is full; nothing was written") != std::string::npos;
    })) << why;
    disk.leave(round < 4 ? 400U << 10U : 64U << 20U);
  }
  wait_for_more(under);
  all.push_back(looks_on.next(steady::now() + 60s));
  const auto theirs = under.finish();
  all.insert(all.end(), theirs.begin(), theirs.end());
  EXPECT_EQ(count_again(all), 0U);
}

/// PostgreSQL stops itself when there is no room for its log.
TEST(SequenceDiskFull, PostgresGrantsNothingTwiceAndGoesOnWhenThereIsRoom) {
  limited_disk disk;
  postgres_server server({.directory = disk.path()});
  prepare(server.url());
  drawing under(2, drawer_of(server.url()));
  auto looks_on = one_by_one(server.url());
  wait_for_more(under);
  std::vector<std::int64_t> all{looks_on.next()};
  disk.leave(1U << 20U);
  ASSERT_TRUE(eventually(
      [&] {
        try {
          all.push_back(looks_on.next(steady::now() + 200ms));
          (void)server.run("SELECT pg_switch_wal()");  // asks for another file of the log
        } catch (const error& e) {
          EXPECT_TRUE(e.transient()) << e.what();
        } catch (const std::runtime_error&) {  // NOLINT(bugprone-empty-catch): it stopped, or is about to
        }
        return looks_on.stats().failures > 0;
      },
      60s))
      << "the disk never got full";
  disk.leave(512U << 20U);
  server.kill9();
  server.start();
  wait_for_more(under);
  all.push_back(looks_on.next(steady::now() + 60s));
  const auto theirs = under.finish();
  all.insert(all.end(), theirs.begin(), theirs.end());
  EXPECT_EQ(count_again(all), 0U);
}

/// MariaDB made room for its log when it started: a counter that is there needs none. A new table does.
TEST(SequenceDiskFull, MariadbGrantsOnAndSaysWhyItMakesNoTable) {
  limited_disk disk;
  mariadb_server server({.directory = disk.path()});
  prepare(server.url());
  drawing under(2, drawer_of(server.url()));
  wait_for_more(under);
  disk.leave(0);
  wait_for_more(under);
  const sequence_store_options another{.prefix = "ANOTHER_", .create_schema = true};
  const auto refused = failure_of([&] { (void)open(server.url()).block_store(another); });
  EXPECT_TRUE(refused.transient()) << refused.what();
  EXPECT_NE(std::string(refused.what()).find("the server has no space left; free some on its disk"), std::string::npos) << refused.what();
  disk.leave(512U << 20U);
  EXPECT_EQ(open(server.url()).sequence("torture.id", {.store = another}).next(), 1);
  server.kill9();
  server.start();
  wait_for_more(under);
  EXPECT_EQ(count_again(under.finish()), 0U);
}

// ---- No connection left.

/// More callers than connections, each with a pool of its own, as processes have. Nobody leaves before everybody has tried.
template <class Server>
void storm(const Server& server, const std::string& words) {
  constexpr int callers = 24;
  const auto url = server.url();
  prepare(url);
  auto there_before = open(url).sequence("torture.id", {.blocks = fixed_blocks{.size = 2}, .wait = 60s});
  std::vector<std::int64_t> all{there_before.next()};
  std::mutex mutex;
  std::vector<std::string> refusals;
  std::latch all_tried(callers);
  {
    std::vector<std::jthread> threads;
    threads.reserve(callers);
    for (int i = 0; i < callers; ++i) {
      threads.emplace_back([&] {
        std::vector<std::int64_t> mine;
        for (bool tried = false; mine.size() < 30;) {
          try {
            auto ids = open(url).sequence("torture.id", {.blocks = fixed_blocks{.size = 5}, .wait = 60s});
            mine.push_back(ids.next());
            if (!std::exchange(tried, true)) all_tried.arrive_and_wait();
            while (mine.size() < 30) mine.push_back(ids.next());
          } catch (const error& e) {
            EXPECT_TRUE(e.transient()) << e.what();
            if (!std::exchange(tried, true)) all_tried.count_down();
            const std::scoped_lock lock(mutex);
            refusals.emplace_back(e.what());
          }
          if (mine.size() < 30) std::this_thread::sleep_for(5ms);
        }
        const std::scoped_lock lock(mutex);
        all.insert(all.end(), mine.begin(), mine.end());
      });
    }
    for (int i = 0; i < 100; ++i) {  // who has a connection does not notice
      const auto id = there_before.next();
      const std::scoped_lock lock(mutex);
      all.push_back(id);
    }
  }
  EXPECT_EQ(there_before.stats().failures, 0U);
  EXPECT_EQ(all.size(), 101U + 30U * callers);
  EXPECT_EQ(count_again(all), 0U);
  std::size_t clear = 0;
  for (const auto& each : refusals) {
    clear += each.find(words) != std::string::npos ? 1U : 0U;
    EXPECT_EQ(each.find('\n'), std::string::npos) << each;
  }
  EXPECT_GT(clear, 0U) << refusals.size()
                       << " were refused, and none of them with the reason: " << (refusals.empty() ? "" : refusals.front());
}

TEST(SequenceStorm, APostgresWithFewConnectionsSaysSoAndServesAllInTheEnd) {
  const postgres_server server({.settings = {"max_connections=10", "superuser_reserved_connections=2"}});
  storm(server, "raise max_connections, or make the pool smaller");
}

TEST(SequenceStorm, AMariadbWithFewConnectionsSaysSoAndServesAllInTheEnd) {
  const mariadb_server server({.settings = {"max-connections=10"}});
  storm(server, "the server takes no more connections; raise its limits or make the pool smaller");
}

// ---- The table is locked, and altered.

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

template <class Place>
class SequenceDdl : public ::testing::Test {
 protected:
  Place place;
};
using ddl_places = ::testing::Types<ddl_on_sqlite, ddl_on_postgres, ddl_on_mariadb>;
TYPED_TEST_SUITE(SequenceDdl, ddl_places);

TYPED_TEST(SequenceDdl, ATableThatIsLockedAndAlteredGrantsNothingTwice) {
  const auto& url = this->place.url;
  prepare(url);
  drawing under(2, drawer_of(url, {}, 20, {.statement_timeout = 1s}));
  auto looks_on = open(url, {.statement_timeout = 1s}).sequence("torture.id", {.blocks = fixed_blocks{.size = 1}});
  std::vector<std::int64_t> all{looks_on.next(steady::now() + 60s)};
  typename TypeParam::handle own(url);
  for (int i = 0; i < 3; ++i) {
    own.run("ALTER TABLE SEQUENCES ADD COLUMN NOTE" + std::to_string(i) + " TEXT");
    wait_for_more(under, 200);
  }
  own.run(TypeParam::lock);
  const auto began = steady::now();
  EXPECT_NE(refusal_of(looks_on, all), "");
  EXPECT_LT(steady::now() - began, 20s) << "a caller waits as long as it said, not as long as the lock lasts";
  EXPECT_TRUE(eventually([&, before = looks_on.stats().failures] { return looks_on.stats().failures > before; }, 60s))
      << "nor does the refill";
  const auto why = refusal_of(looks_on, all);
  EXPECT_EQ(why.find("the store is slow"), std::string::npos) << "from now on the reason is known: " << why;
  own.run(TypeParam::unlock);
  wait_for_more(under, 200);
  all.push_back(looks_on.next(steady::now() + 60s));
  own.run("ALTER TABLE SEQUENCES DROP COLUMN NOTE0");
  wait_for_more(under, 200);
  const auto theirs = under.finish();
  all.insert(all.end(), theirs.begin(), theirs.end());
  EXPECT_EQ(count_again(all), 0U);
}

/// A prepared statement whose columns are no longer the same is prepared again, and nobody notices.
TEST(SequenceDdlOnPostgres, AColumnOfAnotherTypeIsNoFailure) {
  const ddl_on_postgres place;
  prepare(place.url);
  auto ids = one_by_one(place.url);
  postgres_handle own(place.url);
  for (int i = 1; i <= 6; ++i) {
    EXPECT_EQ(ids.next(), i);
    own.run("ALTER TABLE SEQUENCES ALTER COLUMN NAME TYPE VARCHAR(" + std::to_string(200 + i) + ")");
  }
  EXPECT_EQ(ids.stats().failures, 0U);
}

}  // namespace
}  // namespace holdfast::test
