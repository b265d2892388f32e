// Processes that draw ids are killed with SIGKILL, again and again: no id comes twice. The same
// test with a store whose blocks are used before they are committed finds duplicates, so the test
// can fail.
//
// HOLDFAST_SEQUENCE_KILLS is the number of kills for each store; 100 by default, 20 on H2 and the
// Cluster, where a process starts slowly. The long run is
// HOLDFAST_SEQUENCE_KILLS=1000 ctest --preset test -R '^sequence_kill'

#include <holdfast/database.hpp>
#include <holdfast/sequence.hpp>

#include "fault/sequence_ids.hpp"
#include "support/h2_server.hpp"
#include "support/kill_harness.hpp"
#include "support/ledger.hpp"
#include "support/mariadb_server.hpp"
#include "support/postgres_server.hpp"
#include "support/redis_cluster.hpp"
#include "support/redis_server.hpp"
#include "support/shared_server.hpp"
#include "support/temporary_directory.hpp"
#include "support/worker.hpp"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
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
  /// and `more_arguments`.
  std::size_t duplicates(const std::string& worker, bool sized,
                         const std::vector<std::string>& more_arguments,
                         std::size_t usual_kills = 100) {
    const std::size_t kills = number_of_kills(usual_kills);
    const auto book = (directory.path() / "book").string();
    const auto report =
        kill_harness(
            {.workers = 3, .kills = kills, .longest = 15ms, .log = directory.path() / "log"})
            .run(worker, [&](std::size_t number, std::size_t generation) {
              std::vector<std::string> arguments{book};
              // 0: adaptive
              static constexpr std::array sizes{"20", "1", "0", "1000"};
              if (sized) arguments.emplace_back(sizes.at((number + generation) % sizes.size()));
              arguments.insert(arguments.end(), more_arguments.begin(), more_arguments.end());
              return arguments;
            });
    EXPECT_EQ(report.killed, kills);
    EXPECT_TRUE(report.failures.empty()) << report.failures.front();
    std::vector<std::int64_t> ids;
    for (const auto& used : ledger<used_id>(book).read()) ids.push_back(used.id);
    EXPECT_GT(ids.size(), kills) << "too few ids were drawn to prove anything";
    const auto count = count_duplicates(ids);
    std::cout << report.killed << " kills, " << ids.size() << " ids, " << count
              << " of them twice\n";
    return count;
  }
  /// Creates the table, before a process is killed.
  static void prepare(const std::string& url) {
    (void)open(url).block_store({.create_schema = true})->list(1);
  }

  temporary_directory directory{"sequence", "", medium::memory};
  std::string file = "sqlite://" + (directory.path() / "ids.db").string();
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

TEST_F(SequenceKill, AStoreThatIsUsedBeforeItCommitsGivesIdsTwice) {
  const auto hasty = (directory.path() / "hasty.db").string();
  hasty_block_store::create(hasty);
  EXPECT_GT(duplicates("hasty_drawer", false, {hasty}), 0U);
}

}  // namespace
}  // namespace holdfast::test
