// `holdfast redis doctor`, `holdfast bench` and `holdfast_bench redis`, on servers with good and
// with bad settings.

#include <holdfast/redis.hpp>

#include "bench/redis.hpp"
#include "program.hpp"
#include "support/postgres_server.hpp"
#include "support/redis_cluster.hpp"
#include "support/redis_server.hpp"
#include "support/shared_server.hpp"
#include "terminal/output.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <string>
#include <vector>

namespace {

using namespace holdfast;
using namespace holdfast::test;

struct answer {
  int code = -1;
  std::string out{}, err{};
};

std::string drain(int descriptor) {
  std::string text;
  std::array<char, 4096> room{};
  for (ssize_t got = 0; (got = ::read(descriptor, room.data(), room.size())) > 0;)
    text.append(room.data(), static_cast<std::size_t>(got));
  ::close(descriptor);
  return text;
}

/// The command line, in this process. Its output fits into a pipe.
answer run(std::vector<std::string> words) {
  std::array<int, 2> out{};
  std::array<int, 2> err{};
  EXPECT_EQ(::pipe(out.data()), 0);
  EXPECT_EQ(::pipe(err.data()), 0);
  answer made;
  {
    cli::output standard(out[1]);
    cli::output problems(err[1]);
    made.code = cli::run(std::move(words), standard, problems);
  }
  ::close(out[1]);
  ::close(err[1]);
  made.out = drain(out[0]);
  made.err = drain(err[0]);
  return made;
}

bool has(const std::string& text, std::string_view what) {
  return text.find(what) != std::string::npos;
}

TEST(RedisDoctor, FindsAGoodServerFit) {
  const auto& server = shared_server<redis_server>();
  const auto said = run({"redis", "doctor", server.url()});
  EXPECT_EQ(said.code, 0) << said.out << said.err;
  EXPECT_TRUE(has(said.out, server.address()));
  EXPECT_TRUE(has(said.out, "appendfsync always"));
  EXPECT_TRUE(said.out.ends_with("\nfit\n")) << said.out;
  const auto json = run({"redis", "doctor", server.url(), "--json"});
  EXPECT_EQ(json.code, 0);
  EXPECT_TRUE(json.out.starts_with("{\"fit\":true,\"servers\":[{\"address\":")) << json.out;
  EXPECT_EQ(json.out.find('\n'), json.out.size() - 1);
}

TEST(RedisDoctor, FindsPlaintextToAnotherMachine) {
  const auto& server = shared_server<redis_server>();
  // The resolver completes 127.1 to this machine, but only a whole loopback address counts as
  // local.
  const auto remote = run({"redis", "doctor", "redis://127.1:" + std::to_string(server.port())});
  EXPECT_TRUE(has(remote.out, "warn  the connection to another machine is not encrypted"))
      << remote.out;
  EXPECT_TRUE(has(remote.out, "rediss://")) << remote.out;
  EXPECT_EQ(remote.code, 0) << "a warning: it is still fit";
  EXPECT_FALSE(has(run({"redis", "doctor", server.url()}).out, "not encrypted"));
}

TEST(SequenceDoctor, FindsPlaintextToAnotherMachine) {
  const auto& redis = shared_server<redis_server>();
  const auto port = std::to_string(redis.port());
  const auto& postgres = shared_server<postgres_server>();
  auto sql = postgres.url() + "?sslmode=disable";
  const auto local_sql = sql;
  sql.replace(sql.find("127.0.0.1"), 9, "127.1");
  for (const auto& words : std::vector<std::vector<std::string>>{
           {"seq", "doctor", "--store", "redis://127.1:" + port, "--fence", "none"},
           {"seq", "doctor", "--store", sql},
           {"seq", "doctor", "--store", redis.url(), "--fence", "super", "--super-store", sql}}) {
    const auto remote = run(words);
    EXPECT_TRUE(has(remote.out, "warning: the connection to another machine is not encrypted"))
        << remote.out << remote.err;
    EXPECT_TRUE(has(remote.out, "docs/tls.md")) << remote.out;
    auto as_json = words;
    as_json.emplace_back("--json");
    const auto json = run(as_json);
    EXPECT_TRUE(has(json.out, "\"warnings\":[\"the connection to another machine is not encrypted"))
        << json.out << json.err;
  }
  for (const auto& words : std::vector<std::vector<std::string>>{
           {"seq", "doctor", "--store", redis.url(), "--fence", "none"},
           {"seq", "doctor", "--store", local_sql}}) {
    EXPECT_FALSE(has(run(words).out, "not encrypted"));
  }
}

TEST(RedisDoctor, FindsWhatWouldLoseData) {
  redis_server careless(
      {.settings = {"maxmemory 100mb", "maxmemory-policy allkeys-lru", "requirepass secret"},
       .durable = false});
  const auto said = run({"redis", "doctor", "redis://:secret@" + careless.address()});
  EXPECT_EQ(said.code, 1) << said.err;
  EXPECT_TRUE(has(said.out, "bad   it writes no append-only file"));
  EXPECT_TRUE(has(
      said.out, "bad   it evicts any key when its memory is full (maxmemory-policy allkeys-lru)"));
  EXPECT_FALSE(has(said.out + said.err, "secret"));
  const auto refused = run({"redis", "doctor", "redis://:wrong-secret@" + careless.address()});
  EXPECT_EQ(refused.code, 3);
  EXPECT_TRUE(has(refused.err, "WRONGPASS"));
  EXPECT_FALSE(has(refused.err, "wrong-secret"));
}

TEST(RedisDoctor, AnOutboxOnAServerThatEvictsCanStillBeLookedAt) {
  redis_server careless(
      {.settings = {"maxmemory 100mb", "maxmemory-policy allkeys-lru"}, .durable = false});
  const auto refused = run({"outbox", "stats", "--outbox", careless.url()});
  EXPECT_EQ(refused.code, 2);
  EXPECT_TRUE(has(refused.err, "--allow-unsafe")) << refused.err;
  const auto said = run({"outbox", "stats", "--outbox", careless.url(), "--allow-unsafe"});
  EXPECT_EQ(said.code, 0) << said.err;
}

TEST(RedisDoctor, LooksAtEveryNodeOfACluster) {
  const auto& cluster = shared_server<redis_cluster>();
  const auto said = run({"redis", "doctor", cluster.url()});
  EXPECT_EQ(said.code, 1) << said.err;  // the Cluster of the tests keeps nothing
  std::size_t slots = 0;
  for (auto at = said.out.find("computes the same slots"); at != std::string::npos;
       at = said.out.find("computes the same slots", at + 1))
    ++slots;
  EXPECT_EQ(slots, 6U) << said.out;
  const auto plain = run({"redis", "doctor", cluster.redis_endpoint::url()});
  EXPECT_EQ(plain.code, 1);
  EXPECT_TRUE(has(plain.out, "use redis+cluster://")) << plain.out;
}

TEST(RedisDoctor, SeesAReplicaAndALostMaster) {
  redis_server master({.durable = false});
  redis_server replica({.settings = {"replicaof 127.0.0.1 " + std::to_string(master.port()),
                                     "repl-diskless-sync-delay 0"}});
  const redis::client with(replica.url());
  master.kill9();
  const auto said = run({"redis", "doctor", replica.url()});
  EXPECT_EQ(said.code, 1);
  EXPECT_TRUE(has(said.out, "it is a replica and accepts no writes"));
  EXPECT_TRUE(has(said.out, "not connected to its master")) << said.out;
}

TEST(RedisDoctor, SaysInOneLineWhatIsWrong) {
  const auto nobody = run({"redis", "doctor", "redis://127.0.0.1:1"});
  EXPECT_EQ(nobody.code, 3);
  EXPECT_TRUE(has(nobody.err, "cannot connect to Redis at 127.0.0.1:1")) << nobody.err;
  const auto sentinel = run({"redis", "doctor", "redis+sentinel://127.0.0.1:1/main"});
  EXPECT_EQ(sentinel.code, 3);
  EXPECT_TRUE(has(sentinel.err, "cannot connect to Redis at 127.0.0.1:1")) << sentinel.err;
  EXPECT_EQ(run({"redis", "doctor"}).code, 2);
  EXPECT_EQ(run({"redis"}).code, 2);
}

TEST(RedisBench, ComparesWithHiredisAndRemovesItsKeys) {
  const auto& server = shared_server<redis_server>();
  const auto names_of = [](const std::string& url) {
    std::string names;
    // No bars: they need a quiet machine.
    for (const auto& row : bench::measure_redis({.url = url, .measuring = {.rounds = 1}}))
      names += row.name + " ";
    return names;
  };
  EXPECT_EQ(names_of(server.url()), "redis.set_pipeline redis.evalsha_pipeline redis.call ");
  EXPECT_FALSE(has(server.run({"KEYS", "*holdfast-bench-*"}), "bench"));
  EXPECT_EQ(names_of(shared_server<redis_cluster>().url()),
            "redis.set_pipeline redis.evalsha_pipeline redis.call redis.cluster_pipeline "
            "redis.cluster_call ");
}

TEST(RedisBench, MeasuresForUsersAndRemovesItsKeys) {
  const auto& server = shared_server<redis_server>();
  const auto measured = [](const std::string& name, const std::string& option,
                           const std::string& url) {
    return run({"bench", name, option, url, "--seconds", "1", "--json"});
  };
  for (const std::string& url : {server.url(), shared_server<redis_cluster>().url()}) {
    const auto outbox = measured("outbox", "--outbox", url);
    EXPECT_EQ(outbox.code, 0) << outbox.err;
    for (const auto* row : {"publish", "publish_batch", "deliver", "deliver_one"})
      EXPECT_TRUE(has(outbox.out, "{\"name\":\"" + std::string(row) + "\"")) << outbox.out;
    const auto sequence = measured("sequence", "--store", url);
    EXPECT_EQ(sequence.code, 0) << sequence.err;
    EXPECT_EQ(outbox.err + sequence.err, "");
  }
  EXPECT_FALSE(has(server.run({"KEYS", "*BENCH_*"}), "BENCH"));
  const auto store = measured("store", "--store", server.url());
  EXPECT_EQ(store.code, 2);
  EXPECT_TRUE(has(store.err, "cannot live on Redis")) << store.err;
}

}  // namespace
