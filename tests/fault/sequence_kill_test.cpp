// Processes that draw ids are killed with SIGKILL, again and again: no id comes twice. The same
// test with a store whose blocks are used before they are committed finds duplicates, so the test
// can fail.
//
// Behind Sentinels, masters are replaced by copies that lag at the same time: a second counter
// without a fence finds duplicates.
//
// HOLDFAST_SEQUENCE_KILLS is the number of kills for each store; 100 by default, 20 on H2, the
// Cluster and Sentinels, where a process starts slowly. The long run is
// HOLDFAST_SEQUENCE_KILLS=1000 ctest --preset test -R '^sequence_kill'

#include <holdfast/database.hpp>
#include <holdfast/sequence.hpp>

#include "fault/sequence_ids.hpp"
#include "support/eventually.hpp"
#include "support/h2_server.hpp"
#include "support/kill_harness.hpp"
#include "support/ledger.hpp"
#include "support/mariadb_server.hpp"
#include "support/postgres_server.hpp"
#include "support/redis_cluster.hpp"
#include "support/redis_sentinels.hpp"
#include "support/redis_server.hpp"
#include "support/shared_server.hpp"
#include "support/temporary_directory.hpp"
#include "support/worker.hpp"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <future>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

struct used_id {
  std::int64_t id = 0;
};

/// `usual`: in a daily run.
std::size_t number_of_kills(std::size_t usual) {
  const char* number = std::getenv("HOLDFAST_SEQUENCE_KILLS");  // NOLINT(concurrency-mt-unsafe)
  return number == nullptr ? usual : std::strtoull(number, nullptr, 10);
}

sequence_options options_with(std::int64_t block) {
  if (block == 0) return {.blocks = adaptive_blocks{.smallest = 5, .largest = 1000}, .wait = 60s};
  return {.blocks = fixed_blocks{.size = block}, .wait = 60s};
}

/// Draws ids, and writes each one to the book.
void draw_until_killed(sequence& ids, const std::string& book_path) {
  ledger<used_id> book(book_path);
  book.add({ids.next()});
  worker_is_alive();
  while (!worker_should_stop()) {
    for (int i = 0; i < 50; ++i) book.add({ids.next()});
  }
}

// Arguments: book, block size, URL of the counters, and for Redis the URL of the super-blocks.
HOLDFAST_WORKER(drawer) {
  auto options = options_with(std::stoll(arguments.at(1)));
  if (arguments.size() > 3)
    options.store.fence = super_blocks{.source = open(arguments.at(3)).block_store(), .size = 5000};
  auto ids = open(arguments.at(2)).sequence("torture.id", std::move(options));
  draw_until_killed(ids, arguments.at(0));
  return 0;
}

/// Draws from a counter that forgets ids. A process that sees it go back begins again, like a
/// process that starts then.
class forgetful_drawing {
 public:
  explicit forgetful_drawing(const std::string& url) : database_(open(url)) {}

  std::int64_t next() {
    for (;;) {
      if (!ids_) ids_.emplace(database_.sequence("torture.id", options()));
      try {
        return ids_->next();
      } catch (const error& failure) {
        if (failure.code() != errc::tampered) throw;
        ids_.reset();
      }
    }
  }

 private:
  static sequence_options options() {
    auto options = options_with(20);
    options.store = {.prefix = "bare:", .allow_unsafe = true, .fence = no_fence{}};
    return options;
  }

  database database_;
  std::optional<sequence> ids_{};
};

/// Draws from a counter with super-blocks and from one without a fence, in turn. Arguments: book,
/// block size, URL of the counters, URL of the super-blocks, book of the counter without a fence.
HOLDFAST_WORKER(fenced_and_bare_drawer) {
  auto options = options_with(std::stoll(arguments.at(1)));
  options.store.fence = super_blocks{.source = open(arguments.at(3)).block_store(), .size = 5000};
  auto fenced = open(arguments.at(2)).sequence("torture.id", std::move(options));
  forgetful_drawing bare(arguments.at(2));
  ledger<used_id> fenced_book(arguments.at(0));
  ledger<used_id> bare_book(arguments.at(4));
  const auto draw = [&] {
    fenced_book.add({fenced.next()});
    bare_book.add({bare.next()});
  };
  draw();
  worker_is_alive();
  while (!worker_should_stop()) {
    for (int i = 0; i < 50; ++i) draw();
  }
  return 0;
}

/// A wrong block store on SQLite: it uses the row of RETURNING at once. The statement commits only
/// when it is stepped to its end, which happens at the next call.
class hasty_block_store final : public block_store {
 public:
  /// Creates the file. Must be called before it is opened elsewhere: SQLite refuses a change of the
  /// journal mode at once, whatever the busy timeout is.
  static void create(const std::string& file) {
    sqlite3* database = nullptr;
    const bool created = sqlite3_open(file.c_str(), &database) == SQLITE_OK &&
                         sqlite3_exec(database,
                                      "PRAGMA journal_mode=WAL; CREATE TABLE hasty(last INTEGER); "
                                      "INSERT INTO hasty VALUES (0)",
                                      nullptr, nullptr, nullptr) == SQLITE_OK;
    const std::string problem = created ? "" : sqlite3_errmsg(database);
    sqlite3_close(database);
    if (!created) throw std::runtime_error(problem);
  }

  explicit hasty_block_store(const std::string& file) {
    check(sqlite3_open(file.c_str(), &database_) == SQLITE_OK);
    sqlite3_busy_timeout(database_, 60'000);
    check(sqlite3_exec(database_, "PRAGMA synchronous=FULL", nullptr, nullptr, nullptr) ==
          SQLITE_OK);
    check(sqlite3_prepare_v2(database_, "UPDATE hasty SET last = last + ? RETURNING last", -1,
                             &advance_, nullptr) == SQLITE_OK);
  }
  hasty_block_store(const hasty_block_store&) = delete;
  hasty_block_store& operator=(const hasty_block_store&) = delete;
  ~hasty_block_store() override {
    sqlite3_finalize(advance_);
    sqlite3_close(database_);
  }

  std::vector<block_grant> allocate(std::span<const block_request> requests) override {
    sqlite3_reset(advance_);  // commits the grant before this one
    sqlite3_bind_int64(advance_, 1, requests.front().count);
    check(sqlite3_step(advance_) == SQLITE_ROW);
    const auto last = sqlite3_column_int64(advance_, 0);
    std::vector<block_grant> grants(1);
    grants.front() = {.block = sequence_block(last - requests.front().count + 1, last), .epoch = 1};
    return grants;
  }
  std::optional<counter_state> peek(std::string_view) override { return std::nullopt; }
  counter_state ensure_at_least(std::string_view, std::int64_t) override { return {}; }
  bool reset(std::string_view, std::int64_t, counter_state) override { return false; }
  bool give_back(std::string_view, std::int64_t, counter_state) override { return false; }
  std::vector<named_counter> list(std::size_t, std::string_view) override { return {}; }
  std::vector<std::string> unsafe_settings() override { return {}; }

 private:
  void check(bool succeeded) const {
    if (!succeeded) throw std::runtime_error(sqlite3_errmsg(database_));
  }
  sqlite3* database_ = nullptr;
  sqlite3_stmt* advance_ = nullptr;
};

HOLDFAST_WORKER(hasty_drawer) {
  const sequence_source source(std::make_shared<hasty_block_store>(arguments.at(1)));
  auto ids = source.sequence("torture.id", options_with(20));
  draw_until_killed(ids, arguments.at(0));
  return 0;
}

class SequenceKill : public testing::Test {
 protected:
  /// How many ids came twice. The arguments of the worker are the book, a block size if `sized`,
  /// and `more_arguments`. If `finished` is set, the kills go on until it returns true.
  std::size_t duplicates(const std::string& worker, bool sized,
                         const std::vector<std::string>& more_arguments,
                         std::size_t usual_kills = 100, std::function<bool()> finished = {}) {
    const std::size_t kills = number_of_kills(usual_kills);
    const auto report =
        kill_harness({.workers = 3,
                      .kills = kills,
                      .finished = std::move(finished),
                      .longest = 15ms,
                      .log = directory.path() / "log"})
            .run(worker, [&](std::size_t number, std::size_t generation) {
              std::vector<std::string> arguments{book};
              // 0: adaptive
              static constexpr std::array sizes{"20", "1", "0", "1000"};
              if (sized) arguments.emplace_back(sizes.at((number + generation) % sizes.size()));
              arguments.insert(arguments.end(), more_arguments.begin(), more_arguments.end());
              return arguments;
            });
    EXPECT_GE(report.killed, kills);
    EXPECT_TRUE(report.failures.empty()) << report.failures.front();
    std::cout << report.killed << " kills, ";
    return duplicates_in(book, kills);
  }
  /// How many of at least `fewest` ids are in a book twice.
  static std::size_t duplicates_in(const std::string& book, std::size_t fewest) {
    std::vector<std::int64_t> ids;
    for (const auto& used : ledger<used_id>(book).read()) ids.push_back(used.id);
    EXPECT_GT(ids.size(), fewest) << "too few ids were drawn to prove anything";
    const auto count = count_duplicates(ids);
    std::cout << ids.size() << " ids, " << count << " of them twice\n";
    return count;
  }
  /// Creates the table, before a process is killed.
  static void prepare(const std::string& url) {
    (void)open(url).block_store({.create_schema = true})->list(1);
  }

  temporary_directory directory{"sequence", "", medium::memory};
  std::string file = "sqlite://" + (directory.path() / "ids.db").string();
  std::string book = (directory.path() / "book").string();
};

TEST_F(SequenceKill, NoIdTwiceOnSqlite) {
  prepare(file);
  EXPECT_EQ(duplicates("drawer", true, {file}), 0U);
}

TEST_F(SequenceKill, NoIdTwiceOnPostgres) {
  const auto& server = shared_server<postgres_server>();
  const auto url = server.url(server.create_database("sequence"));
  prepare(url);
  EXPECT_EQ(duplicates("drawer", true, {url}), 0U);
}

TEST_F(SequenceKill, NoIdTwiceOnMariadb) {
  const auto& server = shared_server<mariadb_server>();
  const auto url = server.url(server.create_database("sequence"));
  prepare(url);
  EXPECT_EQ(duplicates("drawer", true, {url}), 0U);
}

TEST_F(SequenceKill, NoIdTwiceOnRedis) {
  const redis_server server;
  prepare(file);
  EXPECT_EQ(duplicates("drawer", true, {server.url(), file}), 0U);
}

TEST_F(SequenceKill, NoIdTwiceOnARedisCluster) {
  const auto& cluster = shared_server<redis_cluster>();
  prepare(file);
  EXPECT_EQ(duplicates("drawer", true, {cluster.url(), file}, 20), 0U);
}

TEST_F(SequenceKill, NoIdTwiceOnH2) {
  const auto& server = shared_server<h2_server>();
  const auto url = server.url(server.create_database("sequence"));
  prepare(url);
  EXPECT_EQ(duplicates("drawer", true, {url}, 20), 0U);
}

/// Cuts the replicas off from their master and kills it when more was drawn. A replica that does
/// not know the last ids becomes the master.
void promote_a_lagging_replica(redis_sentinels& servers, const std::function<void()>& draw_more) {
  const auto old = servers.master().value();
  const auto for_each_replica = [&](const std::vector<std::string>& command) {
    for (std::size_t i = 0; i < servers.size(); ++i) {
      if (i != old) servers.node(i).run(command);
    }
  };
  // They cannot log in any more. The servers ask for no password, so any is refused.
  for_each_replica({"CONFIG", "SET", "masteruser", "nobody", "masterauth", "nothing"});
  servers.node(old).run({"CLIENT", "KILL", "TYPE", "replica"});
  draw_more();
  servers.node(old).kill9();
  (void)servers.fail_over();
  draw_more();
  for_each_replica({"CONFIG", "SET", "masteruser", "", "masterauth", ""});
  servers.node(old).start();
  servers.wait_until_well();
}

/// One failover for every hundred kills.
TEST_F(SequenceKill, NoIdTwiceBehindSentinelsThatPromoteALaggingReplica) {
  redis_sentinels servers;
  prepare(file);
  const auto bare_book = (directory.path() / "bare").string();
  const auto draw_more = [&] {
    const auto size_of_book = [&] {
      std::error_code missing;
      const auto size = std::filesystem::file_size(bare_book, missing);
      return missing ? 0 : size;
    };
    constexpr std::uintmax_t bytes = 500 * sizeof(used_id);
    if (!eventually([&, before = size_of_book()] { return size_of_book() > before + bytes; }, 60s))
      throw std::runtime_error("no ids were drawn for a minute");
  };
  const auto failovers = std::max<std::size_t>(1, number_of_kills(20) / 100);
  auto replacing_masters = std::async(std::launch::async, [&] {
    for (std::size_t i = 0; i < failovers; ++i) {
      draw_more();
      promote_a_lagging_replica(servers, draw_more);
    }
  });
  const auto finished = [&] { return replacing_masters.wait_for(0s) == std::future_status::ready; };
  EXPECT_EQ(
      duplicates("fenced_and_bare_drawer", true, {servers.url(), file, bare_book}, 20, finished),
      0U);
  replacing_masters.get();
  std::cout << failovers << " failovers; without a fence ";
  EXPECT_GT(duplicates_in(bare_book, 500), 0U) << "no replica lagged, so nothing is proved";
}

TEST_F(SequenceKill, AStoreThatIsUsedBeforeItCommitsGivesIdsTwice) {
  const auto hasty = (directory.path() / "hasty.db").string();
  hasty_block_store::create(hasty);
  EXPECT_GT(duplicates("hasty_drawer", false, {hasty}), 0U);
}

}  // namespace
}  // namespace holdfast::test
