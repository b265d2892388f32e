// The client against a real server: what it sends, what comes back, who is let in.

#include <holdfast/redis.hpp>

#include "support/child_process.hpp"
#include "support/cutting_proxy.hpp"
#include "support/eventually.hpp"
#include "support/redis_server.hpp"
#include "support/shared_server.hpp"
#include "support/temporary_directory.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace holdfast;
using namespace holdfast::test;
using namespace std::chrono_literals;
using redis::client;
using redis::command;

error problem_of(const client& with, const command& what, redis::call_options how = {}) {
  try {
    with.call(what, how);
  } catch (const error& thrown) {
    return thrown;
  }
  ADD_FAILURE() << "it did not fail";
  return {errc::internal, "it did not fail"};
}

class RedisClient : public testing::Test {
 protected:
  const redis_endpoint& server = shared_server<redis_server>();
  const std::string prefix = server.unique_prefix("client");
  client redis{server.url()};

  std::string key(std::string_view name) const { return prefix + std::string(name); }
};

TEST_F(RedisClient, CallsAndReadsEveryKindOfReply) {
  EXPECT_EQ(redis.call(command("SET").key(key("a")).arg("1")).text(), "OK");
  EXPECT_EQ(redis.call(command("GET").key(key("a"))).text(), "1");
  EXPECT_TRUE(redis.call(command("GET").key(key("nothing"))).is_nil());
  EXPECT_EQ(redis.call(command("INCRBY").key(key("a")).arg(41)).integer(), 42);
  const std::string bytes("\0\r\n\xff{}", 6);
  redis.call(command("SET").key(key(bytes)).arg(bytes));
  EXPECT_EQ(redis.call(command("GET").key(key(bytes))).text(), bytes);
  const auto list = redis.call(command("MGET").key(key("a")).key(key("nothing"))).elements();
  EXPECT_EQ(list[0].text(), "42");
  EXPECT_TRUE(list[1].is_nil());
  const std::string large(5'000'000, 'x');
  redis.call(command("SET").key(key("large")).arg(large));
  EXPECT_EQ(redis.call(command("GET").key(key("large"))).text(), large);
  redis.call(command("DEL").key(key("large")));
}

TEST_F(RedisClient, RefusalsAreClassed) {
  redis.call(command("SET").key(key("a")).arg("x"));
  EXPECT_EQ(problem_of(redis, command("LPUSH").key(key("a")).arg("1")).backend_code(), "WRONGTYPE");
  EXPECT_EQ(problem_of(redis, command("INCR").key(key("a"))).code(), errc::invalid_argument);
  EXPECT_EQ(problem_of(redis, command("NOSUCHCOMMAND")).code(), errc::grammar);
  EXPECT_EQ(problem_of(redis, command("GET")).code(), errc::grammar);
  EXPECT_EQ(redis.count().errors_of(errc::grammar), 2U);
  EXPECT_EQ(redis.call(command("PING")).text(), "PONG");
  EXPECT_EQ(redis.count().connected, 1U);  // none of that cost the connection
}

TEST_F(RedisClient, PipelineKeepsOrderAndGoesOnAfterARefusal) {
  std::vector<command> commands;
  for (int i = 0; i < 10'000; ++i) {
    commands.push_back(i % 100 == 7 ? command("NOSUCHCOMMAND") : command("ECHO").arg(i));
  }
  const auto replies = redis.pipeline(commands);
  ASSERT_EQ(replies.size(), commands.size());
  for (int i = 0; i < 10'000; ++i) {
    const auto& each = replies[static_cast<std::size_t>(i)];
    if (i % 100 == 7) ASSERT_TRUE(each.is_error());
    else ASSERT_EQ(each.text(), std::to_string(i));
  }
  EXPECT_TRUE(redis.pipeline({}).empty());
}

TEST_F(RedisClient, PipelineLargerThanAllBuffersDoesNotLockUp) {
  // 64 MB out and 64 MB back: whoever only writes before it reads stands still here.
  const std::string text(64 * 1024, 'y');
  const std::vector<command> commands(1'000, command("ECHO").arg(text));
  const auto replies = redis.pipeline(commands, {.timeout = 60s});
  for (const auto& each : replies) ASSERT_EQ(each.text(), text);
}

TEST_F(RedisClient, ScriptsTravelByHashAndSurviveScriptFlush) {
  const redis_server own({.durable = false});  // others count how often a script travels whole
  const client its(own.url());
  const redis::script add("return redis.call('INCRBY', KEYS[1], ARGV[1])");
  const auto one = [&] { return command(add).key(key("n")).arg(1); };
  EXPECT_EQ(its.call(one()).integer(), 1);
  EXPECT_EQ(its.call(one()).integer(), 2);
  EXPECT_EQ(its.count().whole_scripts, 1U);
  // Between others, in a pipeline, after the server forgot: each runs once, each reply is its own.
  its.call(command("SCRIPT").arg("FLUSH"));
  const std::vector<command> commands{command("ECHO").arg("a"), one(), command("ECHO").arg("b"),
                                      one(), one()};
  const auto replies = its.pipeline(commands);
  EXPECT_EQ(replies[0].text(), "a");
  EXPECT_EQ(replies[2].text(), "b");
  EXPECT_EQ(replies[1].integer() + replies[3].integer() + replies[4].integer(), 3 + 4 + 5);
  EXPECT_EQ(its.call(command("GET").key(key("n"))).text(), "5");
  const redis::script wrong("this is not Lua");
  EXPECT_EQ(problem_of(redis, command(wrong)).code(), errc::grammar);
}

TEST_F(RedisClient, WaitAnswersForTheCommandBeforeIt) {
  const std::vector<command> commands{
      command("SET").key(key("a")).arg("1"), redis::wait_for_replicas(0, 100ms),
      command("SET").key(key("b")).arg("1"), redis::wait_for_replicas(1, 1ms)};
  const auto replies = redis.pipeline(commands);
  EXPECT_EQ(replies[0].text(), "OK");
  EXPECT_EQ(replies[1].integer(), 0);
  EXPECT_EQ(replies[3].integer(), 0);
}

TEST_F(RedisClient, ManyThreadsShareFewConnections) {
  const client few(server.url(), {.timeout = 60s, .connections = 3});
  std::atomic<int> wrong = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 300; ++i) {
          const std::string text = std::to_string(t) + ':' + std::to_string(i);
          if (few.call(command("ECHO").arg(text)).text() != text) ++wrong;
        }
      });
    }
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(few.count().connected, 3U);
  EXPECT_EQ(few.count().open, few.count().connected);
  EXPECT_EQ(few.count().calls, 2'400U);
  EXPECT_EQ(few.count().in_flight, 0U);
}

TEST_F(RedisClient, FullPoolIsATimeoutThatIsNotInDoubt) {
  const client one(server.url(), {.connections = 1});
  std::jthread blocker(
      [&] { one.call(command("BLPOP").key(key("nothing")).arg("30"), {.timeout = 30s}); });
  ASSERT_TRUE(eventually(
      [&] { return server.run({"CLIENT", "LIST"}).find("cmd=blpop") != std::string::npos; }));
  const auto problem = problem_of(one, command("INCR").key(key("n")), {.timeout = 50ms});
  EXPECT_EQ(problem.code(), errc::timeout);
  EXPECT_TRUE(problem.transient());
  EXPECT_FALSE(problem.in_doubt());
  server.run({"LPUSH", key("nothing"), "x"});
}

TEST_F(RedisClient, ConnectionsThatTheServerClosedAreNotUsed) {
  for (int i = 0; i < 20; ++i) {
    const auto id = redis.call(command("CLIENT").arg("ID")).integer();
    server.run({"CLIENT", "KILL", "ID", std::to_string(id)});
    // Not idempotent: had it been sent over the dead connection, it would be in doubt.
    EXPECT_EQ(redis.call(command("INCR").key(key("n"))).integer(), i + 1);
  }
  EXPECT_EQ(redis.count().in_doubt, 0U);
  EXPECT_EQ(redis.count().lost, 20U);
}

TEST_F(RedisClient, ReplyBeyondTheLimitIsAnErrorAndTheNextCallWorks) {
  const client small(server.url(), {.max_reply = 10'000});
  small.call(command("SET").key(key("big")).arg(std::string(20'000, 'x')));
  EXPECT_EQ(problem_of(small, command("GET").key(key("big"))).code(), errc::too_large);
  EXPECT_EQ(small.call(command("PING")).text(), "PONG");
  const redis::script deep("local t = {1} for i = 1, 100 do t = {t} end return t");
  EXPECT_EQ(problem_of(small, command(deep)).code(), errc::too_deep);
  EXPECT_EQ(small.call(command("PING")).text(), "PONG");
}

TEST_F(RedisClient, ReadsListsInListsInLists) {
  const redis::script nested("local t = {'inside'} for i = 1, 60 do t = {t} end return t");
  auto answer = redis.call(command(nested));
  for (int i = 0; i < 61; ++i) {
    auto inner = answer.elements().at(0);
    answer = std::move(inner);
  }
  EXPECT_EQ(answer.text(), "inside");
  EXPECT_TRUE(redis.call(command("COMMAND").arg("DOCS")).is_list());
}

TEST_F(RedisClient, LargeReplyHarmsNobodyBehindIt) {
  const client small(server.url(), {.max_reply = 10'000});
  small.call(command("SET").key(key("big")).arg(std::string(20'000, 'x')));
  small.call(command("SET").key(key("small")).arg("s"));
  const std::vector<command> commands{command("GET").key(key("big")).idempotent(),
                                      command("GET").key(key("small")).idempotent()};
  const auto replies = small.pipeline(commands);
  EXPECT_EQ(replies[0].problem().code(), errc::too_large);
  EXPECT_EQ(replies[1].text(), "s");
}

TEST_F(RedisClient, RefusesWhatChangesAConnectionForTheNextCaller) {
  const client one(server.url(), {.connections = 1});
  for (const char* name : {"MULTI", "multi", "WATCH", "SELECT", "SUBSCRIBE", "MONITOR", "HELLO",
                           "AUTH", "RESET", "QUIT"}) {
    const auto refused = problem_of(one, command(name).arg("1"));
    EXPECT_EQ(refused.code(), errc::invalid_argument) << name;
    EXPECT_EQ(refused.backend_code(), "") << name;  // it was not sent
  }
  for (const char* how : {"OFF", "SKIP"}) {
    const auto refused =
        problem_of(one, command("CLIENT").arg("REPLY").arg(how), {.timeout = 300ms});
    EXPECT_EQ(refused.message().rfind("CLIENT REPLY cannot be sent: ", 0), 0U) << refused.message();
    EXPECT_EQ(refused.message().find('\n'), std::string::npos);
  }
  const std::vector<command> transaction{command("INCR").key(key("n")), command("MULTI"),
                                         command("EXEC")};
  try {
    one.pipeline(transaction);
    FAIL();
  } catch (const error& refused) {
    EXPECT_EQ(refused.path(), "commands[1]");
  }
  EXPECT_TRUE(one.call(command("GET").key(key("n"))).is_nil());  // neither QUEUED, nor sent
}

TEST_F(RedisClient, ScriptsOwnErrorDoesNotRunItTwice) {
  const redis::script busy(
      "redis.call('INCR', KEYS[1]) return redis.error_reply('BUSY another worker has it')");
  EXPECT_EQ(problem_of(redis, command(busy).key(key("runs"))).backend_code(), "BUSY");
  EXPECT_EQ(redis.call(command("GET").key(key("runs"))).text(), "1");
}

// The error begins with a word of the server, and the script has written.
TEST_F(RedisClient, ScriptThatWroteAndFailedIsInDoubt) {
  for (const std::string word : {"BUSY", "READONLY", "LOADING", "OOM", "MISCONF", "NOREPLICAS",
                                 "TRYAGAIN", "CLUSTERDOWN", "MASTERDOWN", "UNBLOCKED"}) {
    const auto text =
        "redis.call('SET', KEYS[1], '1') return redis.error_reply('" + word + " mine')";
    const auto by_hash = problem_of(redis, command(redis::script(text)).key(key(word)));
    EXPECT_EQ(by_hash.backend_code(), word);
    EXPECT_TRUE(by_hash.transient()) << word;
    EXPECT_TRUE(by_hash.in_doubt()) << word;
    const auto by_hand = problem_of(redis, command("EVAL").arg(text).arg(1).arg(key(word)));
    EXPECT_TRUE(by_hand.in_doubt()) << word;
    EXPECT_EQ(server.run({"GET", key(word)}), "1");
  }
}

TEST_F(RedisClient, ForkedChildIsRefused) {
  EXPECT_EQ(redis.call(command("PING")).text(), "PONG");
  const pid_t child = ::fork();
  if (child == 0) {
    int result = 1;
    try {
      redis.call(command("PING"));
    } catch (const error& refused) {
      result = refused.code() == errc::invalid_argument ? 0 : 2;
    }
    ::_exit(result);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(redis.call(command("PING")).text(), "PONG");
}

/// A sink with a lock of its own, like most.
class locking_sink : public metrics_sink {
 public:
  std::mutex mutex;

 private:
  struct gauge : metrics::gauge {
    explicit gauge(std::mutex& with) : mutex(with) {}
    void set(double /*value*/) override { const std::scoped_lock lock(mutex); }
    void add(double /*difference*/) override { const std::scoped_lock lock(mutex); }
    std::mutex& mutex;
  };
  std::shared_ptr<metrics::counter> make_counter(std::string_view name, metrics::labels labels,
                                                 std::string_view help) override {
    return nothing_->counter(name, labels, help);
  }
  std::shared_ptr<metrics::gauge> make_gauge(std::string_view, metrics::labels,
                                             std::string_view) override {
    return std::make_shared<gauge>(mutex);
  }
  std::shared_ptr<metrics::histogram> make_histogram(std::string_view name, metrics::labels labels,
                                                     std::string_view help,
                                                     std::span<const double> bounds) override {
    return nothing_->histogram(name, labels, help, bounds);
  }
  std::shared_ptr<metrics_sink> nothing_ = isolate(nullptr);
};

bool child_can_destroy(std::unique_ptr<client>& held) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(10);
    held.reset();
    ::_exit(0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Threads of the parent hold locks and wait for each other; in the child they do not exist, and
// nobody lets go.
TEST_F(RedisClient, ForkedChildMayDestroyItAtAnyMoment) {
  const auto sink = std::make_shared<locking_sink>();
  auto held = std::make_unique<client>(
      server.url(), redis::options{.timeout = 60s, .connections = 1, .metrics = sink});
  EXPECT_EQ(held->call(command("PING")).text(), "PONG");
  {
    const std::scoped_lock another_thread_is_there(sink->mutex);
    EXPECT_TRUE(child_can_destroy(held)) << "it hung";
  }
  std::jthread busy([&] {
    EXPECT_EQ(held->call(command("BLPOP").key(key("list")).arg(50)).elements().at(1).text(), "x");
  });
  ASSERT_TRUE(eventually([&] { return held->count().in_flight == 1; }));
  std::jthread waiting([&] { EXPECT_EQ(held->call(command("PING")).text(), "PONG"); });
  ASSERT_TRUE(eventually([&] { return held->count().in_flight == 2; }));
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(child_can_destroy(held)) << "it hung";
  server.run({"RPUSH", key("list"), "x"});
  busy.join();
  waiting.join();
  EXPECT_EQ(held->count().connected, 1U);  // what the children closed was their own
  EXPECT_EQ(held->call(command("PING")).text(), "PONG");
}

TEST_F(RedisClient, TellsASinkWhatItCounts) {
  const auto registry = make_prometheus_registry();
  const client counted(server.url(), {.metrics = registry});
  counted.call(command("PING"));
  problem_of(counted, command("NOSUCHCOMMAND"));
  const auto text = registry->text();
  EXPECT_NE(text.find("holdfast_redis_calls_total 2"), std::string::npos) << text;
  EXPECT_NE(text.find("holdfast_redis_errors_total{code=\"grammar\"} 1"), std::string::npos)
      << text;
  EXPECT_NE(text.find("holdfast_redis_call_seconds_count 2"), std::string::npos) << text;
  EXPECT_NE(text.find("holdfast_redis_connections 1"), std::string::npos) << text;
}

TEST_F(RedisClient, ProbeSaysWhatTheServerIs) {
  const auto reports = redis.probe();
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_EQ(reports[0].role, "master");
  EXPECT_EQ(reports[0].mode, "standalone");
  EXPECT_TRUE(reports[0].aof);
  EXPECT_EQ(reports[0].appendfsync, "always");
  EXPECT_EQ(reports[0].eviction, "noeviction");
  EXPECT_GT(reports[0].round_trip.count(), 0);
  EXPECT_FALSE(reports[0].version.empty());
  EXPECT_FALSE(redis.health().has_value());
  EXPECT_EQ(redis.nodes().at(0).address, server.address());
}

TEST_F(RedisClient, StandaloneServerIsNoCluster) {
  const client wrong("redis+cluster://" + server.address());
  const auto problem = problem_of(wrong, command("GET").key("a"));
  EXPECT_EQ(problem.code(), errc::invalid_argument);
  EXPECT_NE(problem.message().find("redis://"), std::string::npos);
}

TEST(RedisConnect, NobodyThereIsUnavailableAndNotInDoubt) {
  const client nobody("redis://127.0.0.1:1");
  const auto problem = problem_of(nobody, command("INCR").key("a"));
  EXPECT_EQ(problem.code(), errc::unavailable);
  EXPECT_TRUE(problem.transient());
  EXPECT_FALSE(problem.in_doubt());
  EXPECT_TRUE(nobody.health().has_value());
  const client no_socket("redis+unix:///nowhere/redis.sock");
  EXPECT_EQ(problem_of(no_socket, command("PING")).code(), errc::unavailable);
  const client no_host("redis://no-such-host.invalid");
  EXPECT_EQ(problem_of(no_host, command("PING")).code(), errc::unavailable);
}

TEST(RedisConnect, ForEverIsNotAtOnce) {
  constexpr auto ever = std::chrono::milliseconds::max();
  const client nobody("redis://127.0.0.1:1", {.connect_timeout = ever, .timeout = ever});
  EXPECT_EQ(problem_of(nobody, command("PING")).code(), errc::unavailable);
  const client briefly("redis://127.0.0.1:1");
  EXPECT_EQ(problem_of(briefly, command("PING"), {.timeout = ever}).code(), errc::unavailable);
}

// Every connection to the proxy is closed again: nothing listens behind it.
TEST(RedisConnect, DeadServerIsNotFloodedWithConnections) {
  cutting_proxy proxy(1);
  const client redis(redis_endpoint::url_through(proxy.port()));
  constexpr unsigned callers = 16;
  const auto start = std::chrono::steady_clock::now();
  std::atomic<unsigned> calls = 0;
  {
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < callers; ++t) {
      threads.emplace_back([&] {
        while (std::chrono::steady_clock::now() < start + 1s) {
          const auto problem = problem_of(redis, command("INCR").key("n"));
          EXPECT_EQ(problem.code(), errc::unavailable);
          EXPECT_TRUE(problem.transient());
          EXPECT_FALSE(problem.in_doubt());
          EXPECT_NE(problem.message().find("Redis at 127.0.0.1:"), std::string::npos);
          ++calls;
        }
      });
    }
  }
  const auto elapsed = std::chrono::steady_clock::now() - start;
  // The first attempts at the same time, then one after each pause: 10, 20, 40, 80, 160, 250 ms...
  EXPECT_LE(proxy.connections(), callers + 6U + static_cast<unsigned>(elapsed / 250ms) + 1U);
  EXPECT_GT(calls, proxy.connections());

  redis_server server({.durable = false});
  proxy.retarget(server.port());
  const auto returned = std::chrono::steady_clock::now();
  EXPECT_TRUE(eventually([&] { return !redis.health(); }));
  // Half a second at most, and the time that this machine needs.
  EXPECT_LT(std::chrono::steady_clock::now() - returned, 10s);
}

// Callers that have little time do not decide that a slow server is dead.
TEST(RedisConnect, ImpatientCallerStopsNobodyElse) {
  const auto& server = shared_server<redis_server>();
  cutting_proxy proxy(server.port());
  proxy.delay(flow::to_client, 150ms);
  const client redis(redis_endpoint::url_through(proxy.port()),
                     {.connect_timeout = 30s, .timeout = 30s});
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(problem_of(redis, command("PING"), {.timeout = 20ms}).code(), errc::timeout);
  EXPECT_EQ(redis.call(command("PING")).text(), "PONG");
}

TEST(RedisConnect, WaitsForOpenConnectionsWhenTheServerAcceptsNoMore) {
  redis_server server({.settings = {"maxclients 4"}, .durable = false});
  const client redis(server.url(), {.timeout = 60s});
  std::atomic<int> done = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 12; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 100; ++i) {
          try {
            redis.call(command("INCR").key("n"));
            ++done;
          } catch (const error& problem) {
            ADD_FAILURE() << problem.what();
          }
        }
      });
    }
  }
  EXPECT_EQ(done, 1'200);
  EXPECT_LE(redis.count().open, 4U);
  EXPECT_EQ(redis.count().in_doubt, 0U);
  EXPECT_EQ(redis.call(command("GET").key("n")).text(), "1200");
}

TEST(RedisConnect, TellsThatTheServerAcceptsNoMoreConnections) {
  redis_server server({.settings = {"maxclients 1"}, .durable = false});
  const client other(server.url());
  other.call(command("PING"));  // has the only connection
  const client redis(server.url());
  const auto refused = problem_of(redis, command("INCR").key("n"));
  EXPECT_EQ(refused.code(), errc::unavailable);
  EXPECT_EQ(refused.backend_code(), "MAXCLIENTS");
  EXPECT_TRUE(refused.transient());
  EXPECT_FALSE(refused.in_doubt());
  std::jthread blocker([&](const std::stop_token& stop) {
    while (!stop.stop_requested())
      (void)other.pipeline(std::vector{command("BLPOP").key("q").arg(1)});
  });
  // Its own connection is busy most of the time.
  EXPECT_TRUE(eventually([&] {
    try {
      other.call(command("PING"), {.timeout = 200ms});
      return false;
    } catch (const error& busy) {
      return busy.code() == errc::timeout && busy.backend_code() == "MAXCLIENTS";
    }
  }));
}

/// Behind a name, an address that moves or a proxy: who was the master there is a replica now, and
/// new connections go to another.
TEST(RedisConnect, LeavesAMasterThatBecameAReplica) {
  redis_server old_one({.durable = false});
  redis_server new_one({.durable = false});
  cutting_proxy name(old_one.port());
  const client redis(redis_endpoint::url_through(name.port()));
  // Several connections: none of them may be met again.
  std::vector<std::jthread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] { redis.call(command("BLPOP").key("q").arg(0), {.timeout = 60s}); });
  EXPECT_TRUE(eventually([&] {
    return old_one.run({"INFO", "clients"}).find("blocked_clients:3") != std::string::npos;
  }));
  for (int i = 0; i < 3; ++i) old_one.run({"RPUSH", "q", "x"});
  threads.clear();
  const auto fail_over = [&](redis_server& from, redis_server& to) {
    to.run({"REPLICAOF", "NO", "ONE"});
    from.run({"REPLICAOF", "127.0.0.1", std::to_string(to.port())});
    name.retarget(to.port());
  };
  fail_over(old_one, new_one);
  EXPECT_EQ(redis.call(command("SET").key("a").arg("1")).text(), "OK")
      << "it was not run there, and is sent to the new one";
  EXPECT_EQ(new_one.run({"GET", "a"}), "1");
  for (int i = 0; i < 8; ++i) EXPECT_EQ(redis.call(command("INCR").key("n")).integer(), i + 1);

  // A script says it in other words, and may have run in part: it is the caller's to try again, and
  // finds the new one.
  fail_over(new_one, old_one);
  const redis::script writes("return redis.call('SET', KEYS[1], '2')");
  EXPECT_EQ(problem_of(redis, command(writes).key("b")).backend_code(), "READONLY");
  EXPECT_EQ(redis.call(command(writes).key("b")).text(), "OK");
  EXPECT_EQ(redis.count().in_doubt, 0U);
}

TEST(RedisConnect, UnixSocketAndDatabase) {
  redis_server server;
  const client by_path("redis+unix://" + server.socket_path() + "?db=5");
  by_path.call(command("SET").key("a").arg("1"));
  EXPECT_EQ(server.run({"-n", "5", "GET", "a"}), "1");
  const client by_port(server.url() + "/5");
  EXPECT_EQ(by_port.call(command("GET").key("a")).text(), "1");
  EXPECT_NE(server.run({"CLIENT", "LIST"}).find("name=holdfast"), std::string::npos);
  const client too_high(server.url() + "/99");
  EXPECT_EQ(problem_of(too_high, command("PING")).code(), errc::invalid_argument);
}

TEST(RedisConnect, PasswordsAndUsers) {
  redis_server server({.settings = {"requirepass secret"}});
  server.set_client_words({"--no-auth-warning", "-a", "secret"});
  server.run({"ACL", "SETUSER", "app", "on", ">p:w@", "~app:*", "+get", "+set", "+ping"});
  const auto url = [&](const std::string& credentials) {
    return "redis://" + credentials + server.address();
  };
  EXPECT_EQ(client(url(":secret@")).call(command("PING")).text(), "PONG");
  EXPECT_EQ(client(url("default:secret@")).call(command("PING")).text(), "PONG");
  EXPECT_EQ(client(server.url(), {.password = "secret"}).call(command("PING")).text(), "PONG");
  for (const auto& bad : {url(""), url(":wrong@"), url("nobody:secret@")}) {
    const auto problem = problem_of(client(bad), command("PING"));
    EXPECT_EQ(problem.code(), errc::permission);
    EXPECT_FALSE(problem.transient());
    EXPECT_EQ(problem.message().find("wrong"), std::string::npos);
  }
  // A user without the right to name its connection is let in all the same.
  const client app(url("app:p%3Aw%40@"));
  app.call(command("SET").key("app:a").arg("1"));
  EXPECT_EQ(problem_of(app, command("GET").key("other")).backend_code(), "NOPERM");
  const temporary_directory place("password");
  const auto file = place.path() / "password";
  std::ofstream(file) << "secret\n";
  EXPECT_EQ(client(server.url(), {.password_file = file.string()}).call(command("PING")).text(),
            "PONG");
}

TEST(RedisConnect, TlsIsCheckedByDefault) {
  const temporary_directory place("tls", "redis");
  const auto files = make_certificates(place.path());
  const temporary_directory other_place("tls");
  const auto others = make_certificates(other_place.path());
  const auto settings = [&](const std::string& clients) {
    return std::vector<std::string>{"port 0",
                                    "tls-port {port}",
                                    "tls-cert-file " + files.server.string(),
                                    "tls-key-file " + files.server_key.string(),
                                    "tls-ca-cert-file " + files.authority.string(),
                                    "tls-auth-clients " + clients};
  };
  redis_server server({.settings = settings("no")});
  const auto url = "rediss://" + server.address();
  const auto trusted = url + "?tls_ca=" + files.authority.string();
  const client good(trusted);
  EXPECT_EQ(good.call(command("PING")).text(), "PONG");
  const std::string large(3'000'000, 'x');
  const std::vector<command> commands(5, command("ECHO").arg(large));
  for (const auto& each : good.pipeline(commands, {.timeout = 60s})) EXPECT_EQ(each.text(), large);
  EXPECT_EQ(client("rediss://localhost:" + std::to_string(server.port()) +
                   "?tls_ca=" + files.authority.string())
                .call(command("PING"))
                .text(),
            "PONG");
  EXPECT_EQ(client(url + "?tls_verify=0").call(command("PING")).text(), "PONG");

  // TLS says goodbye before it closes: that is no reason to send something after it.
  for (int i = 0; i < 5; ++i) {
    const auto id = good.call(command("CLIENT").arg("ID")).integer();
    client(trusted).call(command("CLIENT").arg("KILL").arg("ID").arg(id));
    EXPECT_EQ(good.call(command("INCR").key("n")).integer(), i + 1);
  }
  EXPECT_EQ(good.count().in_doubt, 0U);

  const auto refused = [](const std::string& with) {
    const auto problem = problem_of(client(with), command("INCR").key("a"));
    EXPECT_EQ(problem.code(), errc::permission) << problem.what();
    EXPECT_FALSE(problem.in_doubt());
  };
  refused(url);                                           // nobody vouches for it
  refused(url + "?tls_ca=" + others.authority.string());  // somebody else does
  refused(trusted + "&tls_name=another.example");         // it is another one's
  EXPECT_THROW(client(url + "?tls_ca=/no/such/file"), error);
  EXPECT_THROW(client(trusted + "&tls_cert=" + files.client.string()), error);
  EXPECT_THROW(client(trusted + "&tls_cert=" + files.client.string() +
                      "&tls_key=" + others.client_key.string()),
               error);
  // Nobody is asked for the password of a key: not who sits at the terminal, nor who feeds the
  // standard input.
  const auto locked = place.path() / "locked.key";
  ASSERT_TRUE(run_program({.argv = {"openssl", "rsa", "-aes256", "-passout", "pass:sesame", "-in",
                                    files.client_key.string(), "-out", locked.string()}})
                  .status.success());
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const int input = ::dup(STDIN_FILENO);
  ASSERT_EQ(::write(ends[1], "sesame\n", 7), 7);
  ASSERT_EQ(::dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
  EXPECT_THROW(
      client(trusted + "&tls_cert=" + files.client.string() + "&tls_key=" + locked.string()),
      error);
  if (input >= 0) ::dup2(input, STDIN_FILENO);
  for (const int each : {input, ends[0], ends[1]}) ::close(each);
  // TLS to a server without it, and the other way: the error says so, long before the time limit.
  {
    redis_server guarded({.settings = {"requirepass secret"}, .durable = false});
    for (const auto& address : {shared_server<redis_server>().address(), guarded.address()}) {
      const client with_tls("rediss://" + address, {.connect_timeout = 60s, .timeout = 60s});
      const auto problem = problem_of(with_tls, command("INCR").key("a"));
      EXPECT_EQ(problem.code(), errc::unavailable);
      EXPECT_FALSE(problem.transient() || problem.in_doubt());
      EXPECT_NE(problem.message().find("answers without TLS; write redis://"), std::string::npos)
          << problem.what();
    }
    const auto problem = problem_of(client(server.url()), command("INCR").key("a"));
    EXPECT_EQ(problem.code(), errc::unavailable);
    EXPECT_FALSE(problem.in_doubt());
    EXPECT_NE(problem.message().find("probably expects TLS"), std::string::npos) << problem.what();
    EXPECT_NE(problem.message().find("rediss://"), std::string::npos) << problem.what();
    // A handshake that is slow is not cut short.
    cutting_proxy slow(server.port());
    slow.delay(flow::to_client, 400ms);
    const client patient(
        "rediss://127.0.0.1:" + std::to_string(slow.port()) + "?tls_ca=" + files.authority.string(),
        {.connect_timeout = 60s, .timeout = 60s});
    EXPECT_EQ(patient.call(command("PING")).text(), "PONG");
  }

  redis_server strict({.settings = settings("yes")});
  const auto strict_url = "rediss://" + strict.address() + "?tls_ca=" + files.authority.string();
  EXPECT_EQ(problem_of(client(strict_url), command("PING")).code(), errc::unavailable);
  const auto with =
      strict_url + "&tls_cert=" + files.client.string() + "&tls_key=" + files.client_key.string();
  EXPECT_EQ(client(with).call(command("PING")).text(), "PONG");
}

}  // namespace
