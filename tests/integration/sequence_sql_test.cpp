// Sequences on real databases: transactions of the caller's, many counters in one commit, children, lost replies, unsafe settings.

#include <holdfast/database.hpp>
#include <holdfast/sequence.hpp>

#include "support/cutting_proxy.hpp"
#include "support/failure_of.hpp"
#include "support/mariadb_server.hpp"
#include "support/own_handles.hpp"
#include "support/postgres_server.hpp"
#include "support/shared_server.hpp"
#include "support/temporary_directory.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <fstream>
#include <iterator>
#include <latch>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

template <class Server>
std::string new_database() {
  const auto& server = shared_server<Server>();
  return server.url(server.create_database("sequence"));
}

struct on_sqlite : temporary_directory {
  std::string url = "sqlite://" + (path() / "ids.db").string();
  using handle = sqlite_handle;
};
struct on_postgres {
  std::string url = new_database<postgres_server>();
  using handle = postgres_handle;
};
struct on_mariadb {
  std::string url = new_database<mariadb_server>();
  using handle = mariadb_handle;
};

template <class Place>
class SequenceOn : public ::testing::Test {
 protected:
  Place place;
  database db = open(place.url);
  sequence_options made{.store = {.create_schema = true}};
};
using places = ::testing::Types<on_sqlite, on_postgres, on_mariadb>;
TYPED_TEST_SUITE(SequenceOn, places);

TYPED_TEST(SequenceOn, TransactionsOfTheCallersLeaveNoGaps) {
  auto ids = this->db.sequence("invoice", this->made);
  typename TypeParam::handle own(this->place.url);
  auto joined = own.joined();
  EXPECT_EQ(failure_of([&] { (void)ids.next_in_transaction(joined); }).code(), errc::invalid_argument) << "no transaction";
  own.run(TypeParam::handle::begin);
  EXPECT_EQ(ids.next_in_transaction(joined), 1);
  EXPECT_EQ(ids.next_in_transaction(joined), 2);
  own.run("ROLLBACK");
  EXPECT_EQ(ids.peek(), std::nullopt) << "rolled back, and never there";
  for (int i = 1; i <= 3; ++i) {
    own.run(TypeParam::handle::begin);
    EXPECT_EQ(ids.next_in_transaction(joined), i);
    own.run("COMMIT");
  }
  EXPECT_EQ(ids.peek(), 3);
  EXPECT_EQ(ids.next(), 4) << "a block after that is another way to use it, and as unique";
  auto small = this->db.sequence("small", {.blocks = fixed_blocks{1}, .max = 1});
  own.run(TypeParam::handle::begin);
  EXPECT_EQ(small.next_in_transaction(joined), 1);
  EXPECT_EQ(failure_of([&] { (void)small.next_in_transaction(joined); }).code(), errc::out_of_range);
  own.run("ROLLBACK");
}

TYPED_TEST(SequenceOn, BlocksAreDrawnByManyAtOnce) {
  auto other_db = open(this->place.url);
  std::vector<sequence> all;
  all.push_back(this->db.sequence("shared", this->made));
  all.push_back(this->db.sequence("shared", {.blocks = adaptive_blocks{}}));
  all.push_back(other_db.sequence("shared"));
  std::vector<std::vector<std::int64_t>> drawn(all.size() * 2);
  {
    std::vector<std::jthread> threads;
    threads.reserve(drawn.size());
    for (std::size_t i = 0; i < drawn.size(); ++i) {
      threads.emplace_back([&, i] {
        for (int k = 0; k < 150; ++k) drawn[i].push_back(all[i / 2].next(steady::now() + 1min));
        EXPECT_TRUE(std::is_sorted(drawn[i].begin(), drawn[i].end()));
      });
    }
  }
  std::set<std::int64_t> distinct;
  for (const auto& mine : drawn) distinct.insert(mine.begin(), mine.end());
  EXPECT_EQ(distinct.size(), 150 * drawn.size());
  EXPECT_LE(*distinct.rbegin(), all.front().peek());
}

std::vector<block_request> hundred_requests(std::vector<std::string>& names) {
  names.reserve(100);
  for (int i = 0; i < 100; ++i) names.push_back("s" + std::to_string(i));
  std::vector<block_request> requests;
  requests.reserve(names.size());
  for (const auto& each : names) requests.push_back({.name = each, .count = 20});
  return requests;
}

TEST(SequenceOnPostgres, AHundredCountersAreOneTransaction) {
  const auto& server = shared_server<postgres_server>();
  const auto name = server.create_database("sequence");
  const auto store = open(server.url(name)).block_store({.create_schema = true});
  std::vector<std::string> names;
  const auto requests = hundred_requests(names);
  EXPECT_EQ(store->allocate(requests).size(), 100U);
  EXPECT_EQ(store->allocate(requests).back().block.first(), 21);
  EXPECT_EQ(server.run("SELECT count(DISTINCT xmin::text) || '/' || count(*) FROM SEQUENCES", name).substr(0, 5), "1/100");
}

/// A commit is the frame of the log that says how large the database is then.
int commits_in_log(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  const std::string log{std::istreambuf_iterator<char>(in), {}};
  const auto number = [&](std::size_t at) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i) value = value << 8U | static_cast<unsigned char>(log.at(at + i));
    return value;
  };
  int commits = 0;
  if (log.size() < 32) return 0;
  for (std::size_t at = 32; at + 24 <= log.size(); at += 24 + number(8)) commits += number(at + 4) != 0 ? 1 : 0;
  return commits;
}

TEST(SequenceOnSqlite, AHundredCountersAreOneCommit) {
  const on_sqlite place;
  const auto store = open(place.url).block_store({.create_schema = true});
  std::vector<std::string> names;
  const auto requests = hundred_requests(names);
  const auto log = (place.path() / "ids.db-wal").string();
  const int before = commits_in_log(log);
  EXPECT_EQ(store->allocate(requests).size(), 100U);
  EXPECT_EQ(commits_in_log(log), before + 1);
}

/// Draws ids in a child process that was forked off while other threads were drawing, and gives them back.
template <class Draw>
std::vector<std::int64_t> in_a_child(Draw draw) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe(ends.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    int code = 1;
    try {
      const std::vector<std::int64_t> ids = draw();
      const auto bytes = ids.size() * sizeof(std::int64_t);
      code = ::write(ends[1], ids.data(), bytes) == static_cast<ssize_t>(bytes) ? 0 : 2;
    } catch (const error& e) {
      (void)!::write(STDERR_FILENO, e.what(), std::string_view(e.what()).size());
    }
    ::_exit(code);
  }
  ::close(ends[1]);
  std::vector<std::int64_t> got;
  for (std::int64_t id = 0; ::read(ends[0], &id, sizeof id) == sizeof id;) got.push_back(id);
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  return got;
}

template <class Place>
void children_share_nothing() {
  Place place;
  auto db = open(place.url);
  auto ids = db.sequence("family", {.blocks = fixed_blocks{1000}, .store = {.create_schema = true}});
  auto handle = ids.handle();
  std::vector<std::int64_t> all;
  std::atomic<bool> stop{false};
  std::vector<std::int64_t> beside;
  std::jthread busy([&] {
    while (!stop) {
      beside.push_back(ids.next(steady::now() + 1min));
      std::this_thread::sleep_for(100us);
    }
  });
  const auto draw_some = [&] {
    for (int i = 0; i < 10; ++i) {
      all.push_back(ids.next());
      all.push_back(handle.next());
    }
  };
  draw_some();
  const auto draw = [&] {
    std::vector<std::int64_t> mine;
    mine.reserve(60);
    for (int i = 0; i < 30; ++i) {
      mine.push_back(ids.next(steady::now() + 1min));
      mine.push_back(handle.next());
    }
    return mine;
  };
  for (int child = 0; child < 3; ++child) {
    const auto theirs = in_a_child([&] {
      auto mine = draw();
      const auto grandchild = in_a_child(draw);
      mine.insert(mine.end(), grandchild.begin(), grandchild.end());
      const auto more = draw();
      mine.insert(mine.end(), more.begin(), more.end());
      return mine;
    });
    EXPECT_EQ(theirs.size(), 180U);
    all.insert(all.end(), theirs.begin(), theirs.end());
    draw_some();
  }
  stop = true;
  busy.join();
  all.insert(all.end(), beside.begin(), beside.end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end()) << "a child had the block of its parent";
}

TEST(SequenceOnPostgres, ChildrenShareNothing) { children_share_nothing<on_postgres>(); }
TEST(SequenceOnMariaDb, ChildrenShareNothing) { children_share_nothing<on_mariadb>(); }

/// SQLite cannot be opened twice across a fork, so the child is told; an id of the parent's block it never gets.
TEST(SequenceOnSqlite, AChildIsRefused) {
  const on_sqlite place;
  auto db = open(place.url);
  auto ids = db.sequence("family", {.store = {.create_schema = true}});
  EXPECT_EQ(ids.next(), 1);
  EXPECT_EQ(
      in_a_child([&] { return std::vector<std::int64_t>{failure_of([&] { (void)ids.next(); }).code() == errc::invalid_argument ? 1 : 0}; }),
      std::vector<std::int64_t>{1});
  EXPECT_EQ(ids.next(), 2);
}

/// The database committed, and the answer got lost: the block is a gap.
TEST(SequenceOnPostgres, ALostReplyIsAGap) {
  const auto& server = shared_server<postgres_server>();
  const auto name = server.create_database("sequence");
  cutting_proxy proxy(server.port());
  auto db = open(server.url_through(proxy.port(), name));
  auto ids = db.sequence("lost", {.blocks = fixed_blocks{1}, .store = {.create_schema = true}});
  std::int64_t before = 0;
  for (std::uint64_t i = 0; i < 8; ++i) {
    if (i != 0) proxy.cut_after(flow::to_client, i * 7);
    const auto id = ids.next(steady::now() + 1min);
    ASSERT_GT(id, before);
    before = id;
  }
  EXPECT_GE(ids.stats().in_doubt, 1U);
}

void isolate_by(const postgres_endpoint& server, const std::string& name, const std::string& level) {
  server.run("ALTER DATABASE " + name + " SET default_transaction_isolation = '" + level + "'");
}

/// The first row is made by many at once, whatever the isolation of the database is.
TEST(SequenceOnPostgres, TheIsolationOfTheDatabaseDoesNotMatter) {
  const auto& server = shared_server<postgres_server>();
  for (const std::string level : {"repeatable read", "serializable"}) {
    const auto name = server.create_database("sequence");
    isolate_by(server, name, level);
    (void)open(server.url(name)).block_store({.create_schema = true});
    std::vector<std::vector<std::int64_t>> drawn(4);
    {
      std::vector<std::jthread> threads;
      threads.reserve(drawn.size());
      for (auto& mine : drawn) {
        threads.emplace_back([&] {
          auto db = open(server.url(name));
          auto ids = db.sequence("first", {.blocks = fixed_blocks{5}});
          for (int i = 0; i < 40; ++i) mine.push_back(ids.next(steady::now() + 1min));
        });
      }
    }
    std::set<std::int64_t> distinct;
    for (const auto& mine : drawn) distinct.insert(mine.begin(), mine.end());
    EXPECT_EQ(distinct.size(), 160U) << level;
  }
}

TEST(SequenceOnPostgres, AServerThatForgetsIsRefused) {
  const auto& server = shared_server<postgres_server>();
  const auto name = server.create_database("sequence");
  server.run("ALTER DATABASE " + name + " SET synchronous_commit = off");
  auto db = open(server.url(name));
  const auto why = failure_of([&] { (void)db.sequence("n", {.store = {.create_schema = true}}); });
  EXPECT_EQ(why.code(), errc::unsupported_type);
  EXPECT_NE(std::string(why.what()).find("synchronous_commit"), std::string::npos) << why.what();
  EXPECT_EQ(db.sequence("n", {.store = {.allow_unsafe = true}}).next(), 1);
}

TEST(SequenceOnSqlite, AFileThatForgetsIsRefused) {
  const on_sqlite place;
  auto db = open(place.url + "?synchronous=normal");
  EXPECT_EQ(failure_of([&] { (void)db.sequence("n", {.store = {.create_schema = true}}); }).code(), errc::unsupported_type);
}

/// Where the server is another than the one that the counter was last used with, what that one may have granted is left out.
TYPED_TEST(SequenceOn, AnotherServerLeavesOutWhatWasLost) {
  const sequence_store_options fenced{.create_schema = true, .failover_skip = 1000};
  if (this->db.dialect() == sql::dialect_id::sqlite) {
    EXPECT_EQ(failure_of([&] { (void)this->db.block_store(fenced); }).code(), errc::invalid_argument);
    return;
  }
  const auto store = this->db.block_store(fenced);
  const auto take = [&store](std::int64_t limit = last_ordinal) {
    const block_request request{.name = "n", .count = 10, .limit = limit};
    auto block = std::move(store->allocate({&request, 1}).front().block);
    return block.has_next() ? block.first() : 0;
  };
  EXPECT_EQ(take(), 1);
  EXPECT_EQ(take(), 11) << "the same server, the next block";
  typename TypeParam::handle own(this->place.url);
  own.run("UPDATE SEQUENCES SET INCARNATION = 'another'");
  EXPECT_EQ(take(), 1021);
  EXPECT_EQ(take(), 1031);
  EXPECT_TRUE(store->give_back("n", 1035, {.last = 1040, .epoch = 1}));
  own.run("UPDATE SEQUENCES SET INCARNATION = 'another'");
  EXPECT_FALSE(store->give_back("n", 1034, {.last = 1035, .epoch = 1})) << "what it knows may not be all that was granted";
  EXPECT_EQ(take(1500), 0) << "what is left out may be all there was";
  auto ids = this->db.sequence("joined", {.store = fenced});
  auto joined = own.joined();
  own.run(TypeParam::handle::begin);
  EXPECT_EQ(ids.next_in_transaction(joined), 1);
  own.run("COMMIT");
}

/// Where the table is not there yet, many may make it at the same moment.
TYPED_TEST(SequenceOn, ManyMayMakeTheTable) {
  for (int round = 0; round < 3; ++round) {
    const sequence_store_options fresh{.prefix = "R" + std::to_string(round) + "_", .create_schema = true};
    std::vector<database> all;
    all.reserve(4);
    for (int i = 0; i < 4; ++i) all.push_back(open(this->place.url));
    std::latch together(4);
    std::vector<std::jthread> threads;
    threads.reserve(all.size());
    for (auto& each : all) {
      threads.emplace_back([&] {
        (void)each.dialect();
        together.arrive_and_wait();
        EXPECT_NO_THROW((void)each.block_store(fresh)->peek("n"));
      });
    }
  }
}

}  // namespace
}  // namespace holdfast::test
