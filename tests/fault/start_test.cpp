// Programs that start while their database is down, hangs or refuses them.

#include <holdfast/database.hpp>
#include <holdfast/failover.hpp>
#include <holdfast/outbox.hpp>
#include <holdfast/worker.hpp>

#include "support/cutting_proxy.hpp"
#include "support/eventually.hpp"
#include "support/failure_of.hpp"
#include "support/mariadb_server.hpp"
#include "support/postgres_server.hpp"
#include "support/redis_server.hpp"
#include "support/running_worker.hpp"
#include "support/shared_server.hpp"
#include "support/temporary_directory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;
using ::testing::HasSubstr;

/// A limit that must not be reached.
constexpr auto never = 60s;
/// How soon stored answers must be usable after the database is back.
constexpr auto soon_enough = 2s;

/// Threads that contact a store.
int connecting_threads() {
  int count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    if (name == "hf-connect") ++count;
  }
  return count;
}

/// An upstream that can be down, protected by an engine from a file.
class protected_program {
 public:
  protected_program(const std::string& url, const std::string& settings = {})
      : engine_(engine::from_config(file(url, settings), {.linger = 100ms})) {}

  /// The answer, and whether it is live.
  [[nodiscard]] answer<std::string> call(int id) const { return point_(id); }
  /// Whether a stored answer is served while the upstream is down.
  [[nodiscard]] bool recovers(int id) {
    down_ = true;
    const auto result = point_.try_call(id);
    down_ = false;
    return result.has_value() && result->stale();
  }
  [[nodiscard]] holdfast::engine& engine() { return engine_; }

 private:
  [[nodiscard]] std::string file(const std::string& url, const std::string& settings) const {
    const auto path = directory_.path() / "app.toml";
    std::ofstream(path) << "[failover.store]\nurl = \"" << url << "\"\ncreate-schema = true\n"
                        << settings << "[failover]\nread-deadline = \"30s\"\n";
    return path.string();
  }

  temporary_directory directory_{};
  std::atomic<bool> down_{false};
  holdfast::engine engine_;
  const point<std::string(int)> point_ =
      engine_.protect("answer", {.expiry = 24h}, [this](int id) -> std::string {
        if (down_) throw std::runtime_error("down");
        return "answer " + std::to_string(id);
      });
};

/// A program starts while its database is absent, and `come_back` brings that back. Checks all but
/// the time, and returns how long it took until a stored answer was served.
template <class ComeBack>
steady::duration start_without(const std::string& url, int stored_before, int first,
                               ComeBack come_back) {
  protected_program program(url);
  constexpr int calls = 300;
  for (int id = first; id < first + calls; ++id) EXPECT_TRUE(program.call(id).live());
  const auto health = program.engine().health();
  EXPECT_FALSE(health.healthy);
  EXPECT_THAT(health.problem, HasSubstr("the store has not been reached yet: "));
  EXPECT_EQ(health.unsaved, static_cast<std::uint64_t>(calls));
  EXPECT_TRUE(program.recovers(first)) << "from the queue";
  EXPECT_FALSE(program.recovers(stored_before));

  come_back();
  const auto back = steady::now();
  EXPECT_TRUE(eventually([&] { return program.recovers(stored_before); }, never));
  const auto elapsed = steady::now() - back;
  EXPECT_TRUE(program.engine().flush(steady::now() + never)) << "nothing is lost";
  EXPECT_TRUE(program.engine().health().healthy) << program.engine().health().problem;
  const auto store = open(url).store({.start = start_mode::require});
  for (int id = first; id < first + calls; ++id) EXPECT_TRUE(program.recovers(id));
  EXPECT_EQ(store->count("answer"), static_cast<std::uint64_t>(first + calls));
  EXPECT_TRUE(program.engine().close(steady::now() + never).clean());
  return elapsed;
}

template <class Server>
class StartOn : public ::testing::Test {};
using sql_servers = ::testing::Types<postgres_server, mariadb_server>;
TYPED_TEST_SUITE(StartOn, sql_servers);

TYPED_TEST(StartOn, CallsAreLiveWithoutTheDatabaseAndRecoverSoonAfterItsReturn) {
  TypeParam server;
  {
    protected_program before(server.url());
    for (int id = 0; id < 10; ++id) EXPECT_TRUE(before.call(id).live());
    EXPECT_TRUE(before.engine().close(steady::now() + never).clean());
  }
  // The fastest of several, because the machine may be busy.
  auto fastest = steady::duration::max();
  for (int turn = 0; turn < 3 && fastest > soon_enough; ++turn) {
    server.stop();
    fastest =
        std::min(fastest, start_without(server.url(), 5, 10 + 300 * turn, [&] { server.start(); }));
  }
  EXPECT_LE(fastest, soon_enough);
  std::cout << "usable after "
            << std::chrono::duration_cast<std::chrono::milliseconds>(fastest).count() << " ms\n";
}

TEST(StartOnSqlite, AMissingDirectoryIsADatabaseThatIsDown) {
  temporary_directory directory;
  const auto mounted = directory.path() / "mounted";
  const auto elsewhere = directory.path() / "elsewhere";
  const auto url = "sqlite://" + (mounted / "answers.db").string();
  std::filesystem::create_directory(mounted);
  {
    protected_program before(url);
    for (int id = 0; id < 10; ++id) EXPECT_TRUE(before.call(id).live());
    EXPECT_TRUE(before.engine().close(steady::now() + never).clean());
  }
  auto fastest = steady::duration::max();
  for (int turn = 0; turn < 3 && fastest > soon_enough; ++turn) {
    std::filesystem::rename(mounted, elsewhere);
    fastest = std::min(fastest, start_without(url, 5, 10 + 300 * turn, [&] {
                         std::filesystem::rename(elsewhere, mounted);
                       }));
  }
  EXPECT_LE(fastest, soon_enough);
}

/// A server that accepts connections and never answers.
TYPED_TEST(StartOn, AHungServerDelaysNeitherTheStartNorTheEnd) {
  TypeParam server;
  const std::string patient = "connect-timeout = \"120s\"\nstatement-timeout = \"120s\"\n";
  cutting_proxy blackhole(server.port());
  blackhole.accept(false);
  server.pause();
  for (const auto& url : {server.url(), server.url_through(blackhole.port())}) {
    const int left_behind = connecting_threads();
    const auto began = steady::now();
    {
      protected_program program(url, patient);
      EXPECT_TRUE(program.call(1).live());
      EXPECT_TRUE(eventually([&] { return connecting_threads() == left_behind + 1; }));
    }
    EXPECT_LT(steady::now() - began, never) << "the connect timeout is twice that";
  }
  server.resume();
  blackhole.accept();
  blackhole.cut();
  EXPECT_TRUE(eventually([] { return connecting_threads() == 0; }, never))
      << "what was left behind ends by itself";
}

TYPED_TEST(StartOn, RequireFailsAtOnce) {
  TypeParam server;
  server.stop();
  const auto refused =
      failure_of([&] { protected_program(server.url(), "start = \"require\"\n"); });
  EXPECT_EQ(refused.code(), errc::unavailable);
  EXPECT_TRUE(refused.transient());
  EXPECT_EQ(
      failure_of([&] { (void)open(server.url()).store({.start = start_mode::require}); }).code(),
      errc::unavailable);
}

/// A table that the probe refuses, which an operator repairs while the program runs, and a password
/// that is wrong.
TYPED_TEST(StartOn, WhatIsWrongForGoodIsToldAndCanBeRepaired) {
  const auto& server = shared_server<TypeParam>();
  const auto name = server.create_database("start");
  constexpr bool postgres = std::is_same_v<TypeParam, postgres_server>;
  server.run(postgres ? "CREATE TABLE FAILOVER_STORE (FAILOVER_NAME VARCHAR(50))"
                      : "CREATE TABLE FAILOVER_STORE (FAILOVER_NAME VARCHAR(50)) ENGINE=InnoDB",
             name);
  if (postgres) server.run("ALTER TABLE FAILOVER_STORE OWNER TO holdfast", name);
  std::mutex mutex;
  std::vector<std::string> errors;
  const auto log = [&](const log_record& record) {
    const std::scoped_lock lock(mutex);
    if (record.level == log_level::error) errors.emplace_back(record.message);
  };
  const auto store = open(server.url(name), {.log = log}).store();
  const auto e = failure_of([&] { (void)store->find("n", "k"); });
  EXPECT_NE(e.code(), errc::unavailable) << e.what();
  EXPECT_TRUE(e.transient()) << "a queue keeps what it has";
  EXPECT_THAT(e.what(), HasSubstr("FAILOVER_STORE"));
  EXPECT_FALSE(store->health().available);
  EXPECT_THAT(store->health().problem, HasSubstr("FAILOVER_STORE"));
  {
    const std::scoped_lock lock(mutex);
    ASSERT_EQ(errors.size(), 1U) << "once, however often it is tried";
    EXPECT_THAT(errors[0], HasSubstr("the store cannot be used: "));
  }
  server.run("DROP TABLE FAILOVER_STORE", name);
  EXPECT_TRUE(eventually(
      [&] {
        try {
          (void)store->find("n", "k");
          return false;
        } catch (const error& missing) {
          return missing.code() == errc::missing_object && !missing.transient();
        }
      },
      never))
      << "reached, and the table is missing";

  const auto wrong = open(server.url(name), {.password = "wrong"}).store();
  const auto refused = failure_of([&] { (void)wrong->find("n", "k"); });
  EXPECT_EQ(refused.code(), errc::permission) << refused.what();
  EXPECT_THAT(wrong->health().problem, HasSubstr("the store has not been reached yet: "));
}

/// What can be known without the database is thrown at once.
TEST(Start, InvalidOptionsAreRefusedWithoutAServer) {
  const auto path_of = [](const std::string& url, const store_options& options) {
    return failure_of([&] { (void)open(url).store(options); }).path();
  };
  const std::string postgres = "postgresql://127.0.0.1:1/d";
  const std::string mysql = "mysql://127.0.0.1:1/d";
  const std::string h2 = "h2://127.0.0.1:1/d";
  temporary_directory directory;
  const auto sqlite = "sqlite://" + (directory.path() / "missing" / "a.db").string();
  for (const auto& url : {postgres, mysql, h2, sqlite}) {
    EXPECT_EQ(failure_of([&] { (void)open(url).store({.prefix = "x; DROP"}); }).code(),
              errc::invalid_argument);
    EXPECT_EQ(failure_of([&] { (void)open(url).store({.max_skew = -1s}); }).code(),
              errc::invalid_argument);
    EXPECT_EQ(path_of(url, {.zone = "not a zone!"}), "zone");
  }
  EXPECT_EQ(path_of(postgres, {.payload = payload_column::bytes, .peer = peer::java}), "peer");
  EXPECT_EQ(path_of(sqlite, {.peer = peer::java}), "peer");
  EXPECT_EQ(path_of(mysql, {.peer = peer::java}), "zone");
  EXPECT_EQ(path_of(mysql, {.zone = "Europe/Paris"}), "zone");
  EXPECT_EQ(path_of(h2, {.zone = "UTC"}), "zone");
  EXPECT_EQ(failure_of([&] { (void)open(h2).outbox(); }).code(), errc::unsupported_type);
  EXPECT_EQ(failure_of([&] { (void)open(postgres).outbox({.prefix = "no-tag"}); }).code(),
            errc::invalid_argument);
  EXPECT_EQ(
      failure_of([&] { (void)open(postgres).outbox({.safe = durability::replicated(1)}); }).code(),
      errc::invalid_argument);
  EXPECT_EQ(failure_of([&] { (void)open(h2).block_store({.failover_skip = 5}); }).path(),
            "failover_skip");
  EXPECT_EQ(failure_of([&] { (void)open(mysql).sequence("bad name"); }).code(),
            errc::invalid_argument);
}

// ---- sequences and outboxes: the first operation connects

template <class Server>
sequence_store_options store_of() {
  if constexpr (std::is_same_v<Server, redis_server>) return {.fence = no_fence{}};
  else return {.create_schema = true};
}

constexpr auto first_id = "00000000-0000-4000-8000-000000000001";
constexpr auto second_id = "00000000-0000-4000-8000-000000000002";

template <class Server>
class FirstOperationOn : public ::testing::Test {};
using all_servers = ::testing::Types<postgres_server, mariadb_server, redis_server>;
TYPED_TEST_SUITE(FirstOperationOn, all_servers);

TYPED_TEST(FirstOperationOn, OfASequenceConnects) {
  TypeParam server({.durable = true});
  cutting_proxy proxy(server.port());
  const auto db = open(server.url_through(proxy.port()), {.connect_timeout = never});
  proxy.refuse();
  auto ids = db.sequence("n", {.wait = never, .store = store_of<TypeParam>()});
  const auto blocks = db.block_store(store_of<TypeParam>());
  EXPECT_EQ(proxy.connections(), 0U);
  const auto e = failure_of([&] { (void)ids.peek(); });
  EXPECT_EQ(e.code(), errc::unavailable) << e.what();
  EXPECT_TRUE(e.transient());
  EXPECT_EQ(failure_of([&] { (void)blocks->peek("n"); }).code(), errc::unavailable);
  EXPECT_THAT(failure_of([&] { (void)ids.next(steady::now() + 100ms); }).what(),
              HasSubstr("no block for the sequence 'n' came in time: "));
  proxy.refuse(false);
  EXPECT_EQ(ids.next(), 1);
  EXPECT_TRUE(blocks->peek("n"));
}

TYPED_TEST(FirstOperationOn, OfAnOutboxConnects) {
  TypeParam server({.durable = true});
  cutting_proxy proxy(server.port());
  const auto db = open(server.url_through(proxy.port()), {.connect_timeout = never});
  proxy.refuse();
  const auto box = db.outbox({.create_schema = true});
  EXPECT_EQ(proxy.connections(), 0U);
  EXPECT_EQ(box.lanes(), 1U) << "known without the server";
  EXPECT_NO_THROW((void)box.lane_of("k"));
  const auto e = failure_of([&] { (void)box.publish({.type = "t", .id = first_id}); });
  EXPECT_EQ(e.code(), errc::unavailable) << e.what();
  EXPECT_TRUE(e.transient());
  EXPECT_FALSE(e.in_doubt()) << "nothing was sent";
  EXPECT_EQ(e.path(), first_id);
  const auto receipts = box.publish_all({{.type = "t", .id = second_id}});
  EXPECT_EQ(receipts.at(0).status, publish_status::refused);
  EXPECT_EQ(failure_of([&] { (void)box.claim(); }).code(), errc::unavailable);
  ASSERT_TRUE(box.admin().health());
  EXPECT_EQ(box.admin().health()->code(), errc::unavailable);
  proxy.refuse(false);
  EXPECT_TRUE(eventually([&] { return !box.admin().health(); }, never));
  EXPECT_EQ(box.publish({.type = "t", .id = first_id}).status, publish_status::added);
  // Another number of lanes is an option that the server has to refuse.
  const auto other = db.outbox({.lanes = 2});
  EXPECT_THAT(failure_of([&] { (void)other.claim(); }).what(), HasSubstr("has 1 lane, not 2"));
  EXPECT_EQ(box.admin().stats().events, 1U);
}

/// A worker that starts before its server polls until it is there.
TYPED_TEST(FirstOperationOn, OfAWorkerIsRepeatedUntilTheServerIsThere) {
  TypeParam server({.durable = true});
  const auto url = server.url();
  server.stop();
  const auto box = open(url).outbox({.create_schema = true});
  std::atomic<int> delivered{0};
  worker deliverer(box,
                   [&](const delivery&) {
                     ++delivered;
                     return outcome::done();
                   },
                   {});
  const running_worker running(deliverer);
  EXPECT_TRUE(eventually([&] { return !deliverer.health().available; }, never));
  server.start();
  EXPECT_EQ(open(url).outbox({.create_schema = true}).publish({.type = "t"}).status,
            publish_status::added);
  EXPECT_TRUE(eventually([&] { return delivered == 1; }, never));
  EXPECT_TRUE(eventually([&] { return deliverer.health().available; }, never));
}

}  // namespace
}  // namespace holdfast::test
