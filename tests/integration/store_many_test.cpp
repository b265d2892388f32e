// Many threads put, and many keys are found, with few statements.

#include <holdfast/database.hpp>
#include <holdfast/failover.hpp>
#include <holdfast/store/compose.hpp>

#include "support/cutting_proxy.hpp"
#include "support/eventually.hpp"
#include "support/mariadb_server.hpp"
#include "support/postgres_server.hpp"
#include "support/shared_server.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <latch>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

entry make_entry(const std::string& key, const std::string& payload = "{}") {
  const auto now = system_clock()->now();
  return {.name = "n",
          .key = key,
          .as_of = now,
          .expire_on = now + 1h,
          .payload = payload,
          .payload_class = "test"};
}

/// Transactions that were committed in the database so far.
std::uint64_t commits_of(const postgres_endpoint& server, const std::string& database) {
  return std::stoull(
      server.run("SELECT pg_stat_force_next_flush()", database).substr(0, 0) +
      server.run("SELECT xact_commit FROM pg_stat_database WHERE datname = '" + database + "'",
                 "holdfast"));
}

template <class Server>
class ManyPuts : public ::testing::Test {};
using servers = ::testing::Types<postgres_server, mariadb_server>;
TYPED_TEST_SUITE(ManyPuts, servers);

TYPED_TEST(ManyPuts, ARefusedPutFailsAlone) {
  const auto& server = shared_server<TypeParam>();
  const auto database = server.create_database("threads");
  const auto store =
      open(server.url(database)).store({.create_schema = true, .start = start_mode::require});
  server.run(TypeParam::endpoint::kind == "mysql"
                 ? "ALTER TABLE FAILOVER_STORE MODIFY PAYLOAD VARCHAR(100)"
                 : "ALTER TABLE FAILOVER_STORE ALTER COLUMN PAYLOAD TYPE VARCHAR(100)",
             database);
  constexpr int threads = 40;
  constexpr int rounds = 20;
  std::atomic<int> refused{0};
  std::atomic<int> wrong{0};
  std::latch start(threads);
  {
    std::vector<std::jthread> writers;
    for (int t = 0; t < threads; ++t) {
      writers.emplace_back([&, t] {
        start.arrive_and_wait();
        for (int i = 0; i < rounds; ++i) {
          const bool is_long = t == 0;
          try {
            store->put(make_entry(std::to_string(t) + "/" + std::to_string(i),
                                  std::string(is_long ? 200 : 10, 'x')));
            if (is_long) ++wrong;
          } catch (const error& problem) {
            ++(is_long && problem.code() == errc::too_large ? refused : wrong);
            if (!is_long) ADD_FAILURE() << problem.what();
          }
        }
      });
    }
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(refused, rounds);
  EXPECT_EQ(store->count("n"), static_cast<std::uint64_t>(threads - 1) * rounds);
}

TYPED_TEST(ManyPuts, OfOneKeyLeaveTheNewest) {
  const auto& server = shared_server<TypeParam>();
  const auto url = server.url(server.create_database("threads"));
  const auto store = open(url).store({.create_schema = true});
  constexpr int threads = 40;
  constexpr int rounds = 20;
  const auto start = system_clock()->now();
  {
    std::vector<std::jthread> writers;
    for (int t = 0; t < threads; ++t) {
      writers.emplace_back([&, t] {
        for (int i = 0; i < rounds; ++i) {
          auto e = make_entry("k", std::to_string(i * threads + t));
          e.as_of = start + 1us * (i * threads + t);
          EXPECT_NO_THROW(store->put(e));
        }
      });
    }
  }
  EXPECT_EQ(store->find("n", "k").value().payload, std::to_string(threads * rounds - 1));
}

TEST(ManyPutsOnPostgres, NeedFewTransactions) {
  postgres_server server;
  const auto database = server.create_database("threads");
  const auto store = open(server.url(database)).store({.create_schema = true});
  const auto before = commits_of(server, database);
  constexpr int threads = 200;
  constexpr int rounds = 10;
  {
    std::latch start(threads);
    std::vector<std::jthread> writers;
    for (int t = 0; t < threads; ++t) {
      writers.emplace_back([&, t] {
        start.arrive_and_wait();
        for (int i = 0; i < rounds; ++i)
          EXPECT_NO_THROW(store->put(make_entry(std::to_string(t) + "/" + std::to_string(i))));
      });
    }
  }
  EXPECT_EQ(store->count("n"), static_cast<std::uint64_t>(threads) * rounds);
  const auto commits = commits_of(server, database) - before;
  EXPECT_LT(commits, static_cast<std::uint64_t>(threads) * rounds / 4)
      << "one for each put would be " << threads * rounds;
}

/// The statements on the table that the server has logged since then.
class logged_statements {
 public:
  explicit logged_statements(const postgres_server& server)
      : server_(server), start_(server.log().size()) {}
  [[nodiscard]] std::size_t count(const std::string& text) const {
    const auto log = server_.log();
    std::size_t found = 0;
    for (auto at = log.find(text, start_); at != std::string::npos; at = log.find(text, at + 1))
      ++found;
    return found;
  }

 private:
  const postgres_server& server_;
  std::size_t start_;
};

constexpr std::size_t slices = 1'000;

std::vector<std::string> slice_ids() {
  std::vector<std::string> ids;
  for (std::size_t i = 0; i < slices; ++i) ids.push_back("id " + std::to_string(i));
  return ids;
}

TEST(ManyKeys, AScatterOfAThousandSlicesIsRecoveredWithAFewStatements) {
  postgres_server server({.settings = {"log_statement=all"}});
  const auto db = open(server.url());
  engine on(db.store({.create_schema = true}), {});
  std::atomic<bool> down{false};
  const auto point =
      on.protect_each("answers-by-ids", {.expiry = 24h}, [&](std::span<const std::string> ids) {
        if (down) throw std::runtime_error("down");
        std::vector<std::optional<std::string>> answers;
        for (const auto& id : ids) answers.emplace_back("answer of " + id);
        return answers;
      });
  const auto ids = slice_ids();
  (void)point(ids);
  ASSERT_TRUE(on.flush(steady::now() + 60s));
  down = true;
  const logged_statements logged(server);
  const auto recovered = point(ids);
  EXPECT_TRUE(recovered.stale());
  EXPECT_EQ(recovered.complete(), completeness::yes);
  EXPECT_EQ(*recovered[999], "answer of id 999");
  EXPECT_GE(logged.count("FROM FAILOVER_STORE"), 1U) << "the server logs its statements";
  EXPECT_LE(logged.count("FROM FAILOVER_STORE"), 10U);
}

TEST(ManyKeys, ReachTheDatabaseThroughAllLayersAsOneStatement) {
  postgres_server server({.settings = {"log_statement=all"}});
  const auto db = open(server.url());
  const std::vector<std::byte> key(32, std::byte{7});
  const auto composed =
      compose(db,
              {.tenants = tenant_options{.tenants = {"acme"}, .default_tenant = "acme"},
               .tiered = tiered_options{.freshness = 0s},
               .write_behind = write_behind_options{},
               .sealed = sealed_options{.keys = {"main", sealing_key::from_bytes(key)}}},
              {.create_schema = true,
               .realms = tenant_realms({{.id = "acme"}}, tenant_strategy::table_prefix)});
  std::vector<std::string> keys;
  for (int i = 0; i < 200; ++i) {
    keys.push_back("k" + std::to_string(i));
    composed->put(make_entry(keys.back(), std::to_string(i)));
  }
  ASSERT_EQ(composed->flush(steady::now() + 60s).unsaved, 0U);
  const logged_statements logged(server);
  const auto found = composed->find_many("n", keys);
  for (std::size_t i = 0; i < keys.size(); ++i)
    EXPECT_EQ(found.at(i).value().payload, std::to_string(i));
  EXPECT_EQ(logged.count("FROM acme_FAILOVER_STORE"), 1U);
}

TEST(ManyKeys, AreFoundAtLeastTwentyTimesFasterThanOneByOne) {
  const auto& server = shared_server<postgres_server>();
  const auto database = server.create_database("many");
  cutting_proxy proxy(server.port());
  const auto store =
      open(server.url_through(proxy.port(), database)).store({.create_schema = true});
  std::vector<entry> entries;
  const auto keys = slice_ids();
  for (const auto& key : keys) entries.push_back(make_entry(key));
  store->put(entries);
  proxy.delay(flow::to_client, 1ms);  // of a network
  (void)store->find_many("n", keys);  // prepares the statement
  // Other work on the machine can stretch one short read twentyfold, but hardly each of ten.
  auto together = steady::duration::max();
  std::vector<std::optional<entry>> found;
  for (int round = 0; round < 10; ++round) {
    const auto start = steady::now();
    found = store->find_many("n", keys);
    together = std::min(together, steady::now() - start);
  }
  const auto start = steady::now();
  for (std::size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(store->find("n", keys[i]), found[i]);
  const auto one_by_one = steady::now() - start;
  EXPECT_GE(one_by_one / together, 20)
      << "together: " << together / 1us << " us, one by one: " << one_by_one / 1us << " us";
}

}  // namespace
}  // namespace holdfast::test
