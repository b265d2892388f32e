#include "support/child_process.hpp"
#include "support/cutting_proxy.hpp"
#include "support/eventually.hpp"
#include "support/free_port.hpp"
#include "support/mariadb_server.hpp"
#include "support/postgres_server.hpp"
#include "support/process_state.hpp"
#include "support/server_registry.hpp"
#include "support/shared_server.hpp"
#include "support/temporary_directory.hpp"
#include "support/worker.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <iostream>
#include <set>
#include <system_error>
#include <thread>

namespace {

using namespace holdfast::test;
using namespace std::chrono_literals;

// ---- processes

TEST(ChildProcess, KeepsWhatAProgramWrites) {
  const auto result = run_program({.argv = {"sh", "-c", "echo out; echo err >&2; exit 3"}});
  EXPECT_EQ(result.output, "out\n");
  EXPECT_EQ(result.error, "err\n");
  EXPECT_FALSE(result.status.success());
  EXPECT_EQ(result.status.describe(), "exit code 3");
}

TEST(ChildProcess, AddsAndRemovesVariablesAndChangesDirectory) {
  const temporary_directory place;
  const auto result = run_program({.argv = {"sh", "-c", "echo $ADDED-$HOME; pwd"},
                                   .environment = {"ADDED=yes", "HOME"},
                                   .directory = place.path()});
  EXPECT_EQ(result.output, "yes-\n" + place.path().string() + '\n');
}

TEST(ChildProcess, AppendsToTheLog) {
  const temporary_directory place;
  const auto log = place.path() / "log";
  for (int i = 0; i < 2; ++i)
    child_process({.argv = {"sh", "-c", "echo out; echo err >&2"}, .log = log}).wait(10s);
  std::ifstream in(log);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), "out\nerr\nout\nerr\n");
}

TEST(ChildProcess, SaysWhyAProgramDoesNotStart) {
  EXPECT_THROW(child_process({.argv = {"there-is-no-such-program"}}), std::system_error);
  try {
    child_process({.argv = {"/dev/null"}});
    FAIL() << "started /dev/null";
  } catch (const std::system_error& problem) {
    EXPECT_EQ(problem.code().value(), EACCES);
  }
}

TEST(ChildProcess, RunsAsAnotherUserWhenWeAreRoot) {
  const auto result = run_program({.argv = {"id", "-u"}, .user = "nobody"});
  EXPECT_NE(result.output, "0\n");
}

TEST(ChildProcess, WaitsNoLongerThanAsked) {
  child_process child({.argv = {"sleep", "30"}});
  EXPECT_FALSE(child.wait(50ms));
  EXPECT_TRUE(child.running());
  child.signal(SIGTERM);
  const auto status = child.wait(10s);
  ASSERT_TRUE(status);
  EXPECT_EQ(status->describe(), "signal 15");
  EXPECT_FALSE(child.running());
}

TEST(ChildProcess, IsKilledByItsDestructorEvenWhenStopped) {
  pid_t pid = 0;
  {
    child_process child({.argv = {"sleep", "30"}});
    pid = child.pid();
    child.signal(SIGSTOP);
    ASSERT_TRUE(eventually([&] { return process_state(pid) == 'T'; }));
  }
  EXPECT_FALSE(process_state(pid)) << "not even a zombie is left";
}

TEST(ChildProcess, OutlivesTheThreadThatStartedIt) {
  std::optional<child_process> child;
  std::thread([&] { child.emplace(child_options{.argv = {"sleep", "30"}}); }).join();
  EXPECT_FALSE(child->wait(100ms));
}

// Starts a child, tells its number, and waits to be killed before it can tidy up.
HOLDFAST_WORKER(parent) {
  const child_process child({.argv = {"sleep", "60"}, .user = "nobody"});
  std::ofstream(arguments.at(0)) << child.pid() << std::endl;
  for (;;) ::pause();
}

TEST(ChildProcess, DiesWithItsParentEvenAsAnotherUser) {
  const temporary_directory place;
  const auto told = place.path() / "pid";
  child_process parent(worker_options("parent", {told}));
  pid_t grandchild = 0;
  ASSERT_TRUE(eventually([&] { return static_cast<bool>(std::ifstream(told) >> grandchild); }));
  ASSERT_TRUE(process_alive(grandchild));
  parent.signal(SIGKILL);
  EXPECT_TRUE(eventually([&] { return process_state(parent.pid()) == 'Z'; }))
      << "nobody has asked for it yet";
  EXPECT_FALSE(process_alive(parent.pid())) << "a zombie is not alive";
  EXPECT_TRUE(eventually([&] { return !process_alive(grandchild); }));
}

TEST(ProcessState, TellsProcessesWithTheSameNumberApart) {
  const auto self = identify(::getpid());
  ASSERT_TRUE(self);
  EXPECT_TRUE(process_alive(*self));
  EXPECT_FALSE(process_alive({.pid = self->pid, .started = self->started + 1}));
  child_process child({.argv = {"sleep", "30"}});
  const auto children = children_of(::getpid());
  EXPECT_NE(std::find(children.begin(), children.end(), child.pid()), children.end());
}

// ---- ports and directories

TEST(FreePort, IsBelowTheEphemeralRangeAndNeverGivenTwice) {
  std::set<std::uint16_t> ports;
  for (int i = 0; i < 200; ++i) ports.insert(free_port());
  EXPECT_EQ(ports.size(), 200U);
  EXPECT_LT(*ports.rbegin(), 22'768);
}

TEST(TemporaryDirectory, IsPrivateAndRemoved) {
  std::filesystem::path path;
  {
    const temporary_directory place("purpose");
    path = place.path();
    struct stat status{};
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0700U);
    std::filesystem::create_directories(path / "a" / "b");
    std::ofstream(path / "a" / "b" / "c") << "text";
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(TemporaryDirectory, RemovesWhatAKilledProgramLeft) {
  const auto long_ago = std::filesystem::file_time_type::clock::now() - 1h;
  const auto place = temporary_directory().path().parent_path();
  const auto orphan = place / "holdfast-temporary.orphan-of-a-test";
  std::filesystem::create_directory(orphan);
  {
    const temporary_directory sweeps;
  }
  EXPECT_TRUE(std::filesystem::exists(orphan)) << "too young: somebody may be about to lock it";
  std::filesystem::last_write_time(orphan, long_ago);
  const temporary_directory in_use;
  std::filesystem::last_write_time(in_use.path(), long_ago);
  {
    const temporary_directory sweeps;
  }
  EXPECT_FALSE(std::filesystem::exists(orphan));
  EXPECT_TRUE(std::filesystem::exists(in_use.path()));
}

// ---- servers

template <class Server>
class ServerTest : public ::testing::Test {};

struct server_names {
  template <class Server>
  static std::string GetName(int) {
    return std::string(Server::endpoint::kind);
  }
};

using servers = ::testing::Types<postgres_server, mariadb_server>;
TYPED_TEST_SUITE(ServerTest, servers, server_names);

TYPED_TEST(ServerTest, KeepsCommittedRowsThroughKillAndRestart) {
  const auto begin = std::chrono::steady_clock::now();
  TypeParam server;
  std::cout << "started in "
            << std::chrono::duration_cast<std::chrono::milliseconds>(
                   std::chrono::steady_clock::now() - begin)
                   .count()
            << " ms\n";
  const auto port = server.port();
  EXPECT_LT(port, 22'768);
  EXPECT_EQ(server.url(), std::string(TypeParam::kind) +
                              "://holdfast:secret@127.0.0.1:" + std::to_string(port) + "/holdfast");
  server.run("CREATE TABLE t (n INT PRIMARY KEY, s VARCHAR(10))");
  server.run("INSERT INTO t VALUES (1, 'one')");
  server.kill9();
  EXPECT_FALSE(server.running());
  EXPECT_THROW(server.run("SELECT 1"), std::runtime_error);
  server.start();
  EXPECT_EQ(server.port(), port);
  EXPECT_EQ(server.run("SELECT n, s FROM t"), "1\tone\n");
  server.restart();
  EXPECT_EQ(server.run("SELECT n, s FROM t"), "1\tone\n");
}

TYPED_TEST(ServerTest, FreezesLiveConnectionsToo) {
  TypeParam server({.durable = false});
  // A client that is in the middle of something: its backend is a child of the server, or one of
  // its threads.
  const std::string sleep = TypeParam::kind == "mysql" ? "DO SLEEP(2)" : "SELECT pg_sleep(2)";
  std::atomic<bool> done = false;
  std::jthread client([&] {
    server.run(sleep);
    done = true;
  });
  std::this_thread::sleep_for(400ms);
  server.pause();
  std::this_thread::sleep_for(2500ms);
  EXPECT_FALSE(done);
  server.resume();
  EXPECT_TRUE(eventually([&] { return done.load(); }));
}

TYPED_TEST(ServerTest, TakesSettingsAndSaysWhatIsWrongWithThem) {
  TypeParam server({.settings = {"max_connections=17"}, .durable = false});
  const std::string show =
      TypeParam::kind == "mysql" ? "SELECT @@max_connections" : "SHOW max_connections";
  EXPECT_EQ(server.run(show), "17\n");
  server.configure("max_connections=18");
  server.restart();
  EXPECT_EQ(server.run(show), "18\n");
  server.configure("no_such_setting=1");
  try {
    server.restart();
    FAIL() << "started with a setting that does not exist";
  } catch (const std::runtime_error& problem) {
    EXPECT_NE(std::string(problem.what()).find("no_such_setting"), std::string::npos)
        << problem.what();
  }
}

TYPED_TEST(ServerTest, LeavesNothingBehind) {
  pid_t pid = 0;
  std::filesystem::path data;
  std::vector<pid_t> children;
  {
    TypeParam server({.durable = false});
    pid = server.pid();
    data = server.data_directory();
    children = children_of(pid);
    server.pause();
  }
  EXPECT_FALSE(process_state(pid));
  for (const auto child : children) EXPECT_FALSE(process_alive(child)) << child;
  EXPECT_FALSE(std::filesystem::exists(data));
}

TYPED_TEST(ServerTest, IsSharedAndGivesFreshDatabases) {
  const auto& server = shared_server<TypeParam>();
  const auto name = server.create_database("shared");
  const auto other = server.create_database("shared");
  EXPECT_NE(name, other);
  server.run("CREATE TABLE t (n INT)", name);
  EXPECT_THROW(server.run("SELECT * FROM t", other), std::runtime_error);
  server.drop_database(name);
  EXPECT_THROW(server.run("SELECT 1", name), std::runtime_error);
  server.drop_database(other);
}

// ---- the servers of a whole test run

// The program that CTest runs, and a registry of our own for it.
struct ServersOfARun : ::testing::Test {
  static constexpr std::size_t kinds = 6;

  temporary_directory place{"servers", "", medium::memory};
  std::filesystem::path directory = place.path() / "registry";
  server_registry registry{directory};
  std::string program =
      std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() / "test_servers";

  // What a killed keeper leaves lies in our directory and goes with it; the servers' own users may
  // pass through.
  void SetUp() override {
    std::filesystem::permissions(place.path(), std::filesystem::perms{0711});
  }

  // A test run: it starts the servers and lives on.
  child_process start() {
    child_process run(
        {.argv = {"sh", "-c", "'" + program + "' start '" + directory.string() + "' && sleep 100"},
         .environment = {"TMPDIR=" + place.path().string()},
         .log = place.path() / "log"});
    EXPECT_TRUE(
        eventually([&] { return registry.servers().size() == kinds || !run.running(); }, 60s));
    EXPECT_EQ(registry.servers().size(), kinds);
    return run;
  }
  // Keeper and servers, while they run.
  std::vector<process_identity> processes() {
    std::vector<process_identity> result{registry.keeper().value()};
    for (const auto child : children_of(result.front().pid))
      result.push_back(identify(child).value());
    return result;
  }
  static bool all_gone(const std::vector<process_identity>& processes) {
    return std::none_of(processes.begin(), processes.end(),
                        [](const auto& one) { return process_alive(one); });
  }
};

TEST_F(ServersOfARun, EndWhenTheRunIsKilled) {
  auto run = start();
  const auto all = processes();
  // The keeper, PostgreSQL, MariaDB, H2, Redis, the six of the Cluster, and the six of the
  // Sentinels
  EXPECT_EQ(all.size(), 17U);
  EXPECT_EQ(postgres_endpoint(registry.servers().at("postgresql")).run("SELECT 1"), "1\n");
  run.kill();
  EXPECT_TRUE(eventually([&] { return all_gone(all); }));
  EXPECT_TRUE(registry.servers().empty());
}

TEST_F(ServersOfARun, EndWhenTheirDirectoryDisappears) {
  auto run = start();
  const auto all = processes();
  // At once: removing it would race with the keeper
  std::filesystem::rename(directory, place.path() / "elsewhere");
  EXPECT_TRUE(eventually([&] { return all_gone(all); }));
}

TEST_F(ServersOfARun, EndWhenTheirKeeperIsKilled) {
  auto run = start();
  const auto all = processes();
  ::kill(all.front().pid, SIGKILL);
  EXPECT_TRUE(eventually([&] { return all_gone(all); }));
  EXPECT_TRUE(registry.servers().empty());
}

TEST_F(ServersOfARun, AreSharedByTwoRunsAndEndWithTheLast) {
  auto first = start();
  const auto all = processes();
  // We are the second run: the program's parent is this process.
  EXPECT_TRUE(run_program({.argv = {program, "start", directory}}).status.success());
  EXPECT_EQ(processes(), all);
  first.kill();
  std::this_thread::sleep_for(500ms);
  EXPECT_FALSE(all_gone(all));
  EXPECT_TRUE(run_program({.argv = {program, "stop", directory}}).status.success());
  EXPECT_TRUE(all_gone(all)) << "stop returns when they are gone";
}

TEST(Postgres, AStandbyFollowsLagsWhenItIsCutOffAndIsPromoted) {
  postgres_server primary;
  primary.run("CREATE TABLE t(n int); INSERT INTO t VALUES (1)");
  cutting_proxy link(primary.port());
  const postgres_server standby(primary, link.port());
  primary.run("INSERT INTO t VALUES (2)");
  EXPECT_TRUE(eventually([&] { return standby.run("SELECT count(*) FROM t") == "2\n"; }));
  EXPECT_THROW(standby.run("INSERT INTO t VALUES (3)"), std::runtime_error);
  link.drop(flow::to_client);
  primary.run("INSERT INTO t VALUES (3)");
  primary.kill9();
  standby.promote();
  EXPECT_EQ(
      standby.run("INSERT INTO t VALUES (4); SELECT string_agg(n::text, ',' ORDER BY n) FROM t"),
      "1,2,4\n");
}

}  // namespace
