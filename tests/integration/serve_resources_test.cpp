// Entries and ids over HTTP, on PostgreSQL and Redis: many writers, and servers that stop, hang and
// return.

#include <holdfast/redis.hpp>

#include "serve/api/json_reader.hpp"
#include "support/api_resources.hpp"
#include "support/eventually.hpp"
#include "support/postgres_server.hpp"
#include "support/redis_server.hpp"
#include "support/shared_server.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace holdfast;
using namespace holdfast::detail::serve;
using namespace std::chrono_literals;
using test::is_problem;

using field_list = std::vector<std::pair<std::string, std::string>>;
constexpr auto path = "/v1/stores/main/country/FR";
const field_list an_hour{{"Cache-Control", "max-age=3600"}};

struct resources_on_servers : test::api_resources {
  resources_on_servers() { has_real_clock = true; }
  void add_store_on(const std::string& url, const database_options& options = {}) {
    const auto db = open(url, options);
    const store_options entries{.create_schema = true};
    add_store("main", db, db.store(entries), entries);
  }
  client_response put(std::string_view body, field_list fields = an_hour) {
    return send("PUT", path, "app", body, std::move(fields), "text/plain");
  }
};

TEST(ServeResourcesOnPostgres, NewestOfManyWritersWinsAlsoAcrossServers) {
  const auto& postgres = test::shared_server<test::postgres_server>();
  const auto url = postgres.url(postgres.create_database("entries"));
  // Two servers on one database, as two machines.
  std::vector<std::unique_ptr<resources_on_servers>> machines;
  for (int i = 0; i < 2; ++i) {
    machines.push_back(std::make_unique<resources_on_servers>());
    machines.back()->add_store_on(url);
    (void)machines.back()->server();
  }
  constexpr int writers = 8;
  constexpr int rounds = 20;
  std::atomic<int> stored = 0;
  std::atomic<int> older = 0;
  std::vector<std::jthread> threads;
  for (int writer = 0; writer < writers; ++writer) {
    threads.emplace_back([&, writer] {
      for (int i = 0; i < rounds; ++i) {
        const int micros = 900'000 - (i * writers + writer) * 10;
        const auto answer = machines[static_cast<std::size_t>(writer) % 2]->put(
            std::to_string(micros),
            {{"Holdfast-As-Of", "2026-01-01T00:00:00." + std::to_string(micros) + "Z"},
             {"Holdfast-Expires", "2999-01-01T00:00:00Z"}});
        stored += answer.status == 204 ? 1 : 0;
        older += answer.status == 409 ? 1 : 0;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(stored + older, writers * rounds);
  EXPECT_GE(stored, 1);
  EXPECT_LE(stored, writers);
  for (auto& machine : machines) EXPECT_EQ(machine->send("GET", path, "app").body, "900000");
}

TEST(ServeResourcesOnPostgres, NamesTenantsAndDoctor) {
  const auto& postgres = test::shared_server<test::postgres_server>();
  const auto url = postgres.url(postgres.create_database("names"));
  resources_on_servers api;
  const auto db = open(url);
  const store_options entries{.create_schema = true,
                              .realms = {{"acme", "ACME_"}, {"beta", "BETA_"}}};
  api.add_store("main", db, db.store(entries), entries);
  EXPECT_EQ(api.send("PUT", path, "app @acme", "x", an_hour, "text/plain").status, 204);
  EXPECT_EQ(
      api.send("PUT", "/v1/stores/main/%C3%A9/k", "app @acme", "x", an_hour, "text/plain").status,
      204);
  const auto names = api.send("GET", "/v1/stores/main/names", "viewer @acme");
  EXPECT_NE(names.body.find("\"name\":\"country\",\"entries\":1"), std::string::npos);
  EXPECT_NE(names.body.find("\"name\":\"\xC3\xA9\""), std::string::npos) << names.body;
  EXPECT_EQ(api.send("GET", "/v1/stores/main/names", "viewer @beta").body,
            R"({"items":[],"atLeast":false,"next":null})");
  const auto report = api.send("GET", "/v1/stores/main/doctor", "viewer");
  EXPECT_NE(report.body.find("\"usable\":true,\"dialect\":\"postgresql\""), std::string::npos)
      << report.body;
  EXPECT_EQ(api.send("POST", "/v1/stores/main/clean", "operator").body,
            R"({"removed":0,"more":false})");
}

/// Draws from several threads and two servers. Returns how many ids came twice.
std::size_t count_repeated_ids(std::vector<std::unique_ptr<resources_on_servers>>& machines) {
  std::mutex mutex;
  std::multiset<std::string> ids;
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < 6; ++i) {
    threads.emplace_back([&, i] {
      for (int j = 0; j < 40; ++j) {
        const auto answer = machines[i % machines.size()]->send(
            "POST", "/v1/sequences/order.id/next", "app", j % 4 == 0 ? R"({"count":9})" : "");
        EXPECT_EQ(answer.status, 200) << answer.body;
        const auto drawn =
            json_object::parse(answer.body).texts("ids").value_or(std::vector<std::string>{});
        const std::scoped_lock lock(mutex);
        ids.insert(drawn.begin(), drawn.end());
      }
    });
  }
  threads.clear();
  EXPECT_EQ(ids.size(), 6U * (30 + 10 * 9));
  const std::set<std::string> distinct(ids.begin(), ids.end());
  return ids.size() - distinct.size();
}

TEST(ServeResourcesOnPostgres, IdsAreUniqueAcrossServers) {
  const auto& postgres = test::shared_server<test::postgres_server>();
  const auto url = postgres.url(postgres.create_database("ids"));
  std::vector<std::unique_ptr<resources_on_servers>> machines;
  for (int i = 0; i < 2; ++i) {
    machines.push_back(std::make_unique<resources_on_servers>());
    machines.back()->add_sequences(url,
                                   {.blocks = adaptive_blocks{}, .store = {.create_schema = true}});
    (void)machines.back()->server();
  }
  EXPECT_EQ(count_repeated_ids(machines), 0U);
}

TEST(ServeResourcesOnRedis, IdsAreUniqueAcrossServers) {
  const auto& redis = test::shared_server<test::redis_server>();
  std::vector<std::unique_ptr<resources_on_servers>> machines;
  for (int i = 0; i < 2; ++i) {
    machines.push_back(std::make_unique<resources_on_servers>());
    machines.back()->add_sequences(
        redis.url(),
        {.blocks = adaptive_blocks{},
         .store = {.prefix = "SERVE_RESOURCES_", .allow_unsafe = true, .fence = no_fence{}}});
    (void)machines.back()->server();
  }
  EXPECT_EQ(count_repeated_ids(machines), 0U);
  const auto shown = machines[0]->send("GET", "/v1/sequences/order.id", "viewer");
  EXPECT_EQ(shown.status, 200) << shown.body;
  const auto state = json_object::parse(shown.body).object("counter");
  ASSERT_TRUE(state);
}

TEST(ServeResourcesOnRedis, ResetAndEnsure) {
  const auto& redis = test::shared_server<test::redis_server>();
  resources_on_servers api;
  api.add_sequences(
      redis.url(),
      {.store = {.prefix = "SERVE_RESET_", .allow_unsafe = true, .fence = no_fence{}}});
  constexpr auto sequence = "/v1/sequences/import.id";
  EXPECT_EQ(api.send("POST", std::string(sequence) + "/next").status, 200);
  EXPECT_EQ(api.send("POST", std::string(sequence) + "/ensure", "admin", R"({"id":"700"})").body,
            R"({"last":"700"})");
  const auto next = api.send("POST", std::string(sequence) + "/next");
  EXPECT_NE(next.body.find("\"first\":\"701\""), std::string::npos) << next.body;
  auto shown = json_object::parse(api.send("GET", sequence).body);
  auto state = *shown.object("counter");
  const auto body = R"({"next":"1","last":")" + state.text("last").value_or("") + R"(","epoch":")" +
                    state.text("epoch").value_or("") + "\"}";
  EXPECT_EQ(api.send("POST", std::string(sequence) + "/reset", "admin", body).status, 200);
  EXPECT_NE(api.send("POST", std::string(sequence) + "/next").body.find("\"first\":\"1\""),
            std::string::npos);
}

TEST(ServeResourcesOnPostgres, AServerThatHangsAndReturns) {
  test::postgres_server postgres;
  resources_on_servers api;
  const auto url = postgres.url(postgres.create_database("hang"));
  api.add_store_on(url, {.statement_timeout = 3s});
  const auto db = open(url, {.statement_timeout = 3s});
  const sequence_options options{
      .blocks = fixed_blocks{.size = 50}, .wait = 3s, .store = {.create_schema = true}};
  api.shared.sequences.emplace(sequence_service{
      .url = url, .database = db, .blocks = db.block_store(options.store), .options = options});
  ASSERT_EQ(api.put("before").status, 204);
  ASSERT_EQ(api.send("POST", "/v1/sequences/a/next", "app").status, 200);

  postgres.pause();
  std::vector<std::jthread> clients;
  std::atomic<int> refused = 0;
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back([&] {
      const auto answer = api.send("GET", path, "app");
      refused += answer.status == 503 || answer.status == 504 ? 1 : 0;
    });
    clients.emplace_back([&] {
      const auto answer = api.put("meanwhile");
      refused += answer.status == 503 || answer.status == 504 ? 1 : 0;
    });
  }
  // The loop answers from memory meanwhile.
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(api.send("POST", "/v1/sequences/a/next", "app").status, 200);
  const auto exhausted = api.send("POST", "/v1/sequences/a/next", "app", R"({"count":1000})");
  EXPECT_TRUE(is_problem(exhausted, 504, "\"transient\":true")) << exhausted.body;
  clients.clear();
  EXPECT_EQ(refused, 6);
  EXPECT_NE(api.send("GET", "/v1/stores/main", "viewer").body.find("\"available\":false"),
            std::string::npos);

  postgres.resume();
  EXPECT_TRUE(test::eventually([&] { return api.put("after").status == 204; }));
  EXPECT_TRUE(test::eventually([&] { return api.send("GET", path, "app").body == "after"; }));
  EXPECT_TRUE(test::eventually([&] {
    return api.send("POST", "/v1/sequences/a/next", "app", R"({"count":1000})").status == 200;
  }));

  postgres.stop();
  EXPECT_TRUE(is_problem(api.send("GET", path, "app"), 503, "\"code\":\"unavailable\""));
  EXPECT_EQ(api.put("down").status, 503);
  postgres.start();
  EXPECT_TRUE(test::eventually([&] { return api.put("again").status == 204; }));
}

}  // namespace
