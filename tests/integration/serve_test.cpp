// The server in front of a PostgreSQL that hangs or dies: the loops stay free, the workers come
// back, and the end reports what is left.

#include <holdfast/error.hpp>

#include "serve/api/endpoint_table.hpp"
#include "serve/http_client.hpp"
#include "serve/parts.hpp"
#include "serve/server.hpp"
#include "support/eventually.hpp"
#include "support/postgres_server.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace holdfast;
using namespace holdfast::detail::serve;
using namespace std::chrono_literals;
using test::eventually;

/// Reads an entry of the first store.
class reading_part final : public server_part {
 public:
  void add_endpoints(endpoint_table& table, services& shared) override {
    table.add({.method = "GET",
               .path = "/v1/read",
               .summary = "s",
               .roles = {role::operator_},
               .answer = [&shared](api_request&) {
                 const bool found = shared.stores.front().store->find("n", "k").has_value();
                 return json_response(200, found ? "true" : "false");
               }});
  }
};

struct ServeWithPostgres : ::testing::Test {
  test::postgres_server postgres{};
  std::unique_ptr<server> process{};

  void start(std::size_t workers, std::chrono::milliseconds statement_timeout) {
    server_setup setup{.config = {.listen = {"127.0.0.1:0"},
                                  .open = true,
                                  .access_log = "",
                                  .workers = workers,
                                  .queue = workers}};
    setup.config.stores.push_back({.name = "main",
                                   .database = {.url = postgres.url(),
                                                .connections = workers + 1,
                                                .statement_timeout = statement_timeout},
                                   .create_schema = true});
    setup.parts = make_parts(setup.config);
    setup.parts.push_back(std::make_unique<reading_part>());
    process = std::make_unique<server>(std::move(setup));
    ASSERT_TRUE(eventually([&] { return get("/readyz").status == 200; }, 60s));
  }
  client_response get(const std::string& target) {
    http_client client("http://" + process->addresses().front(), {});
    return client.send({.target = target}, std::chrono::steady_clock::now() + 120s);
  }
};

TEST_F(ServeWithPostgres, AHungStoreBlocksNoLoop) {
  start(4, 3s);
  EXPECT_EQ(get("/v1/read").body, "false");
  postgres.pause();
  std::vector<std::jthread> clients;
  std::vector<int> statuses(16);
  for (auto& status : statuses) clients.emplace_back([&] { status = get("/v1/read").status; });
  // 4 run, 4 wait, and the others are refused, while health checks are answered.
  EXPECT_TRUE(eventually(
      [&] { return get("/readyz").body == R"({"ready":false,"missing":["store:main"]})"; }, 60s));
  EXPECT_EQ(get("/healthz").status, 200);
  clients.clear();
  for (const int status : statuses) EXPECT_TRUE(status == 503 || status == 504) << status;
  EXPECT_GE(std::ranges::count(statuses, 503), 8);
  postgres.resume();
  EXPECT_TRUE(eventually([&] { return get("/v1/read").status == 200; }, 60s));
  EXPECT_TRUE(eventually([&] { return get("/readyz").status == 200; }, 60s));
  EXPECT_TRUE(process->stop(30s).empty());
}

TEST_F(ServeWithPostgres, AStoreThatDiedIsUnavailableAndComesBack) {
  start(4, 10s);
  postgres.kill9();
  const auto answer = get("/v1/read");
  EXPECT_EQ(answer.status, 503);
  EXPECT_TRUE(answer.fields.has("Retry-After"));
  EXPECT_NE(answer.body.find("\"transient\":true"), std::string::npos) << answer.body;
  EXPECT_TRUE(eventually([&] { return get("/readyz").status == 503; }, 60s));
  postgres.start();
  EXPECT_TRUE(eventually([&] { return get("/v1/read").status == 200; }, 60s));
  EXPECT_TRUE(process->stop(30s).empty());
}

TEST_F(ServeWithPostgres, TheEndDoesNotWaitForAHungStore) {
  start(2, 60s);
  EXPECT_EQ(get("/v1/read").status, 200);
  postgres.pause();
  client_response answer;
  std::jthread client([&] { answer = get("/v1/read"); });
  ASSERT_TRUE(eventually(
      [&] {
        const auto text = get("/metrics").body;
        return text.find("holdfast_http_workers_running 2") != std::string::npos;
      },
      60s));
  const auto remaining = process->stop(2s);
  EXPECT_FALSE(remaining.empty());
  client.join();
  EXPECT_NE(answer.status, 200);
  // The worker ends with the database, and must find its objects.
  postgres.resume();
}

}  // namespace
