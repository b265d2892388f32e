// Sequences on real databases: transactions of the caller, many counters in one commit, forked
// children, lost replies, unsafe settings.

#include <holdfast/database.hpp>
#include <holdfast/sequence.hpp>

#include "contract/sequence_fork.hpp"
#include "support/cutting_proxy.hpp"
#include "support/failure_of.hpp"
#include "support/mariadb_server.hpp"
#include "support/own_handles.hpp"
#include "support/postgres_server.hpp"
#include "support/shared_server.hpp"
#include "support/temporary_directory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <latch>
#include <memory>
#include <set>
#include <sstream>
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

template <class Database>
class SequenceOn : public ::testing::Test {
 protected:
  Database server;
  database db = open(server.url);
  sequence_options creating{.store = {.create_schema = true}};
};
using databases = ::testing::Types<on_sqlite, on_postgres, on_mariadb>;
TYPED_TEST_SUITE(SequenceOn, databases);

TYPED_TEST(SequenceOn, TransactionsOfTheCallerLeaveNoGaps) {
  auto ids = this->db.sequence("invoice", this->creating);
  typename TypeParam::handle own(this->server.url);
  auto joined = own.joined();
  EXPECT_EQ(failure_of([&] { (void)ids.next_in_transaction(joined); }).code(),
            errc::invalid_argument)
      << "no transaction";
  own.run(TypeParam::handle::begin);
  EXPECT_EQ(ids.next_in_transaction(joined), 1);
  EXPECT_EQ(ids.next_in_transaction(joined), 2);
  own.run("ROLLBACK");
  EXPECT_EQ(ids.peek(), std::nullopt) << "a rollback leaves no counter";
  for (int i = 1; i <= 3; ++i) {
    own.run(TypeParam::handle::begin);
    EXPECT_EQ(ids.next_in_transaction(joined), i);
    own.run("COMMIT");
  }
  EXPECT_EQ(ids.peek(), 3);
  EXPECT_EQ(ids.next(), 4) << "a block after that is unique, too";
  auto small = this->db.sequence("small", {.blocks = fixed_blocks{1}, .max = 1});
  own.run(TypeParam::handle::begin);
  EXPECT_EQ(small.next_in_transaction(joined), 1);
  EXPECT_EQ(failure_of([&] { (void)small.next_in_transaction(joined); }).code(),
            errc::out_of_range);
  own.run("ROLLBACK");
}

TYPED_TEST(SequenceOn, ManyThreadsDrawAtOnce) {
  auto other_db = open(this->server.url);
  std::vector<sequence> all;
  all.push_back(this->db.sequence("shared", this->creating));
  all.push_back(this->db.sequence("shared", {.blocks = adaptive_blocks{}}));
  all.push_back(other_db.sequence("shared"));
  (void)all.front().peek();  // creates the table
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
  for (const auto& ids : drawn) distinct.insert(ids.begin(), ids.end());
  EXPECT_EQ(distinct.size(), 150 * drawn.size());
  EXPECT_LE(*distinct.rbegin(), all.front().peek());
}

std::vector<block_request> hundred_requests(std::vector<std::string>& names) {
  names.reserve(100);
  for (int i = 0; i < 100; ++i) names.push_back("s" + std::to_string(i));
  std::vector<block_request> requests;
  requests.reserve(names.size());
  for (const auto& name : names) requests.push_back({.name = name, .count = 20});
  return requests;
}

TEST(SequenceOnPostgres, AHundredCountersAreOneTransaction) {
  const auto& server = shared_server<postgres_server>();
  const auto name = server.create_database("sequence");
  const auto store = open(server.url(name)).block_store({.create_schema = true});
  (void)store->list(1);  // creates the table
  std::vector<std::string> names;
  const auto requests = hundred_requests(names);
  EXPECT_EQ(store->allocate(requests).size(), 100U);
  EXPECT_EQ(store->allocate(requests).back().block.first(), 21);
  EXPECT_EQ(server.run("SELECT count(DISTINCT xmin::text) || '/' || count(*) FROM SEQUENCES", name)
                .substr(0, 5),
            "1/100");
}

/// A frame of the log is a commit if it has the size of the database in its header.
int commits_in_log(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  const std::string log{std::istreambuf_iterator<char>(stream), {}};
  const auto number = [&](std::size_t offset) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i)
      value = value << 8U | static_cast<unsigned char>(log.at(offset + i));
    return value;
  };
  int commits = 0;
  if (log.size() < 32) return 0;
  for (std::size_t frame = 32; frame + 24 <= log.size(); frame += 24 + number(8))
    commits += number(frame + 4) != 0 ? 1 : 0;
  return commits;
}

TEST(SequenceOnSqlite, AHundredCountersAreOneCommit) {
  const on_sqlite directory;
  const auto store = open(directory.url).block_store({.create_schema = true});
  (void)store->list(1);  // creates the table
  std::vector<std::string> names;
  const auto requests = hundred_requests(names);
  const auto log = (directory.path() / "ids.db-wal").string();
  const int before = commits_in_log(log);
  EXPECT_EQ(store->allocate(requests).size(), 100U);
  EXPECT_EQ(commits_in_log(log), before + 1);
}

/// The child is refused before it touches a lock or a connection of its parent. With the database
/// opened again it draws other ids. (Not on SQLite: its own locks do not survive fork, so the child
/// of a process that has the file open must not open it.)
TYPED_TEST(SequenceOn, AForkedChildMustOpenTheDatabaseAgain) {
  auto ids =
      this->db.sequence("family", {.blocks = fixed_blocks{100}, .store = {.create_schema = true}});
  auto handle = ids.handle();
  const auto store = this->db.block_store();
  std::vector<std::int64_t> all;
  const auto draw = [&] {
    for (int i = 0; i < 120; ++i) {
      all.push_back(ids.next(steady::now() + 1min));
      all.push_back(handle.next());
    }
  };
  draw();
  {
    const std::jthread busy([&](const std::stop_token& stop) {
      while (!stop.stop_requested()) (void)ids.next(steady::now() + 1min);
    });
    for (int i = 0; i < 5; ++i) {
      EXPECT_EQ(in_forked_child([&] {
                  return not_refused("peek of a store", [&] { (void)store->peek("family"); }) +
                         use_in_child(ids, handle);
                }),
                "");
    }
  }
  if (this->db.dialect() != sql::dialect_id::sqlite) {
    std::istringstream child_ids(in_forked_child([&] {
      auto own = open(this->server.url).sequence("family", {.blocks = fixed_blocks{100}});
      std::string text;
      for (int i = 0; i < 150; ++i) text += std::to_string(own.next(steady::now() + 1min)) + "\n";
      return text;
    }));
    for (std::int64_t id = 0; child_ids >> id;) all.push_back(id);
    EXPECT_EQ(all.size(), 240U + 150U);
  }
  draw();
  EXPECT_EQ(std::set<std::int64_t>(all.begin(), all.end()).size(), all.size())
      << "an id came twice";
}

/// The database committed, and the reply was lost: the block is a gap.
TEST(SequenceOnPostgres, ALostReplyIsAGap) {
  const auto& server = shared_server<postgres_server>();
  const auto name = server.create_database("sequence");
  cutting_proxy proxy(server.port());
  auto db = open(server.url_through(proxy.port(), name));
  auto ids = db.sequence("lost", {.blocks = fixed_blocks{1}, .store = {.create_schema = true}});
  std::int64_t last = 0;
  for (std::uint64_t i = 0; i < 8; ++i) {
    if (i != 0) proxy.cut_after(flow::to_client, i * 7);
    const auto id = ids.next(steady::now() + 1min);
    ASSERT_GT(id, last);
    last = id;
  }
  EXPECT_GE(ids.stats().in_doubt, 1U);
}

void set_isolation(const postgres_endpoint& server, const std::string& name,
                   const std::string& level) {
  server.run("ALTER DATABASE " + name + " SET default_transaction_isolation = '" + level + "'");
}

/// Many clients create the first row at once, with any isolation level.
TEST(SequenceOnPostgres, TheIsolationOfTheDatabaseDoesNotMatter) {
  const auto& server = shared_server<postgres_server>();
  for (const std::string level : {"repeatable read", "serializable"}) {
    const auto name = server.create_database("sequence");
    set_isolation(server, name, level);
    (void)open(server.url(name)).block_store({.create_schema = true})->list(1);
    std::vector<std::vector<std::int64_t>> drawn(4);
    {
      std::vector<std::jthread> threads;
      threads.reserve(drawn.size());
      for (auto& own : drawn) {
        threads.emplace_back([&] {
          auto db = open(server.url(name));
          auto ids = db.sequence("first", {.blocks = fixed_blocks{5}});
          for (int i = 0; i < 40; ++i) own.push_back(ids.next(steady::now() + 1min));
        });
      }
    }
    std::set<std::int64_t> distinct;
    for (const auto& ids : drawn) distinct.insert(ids.begin(), ids.end());
    EXPECT_EQ(distinct.size(), 160U) << level;
  }
}

TEST(SequenceOnPostgres, AServerThatForgetsIsRefused) {
  const auto& server = shared_server<postgres_server>();
  const auto name = server.create_database("sequence");
  server.run("ALTER DATABASE " + name + " SET synchronous_commit = off");
  auto db = open(server.url(name));
  const auto failure =
      failure_of([&] { (void)db.sequence("n", {.store = {.create_schema = true}}).next(); });
  EXPECT_EQ(failure.code(), errc::unsupported_type);
  EXPECT_NE(std::string(failure.what()).find("synchronous_commit"), std::string::npos)
      << failure.what();
  EXPECT_EQ(open(server.url(name)).sequence("n", {.store = {.allow_unsafe = true}}).next(), 1);
}

TEST(SequenceOnSqlite, AFileThatForgetsIsRefused) {
  const on_sqlite directory;
  auto db = open(directory.url + "?synchronous=normal");
  auto ids = db.sequence("n", {.store = {.create_schema = true}});
  EXPECT_EQ(failure_of([&] { (void)ids.next(); }).code(), errc::unsupported_type);
  EXPECT_EQ(failure_of([&] { (void)ids.ensure_at_least(7); }).code(), errc::unsupported_type);
}

/// A server that did not grant the last block skips the ordinals that the other one may have
/// granted.
TYPED_TEST(SequenceOn, AnotherServerSkipsWhatMayBeLost) {
  const sequence_store_options fenced{.create_schema = true, .failover_skip = 1000};
  if (this->db.dialect() == sql::dialect_id::sqlite) {
    EXPECT_EQ(failure_of([&] { (void)this->db.block_store(fenced); }).code(),
              errc::invalid_argument);
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
  typename TypeParam::handle own(this->server.url);
  own.run("UPDATE SEQUENCES SET INCARNATION = 'another'");
  EXPECT_EQ(take(), 1021);
  EXPECT_EQ(take(), 1031);
  EXPECT_TRUE(store->give_back("n", 1035, {.last = 1040, .epoch = 1}));
  own.run("UPDATE SEQUENCES SET INCARNATION = 'another'");
  EXPECT_FALSE(store->give_back("n", 1034, {.last = 1035, .epoch = 1}))
      << "it may not know of all grants";
  EXPECT_EQ(take(1500), 0) << "all remaining ordinals may be skipped";
  auto ids = this->db.sequence("joined", {.store = fenced});
  auto joined = own.joined();
  own.run(TypeParam::handle::begin);
  EXPECT_EQ(ids.next_in_transaction(joined), 1);
  own.run("COMMIT");
}

TYPED_TEST(SequenceOn, ManyClientsCreateTheTableAtOnce) {
  for (int round = 0; round < 3; ++round) {
    const sequence_store_options fresh{.prefix = "R" + std::to_string(round) + "_",
                                       .create_schema = true};
    std::vector<database> clients;
    clients.reserve(4);
    for (int i = 0; i < 4; ++i) clients.push_back(open(this->server.url));
    std::latch together(4);
    std::vector<std::jthread> threads;
    threads.reserve(clients.size());
    for (auto& client : clients) {
      threads.emplace_back([&] {
        (void)client.dialect();
        together.arrive_and_wait();
        EXPECT_NO_THROW((void)client.block_store(fresh)->peek("n"));
      });
    }
  }
}

}  // namespace
}  // namespace holdfast::test
