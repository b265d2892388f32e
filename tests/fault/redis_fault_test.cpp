// A Redis that dies, freezes, forgets and is cut off: no reply is ever taken for another's, and
// doubt is told from failure.

#include <holdfast/key/redis.hpp>
#include <holdfast/redis.hpp>

#include "support/cutting_proxy.hpp"
#include "support/eventually.hpp"
#include "support/redis_cluster.hpp"
#include "support/redis_server.hpp"
#include "support/shared_server.hpp"
#include "support/temporary_directory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace holdfast;
using namespace holdfast::test;
using namespace std::chrono_literals;
using redis::client;
using redis::command;

/// Every way to fail that may happen here can pass.
void expect_passing(const error& problem) {
  EXPECT_TRUE(problem.transient()) << problem.what();
  EXPECT_TRUE(problem.code() == errc::unavailable || problem.code() == errc::timeout)
      << problem.what();
}

/// Five counters, one pipeline, and a cut after so many bytes: what was answered was done, what was
/// not sent was not.
void cut_pipeline(const redis_endpoint& server, flow where, std::uint64_t bytes) {
  const auto prefix = server.unique_prefix("cut");
  cutting_proxy proxy(server.port());
  const client through(redis_endpoint::url_through(proxy.port()), {.timeout = 20s});
  ASSERT_EQ(through.call(command("PING")).text(), "PONG");
  std::vector<command> commands;
  for (int i = 0; i < 5; ++i)
    commands.push_back(command("SETRANGE").key(prefix + std::to_string(i)).arg(0).arg("12345"));
  std::string sent;
  for (const auto& each : commands) each.write(sent);
  if (where == flow::to_server && bytes >= sent.size()) return;
  proxy.cut_after(where, bytes);
  const auto replies = through.pipeline(commands);
  for (std::size_t i = 0; i < replies.size(); ++i) {
    const bool there = server.run({"EXISTS", prefix + std::to_string(i)}) == "1";
    if (!replies[i].is_error()) {
      EXPECT_EQ(replies[i].integer(), 5);
      EXPECT_TRUE(there);
    } else {
      expect_passing(replies[i].problem());
      EXPECT_TRUE(replies[i].problem().in_doubt() || !there) << bytes;
    }
  }
  EXPECT_EQ(through.call(command("ECHO").arg("after")).text(), "after");
}

TEST(RedisFault, CutAnywhereInTheReplies) {
  const auto& server = shared_server<redis_server>();
  // Five replies `:5\r\n`: 20 bytes.
  for (std::uint64_t bytes = 0; bytes < 20; ++bytes) cut_pipeline(server, flow::to_client, bytes);
}

TEST(RedisFault, CutAnywhereInTheCommands) {
  const auto& server = shared_server<redis_server>();
  for (std::uint64_t bytes = 0; bytes < 350; bytes += 13)
    cut_pipeline(server, flow::to_server, bytes);
}

TEST(RedisFault, IdempotentCommandsSurviveACut) {
  const auto& server = shared_server<redis_server>();
  const auto prefix = server.unique_prefix("resend");
  cutting_proxy proxy(server.port());
  const client through(redis_endpoint::url_through(proxy.port()), {.timeout = 20s});
  std::vector<command> commands;
  for (int i = 0; i < 20; ++i) {
    commands.push_back(command("SET").key(prefix + std::to_string(i)).arg(i).idempotent());
    commands.push_back(command("GET").key(prefix + std::to_string(i)).idempotent());
  }
  ASSERT_EQ(through.call(command("PING")).text(), "PONG");
  for (std::uint64_t bytes = 0; bytes < 200; bytes += 17) {
    proxy.cut_after(flow::to_client, bytes);
    const auto replies = through.pipeline(commands);
    for (std::size_t i = 0; i < replies.size(); ++i)
      EXPECT_EQ(replies[i].text(), i % 2 == 0 ? "OK" : std::to_string(i / 2));
  }
  EXPECT_GT(through.count().resent, 0U);
  EXPECT_EQ(through.count().in_doubt, 0U);
}

TEST(RedisFault, LateReplyIsNobodyElses) {
  const auto& server = shared_server<redis_server>();
  cutting_proxy proxy(server.port());
  const client through(redis_endpoint::url_through(proxy.port()), {.connections = 1});
  EXPECT_EQ(through.call(command("ECHO").arg("first")).text(), "first");
  proxy.hold(flow::to_client);
  try {
    // Enough to send it, on any machine
    through.call(command("ECHO").arg("late"), {.timeout = 1s});
    FAIL();
  } catch (const error& late) {
    EXPECT_EQ(late.code(), errc::timeout);
    EXPECT_TRUE(late.in_doubt());
  }
  proxy.hold(flow::to_client, false);
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(through.call(command("ECHO").arg(i)).text(), std::to_string(i));
}

TEST(RedisFault, FrozenServerIsATimeout) {
  redis_server server;
  const client redis(server.url(), {.connect_timeout = 20s});
  EXPECT_EQ(redis.call(command("INCR").key("n")).integer(), 1);
  server.pause();
  const auto began = std::chrono::steady_clock::now();
  try {
    redis.call(command("INCR").key("n"), {.timeout = 1s});
    FAIL();
  } catch (const error& frozen) {
    EXPECT_EQ(frozen.code(), errc::timeout);
    EXPECT_TRUE(frozen.in_doubt());  // it is in the server's hands
  }
  try {
    redis.call(command("INCR").key("n"), {.timeout = 300ms});
    FAIL();
  } catch (const error& frozen) {
    EXPECT_EQ(frozen.code(), errc::timeout);
    EXPECT_FALSE(frozen.in_doubt());  // a new connection: the server never said hello
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, 20s);
  server.resume();
  EXPECT_TRUE(eventually([&] { return !redis.health(); }));
  EXPECT_EQ(redis.call(command("GET").key("n")).text(), "2");
}

TEST(RedisFault, KilledServerLosesNothingItAcknowledged) {
  redis_server server;
  const client redis(server.url());
  std::atomic<bool> stop = false;
  std::atomic<std::int64_t> acknowledged = 0;
  std::atomic<int> doubts = 0;
  std::atomic<int> failures = 0;
  {
    std::jthread load([&] {
      std::int64_t least = 0;  // done for sure
      std::int64_t most = 0;   // done perhaps
      while (!stop) {
        try {
          const auto now = redis.call(command("INCR").key("n")).integer();
          EXPECT_GT(now, least);
          EXPECT_LE(now, most + 1);
          least = most = now;
          acknowledged = now;
        } catch (const error& problem) {
          expect_passing(problem);
          ++failures;
          if (problem.in_doubt()) {
            ++most;
            ++doubts;
          }
        }
      }
    });
    for (int round = 0; round < 5; ++round) {
      const auto before = acknowledged.load();
      ASSERT_TRUE(eventually([&] { return acknowledged > before + 100; }));
      server.kill9();
      ASSERT_TRUE(eventually([&, seen = failures.load()] { return failures > seen; }));
      server.start();
    }
    const auto before = acknowledged.load();
    EXPECT_TRUE(eventually([&] { return acknowledged > before + 10; }));
    stop = true;
  }
  EXPECT_LE(doubts, 10);
  EXPECT_GE(std::stoll(server.run({"GET", "n"})), acknowledged.load());
}

TEST(RedisFault, ClientKillUnderLoadMixesNothingUp) {
  redis_server server({.durable = false});
  const client redis(server.url());
  std::atomic<bool> stop = false;
  std::atomic<int> wrong = 0;
  std::atomic<int> done = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; !stop; ++i) {
          std::vector<command> commands;
          for (int k = 0; k < 10; ++k)
            commands.push_back(command("ECHO").arg(std::to_string(t) + '.' + std::to_string(i) +
                                                   '.' + std::to_string(k)));
          const auto replies = redis.pipeline(commands);
          for (int k = 0; k < 10; ++k) {
            const auto& each = replies[static_cast<std::size_t>(k)];
            if (each.is_error()) expect_passing(each.problem());
            else if (each.text() !=
                     std::to_string(t) + '.' + std::to_string(i) + '.' + std::to_string(k))
              ++wrong;
            else ++done;
          }
        }
      });
    }
    for (int round = 0; round < 30; ++round) {
      server.run({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
      ASSERT_TRUE(eventually([&, before = done.load()] { return done > before + 100; }));
    }
    stop = true;
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(redis.count().lost, 0U);
}

TEST(RedisFault, ScriptFlushUnderLoadFailsNothing) {
  redis_server server({.durable = false});
  const client redis(server.url(), {.timeout = 30s});
  const redis::script count("return redis.call('INCR', KEYS[1])");
  const redis::script echo("return ARGV[1]");
  std::atomic<bool> stop = false;
  std::atomic<int> wrong = 0;
  std::vector<std::int64_t> sums(3);
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < sums.size(); ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; !stop; ++i) {
          std::vector<command> commands;
          for (int k = 0; k < 20; ++k) {
            commands.push_back(command(echo).arg(std::to_string(i * 100 + k)));
            commands.push_back(command(count).key("n" + std::to_string(t)));
          }
          const auto replies = redis.pipeline(commands);
          for (int k = 0; k < 20; ++k) {
            const auto& said = replies[static_cast<std::size_t>(2 * k)];
            if (!said.is_text() || said.text() != std::to_string(i * 100 + k)) ++wrong;
            if (!replies[static_cast<std::size_t>(2 * k + 1)].is_integer()) ++wrong;
          }
          sums[t] += 20;
        }
      });
    }
    for (int round = 0; round < 50; ++round) server.run({"SCRIPT", "FLUSH"});
    stop = true;
  }
  EXPECT_EQ(wrong, 0);
  // Each ran exactly once.
  for (std::size_t t = 0; t < sums.size(); ++t)
    EXPECT_EQ(redis.call(command("GET").key("n" + std::to_string(t))).text(),
              std::to_string(sums[t]));
  EXPECT_GT(redis.count().whole_scripts, 6U);
}

TEST(RedisFault, ClusterCutInTheMiddleOfReplies) {
  // Every node behind a proxy of its own; the client is told where they are.
  const auto& cluster = shared_server<redis_cluster>();
  std::map<std::string, std::unique_ptr<cutting_proxy>> proxies;
  for (const auto& each : client(cluster.url()).nodes()) {
    const auto port =
        static_cast<std::uint16_t>(std::stoul(each.address.substr(each.address.rfind(':') + 1)));
    proxies.emplace(each.address, std::make_unique<cutting_proxy>(port));
  }
  const auto behind = [&](const std::string& address) {
    return "127.0.0.1:" + std::to_string(proxies.at(address)->port());
  };
  const client through("redis+cluster://" + behind(cluster.address()),
                       {.timeout = 20s, .translate = behind});
  const auto prefix = cluster.unique_prefix("cut");
  const redis::script echo("return {KEYS[1], ARGV[1]}");
  int cuts = 0;
  for (std::uint64_t round = 0; round < 60; ++round) {
    std::vector<command> commands;
    for (int k = 0; k < 24; ++k) {
      commands.push_back(command(echo)
                             .key(prefix + std::to_string(k))
                             .arg(std::to_string(round) + '/' + std::to_string(k))
                             .idempotent(k % 2 == 0));
    }
    if (round > 0)
      std::next(proxies.begin(), static_cast<std::ptrdiff_t>(round % proxies.size()))
          ->second->cut_after(flow::to_client, round * 7);
    const auto replies = through.pipeline(commands);
    for (std::size_t k = 0; k < replies.size(); ++k) {
      if (replies[k].is_error()) {
        expect_passing(replies[k].problem());
        EXPECT_EQ(k % 2, 1U) << "an idempotent command is sent again: "
                             << replies[k].problem().what();
        ++cuts;
        continue;
      }
      ASSERT_EQ(replies[k].elements().at(0).text(), prefix + std::to_string(k));
      ASSERT_EQ(replies[k].elements().at(1).text(),
                std::to_string(round) + '/' + std::to_string(k));
    }
  }
  EXPECT_GT(cuts, 0);
  EXPECT_GT(through.count().resent, 0U);
}

TEST(RedisFault, NodeThatHangsCostsOnlyItsOwnCommands) {
  const auto& cluster = shared_server<redis_cluster>();
  const auto ranges =
      client(cluster.url(), {.timeout = 30s}).call(command("CLUSTER").arg("SLOTS")).elements();
  const auto port_of = [](const redis::reply& range) {
    return static_cast<std::uint16_t>(range.elements().at(2).elements().at(1).integer());
  };
  const auto hangs = port_of(ranges.at(0));
  const auto prefix = cluster.unique_prefix("hang");
  std::string there;
  std::string elsewhere;
  std::string elsewhere_node;
  for (int i = 0; there.empty() || elsewhere.empty(); ++i) {
    const std::string name = prefix + std::to_string(i);
    const std::int64_t slot = key::redis_slot(name);
    for (const auto& each : ranges) {
      if (slot < each.elements().at(0).integer() || slot > each.elements().at(1).integer())
        continue;
      (port_of(each) == hangs ? there : elsewhere) = name;
      if (port_of(each) != hangs) elsewhere_node = "127.0.0.1:" + std::to_string(port_of(each));
    }
  }
  cutting_proxy proxy(hangs);
  proxy.accept(false);
  const auto translate = [&](const std::string& address) {
    return address.ends_with(":" + std::to_string(hangs))
               ? "127.0.0.1:" + std::to_string(proxy.port())
               : address;
  };
  const redis::script add("return redis.call('INCRBY', KEYS[1], ARGV[1])");
  const std::vector<command> commands{command("INCR").key(there),
                                      command(add).key(elsewhere).arg(1)};
  const auto check = [&](const client& through, std::int64_t expected) {
    const auto replies = through.pipeline(commands, {.timeout = 4s});
    expect_passing(replies[0].problem());
    EXPECT_FALSE(replies[0].problem().in_doubt()) << replies[0].problem().what();
    EXPECT_EQ(replies[1].integer(), expected);
  };
  {
    // Both have to be connected to; connecting to one of them hangs for as long as the call may
    // take.
    const client through(cluster.url(), {.connect_timeout = 30s, .translate = translate});
    check(through, 1);
    // The script was forgotten: what has to be sent again does not wait for the one that hangs.
    client(cluster.url()).call(command("SCRIPT").arg("FLUSH"), {.node = elsewhere_node});
    check(through, 2);
    EXPECT_GE(through.count().whole_scripts, 2U);
  }
  {
    // All connections to one of them are in use.
    const client one(cluster.url(),
                     {.connect_timeout = 30s, .connections = 1, .translate = translate});
    std::jthread user(
        [&] { EXPECT_THROW(one.call(command("INCR").key(there), {.timeout = 8s}), error); });
    ASSERT_TRUE(eventually([&] { return one.count().open == 2; }));
    check(one, 3);
  }
}

// Seeds that accept and say nothing: however many there are, one that answers is found in time.
TEST(RedisFault, SeedsThatHangAreNotWaitedFor) {
  const auto& cluster = shared_server<redis_cluster>();
  std::vector<std::unique_ptr<cutting_proxy>> proxies;
  std::string url = cluster.url();
  for (int i = 0; i < 8; ++i) {
    proxies.push_back(std::make_unique<cutting_proxy>(cluster.port()));
    proxies.back()->accept(false);
    url.append(",127.0.0.1:").append(std::to_string(proxies.back()->port()));
  }
  for (int i = 0; i < 6; ++i)
    EXPECT_EQ(client(url).call(command("EXISTS").key("x"), {.timeout = 10s}).integer(), 0);
}

TEST(RedisFault, WritingToAClosedConnectionRaisesNoSignal) {
  // The default action would end this program.
  const auto before = std::signal(SIGPIPE, SIG_DFL);
  const temporary_directory place("tls", "redis");
  const auto files = make_certificates(place.path());
  redis_server secure(
      {.settings = {"port 0", "tls-port {port}", "tls-cert-file " + files.server.string(),
                    "tls-key-file " + files.server_key.string(),
                    "tls-ca-cert-file " + files.authority.string(), "tls-auth-clients no"}});
  const std::vector<command> commands(200, command("ECHO").arg(std::string(100'000, 'x')));
  for (const bool tls : {false, true}) {
    cutting_proxy proxy(tls ? secure.port() : shared_server<redis_server>().port());
    const client through(tls ? "rediss://127.0.0.1:" + std::to_string(proxy.port()) +
                                   "?tls_ca=" + files.authority.string()
                             : redis_endpoint::url_through(proxy.port()));
    EXPECT_EQ(through.call(command("PING")).text(), "PONG");
    for (const auto how : {ending::reset, ending::finish}) {
      proxy.cut_after(flow::to_server, 1'000'000, how);
      const auto replies = through.pipeline(commands);
      EXPECT_TRUE(std::any_of(replies.begin(), replies.end(),
                              [](const auto& each) { return each.is_error(); }));
    }
    EXPECT_EQ(through.call(command("PING")).text(), "PONG");
  }
  std::signal(SIGPIPE, before);
}

/// A server with full memory refuses the first write of a script, and no later one.
void expect_scripts_without_effect(const client& redis, const redis_endpoint& server,
                                   const std::string& large) {
  for (const auto* call : {"redis.call", "return redis.pcall"}) {
    const redis::script writes(std::string(call) + "('SET', KEYS[1], ARGV[1])");
    try {
      redis.call(command(writes).key("refused").arg(large));
      ADD_FAILURE() << call;
    } catch (const error& full) {
      EXPECT_EQ(full.backend_code(), "OOM");
      EXPECT_TRUE(full.transient());
      EXPECT_FALSE(full.in_doubt()) << full.what();
    }
    EXPECT_EQ(server.run({"EXISTS", "refused"}), "0");
  }
  const redis::script removes_and_writes(
      "redis.call('DEL', KEYS[1]) return redis.call('SET', KEYS[1], ARGV[1])");
  EXPECT_EQ(redis.call(command(removes_and_writes).key("0").arg(large)).text(), "OK");
}

TEST(RedisFault, FullMemoryIsTransientAndNotInDoubt) {
  redis_server server(
      {.settings = {"maxmemory 3mb", "maxmemory-policy noeviction"}, .durable = false});
  const client redis(server.url());
  const std::string text(100'000, 'x');
  for (int i = 0; i < 1'000; ++i) {
    try {
      redis.call(command("SET").key(std::to_string(i)).arg(text));
    } catch (const error& full) {
      EXPECT_EQ(full.code(), errc::unavailable);
      EXPECT_EQ(full.backend_code(), "OOM");
      EXPECT_TRUE(full.transient());
      EXPECT_FALSE(full.in_doubt());
      expect_scripts_without_effect(redis, server, text);
      return;
    }
  }
  FAIL() << "it never got full";
}

}  // namespace
