// The outbox over HTTP, with `holdfast serve` as a process: the server and the workers are killed
// with -9 while events are published and delivered. Nothing that was acknowledged is lost, the
// order of a key is kept, and a stale fence is refused.

#include <holdfast/database.hpp>
#include <holdfast/outbox.hpp>

#include "serve/http_client.hpp"
#include "support/child_process.hpp"
#include "support/eventually.hpp"
#include "support/free_port.hpp"
#include "support/postgres_server.hpp"
#include "support/redis_server.hpp"
#include "support/shared_server.hpp"
#include "support/temporary_directory.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <atomic>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace holdfast;
using namespace holdfast::detail::serve;
using namespace holdfast::test;
using namespace std::chrono_literals;
using nlohmann::json;

/// Both tests on each.
class OutboxHttpFault : public testing::TestWithParam<const char*> {
 protected:
  OutboxHttpFault() {
    const bool redis = std::string_view(GetParam()) == "redis";
    if (redis) {
      const auto& server = shared_server<redis_server>();
      url_ = server.url();
      prefix_ = "{" + server.unique_prefix("serve") + "}";
    } else {
      const auto& server = shared_server<postgres_server>();
      url_ = server.url(server.create_database("serve"));
    }
    std::ofstream file(config());
    file << "[serve]\nlisten = [\"" << address_ << "\"]\nopen = true\naccess-log = \"\"\n"
         << "state = \"sqlite:" << (directory_.path() / "state.db").string() << "\"\n"
         << "drain = \"0s\"\n"
         << "[outboxes.orders]\nurl = \"" << url_ << "\"\nmax-deliveries = 100000\n"
         << (redis ? "prefix = \"" + prefix_ + "\"\n" : "create-schema = true\n");
  }

  [[nodiscard]] std::string config() const { return (directory_.path() / "serve.toml").string(); }
  [[nodiscard]] std::string ledger() const { return (directory_.path() / "ledger").string(); }

  void start_server() {
    server_.emplace(child_options{.argv = {HOLDFAST_TEST_CLI, "serve", "--config", config()},
                                  .log = directory_.path() / "serve.log"});
    ASSERT_TRUE(eventually([&] { return get("/readyz").status == 200; }, 120s)) << log();
  }
  void kill_server() {
    server_->signal(SIGKILL);
    (void)server_->wait(60s);
  }
  [[nodiscard]] child_process start_worker() const {
    return child_process(
        child_options{.argv = {"/usr/bin/python3", HOLDFAST_TEST_WORKER, address_, ledger()},
                      .log = directory_.path() / "worker.log"});
  }
  [[nodiscard]] std::string log() const {
    std::ifstream file(directory_.path() / "serve.log");
    return {std::istreambuf_iterator<char>(file), {}};
  }

  client_response get(const std::string& path) {
    return client_.send({.target = path}, std::chrono::steady_clock::now() + 60s);
  }
  client_response post(const std::string& path, const json& body) {
    const auto text = body.dump();
    client_request request{.method = "POST", .target = path, .fields = {}, .body = text};
    request.fields.add("Content-Type", "application/json");
    return client_.send(request, std::chrono::steady_clock::now() + 60s);
  }

  /// A request waits, beside the one that asks.
  [[nodiscard]] bool has_waiting_poll() {
    return get("/metrics").body.find("\nholdfast_http_waiting 2\n") != std::string::npos;
  }

  /// Publishes a batch until every event of it is acknowledged.
  void publish(const json& batch) {
    for (;;) {
      const auto response = post("/v1/outboxes/orders/events", batch);
      bool safe = response.status == 207;
      if (safe) {
        const auto receipts = json::parse(response.body);
        for (const auto& item : receipts["items"])
          safe = safe && (item["status"] == "added" || item["status"] == "duplicate");
      }
      if (safe) return;
      ASSERT_NE(response.status, 400) << response.body;
      std::this_thread::sleep_for(20ms);
    }
  }

  /// The payloads of each key in the order in which they were first delivered.
  [[nodiscard]] std::map<std::string, std::vector<int>> first_deliveries() const {
    std::map<std::string, std::vector<int>> result;
    std::set<std::string> seen;
    std::ifstream file(ledger());
    std::string key;
    std::string id;
    for (int number = 0; file >> key >> number >> id;) {
      if (seen.insert(id).second) result[key].push_back(number);
    }
    return result;
  }

  temporary_directory directory_{};
  std::string address_ = "127.0.0.1:" + std::to_string(free_port());
  std::string url_{};
  std::string prefix_{};
  std::optional<child_process> server_{};
  http_client client_{"http://" + address_, {}};
};
INSTANTIATE_TEST_SUITE_P(Backends, OutboxHttpFault, testing::Values("redis", "postgres"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(OutboxHttpFault, NothingIsLostAndTheOrderOfAKeyIsKept) {
  constexpr int keys = 10;
  constexpr int rounds = 40;
  start_server();
  std::atomic<bool> published = false;
  std::thread publisher([&] {
    for (int round = 0; round < rounds; ++round) {
      json batch = json::array();
      for (int key = 0; key < keys; ++key) {
        for (int i = 0; i < 2; ++i)
          batch.push_back({{"type", "t"},
                           {"id", new_event_id()},
                           {"key", "k" + std::to_string(key)},
                           {"payload", round * 2 + i}});
      }
      publish(batch);
    }
    published = true;
  });
  std::vector<child_process> workers;
  for (int i = 0; i < 3; ++i) workers.push_back(start_worker());
  std::mt19937 random(7);
  for (int kill = 0; kill < 12; ++kill) {
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 300));
    auto& worker = workers[random() % workers.size()];
    worker.signal(SIGKILL);
    (void)worker.wait(60s);
    worker = start_worker();
    if (kill % 3 != 0) continue;
    kill_server();
    start_server();
  }
  publisher.join();
  ASSERT_TRUE(published);
  const auto count_delivered = [&] {
    std::size_t count = 0;
    for (const auto& [key, numbers] : first_deliveries()) count += numbers.size();
    return count;
  };
  EXPECT_TRUE(eventually([&] { return count_delivered() == std::size_t{keys} * rounds * 2; }, 120s))
      << count_delivered() << "\n"
      << log();
  const auto deliveries = first_deliveries();
  EXPECT_EQ(deliveries.size(), std::size_t{keys});
  for (const auto& [key, numbers] : deliveries)
    EXPECT_TRUE(std::ranges::is_sorted(numbers)) << "key " << key;
  EXPECT_TRUE(eventually(
      [&] { return json::parse(get("/v1/outboxes/orders").body).value("events", 1) == 0; }, 60s));
}

TEST_P(OutboxHttpFault, AStaleFenceIsRefusedAfterARestart) {
  start_server();
  publish(json::array({{{"type", "t"}, {"key", "k"}}}));
  const auto claim = [&](const char* lease) {
    return json::parse(
        post("/v1/outboxes/orders/claims", {{"lease", lease}, {"wait", "60s"}}).body);
  };
  const auto settle = [&](const json& claimed) {
    return json::parse(
        post(
            "/v1/outboxes/orders/settlements",
            {{"fence", claimed["fence"]},
             {"events", {{{"id", claimed["events"][0]["id"]}, {"key", "k"}, {"outcome", "done"}}}}})
            .body)["events"][0]["result"];
  };
  const auto first = claim("100ms");
  ASSERT_EQ(first["events"].size(), 1U) << first;
  kill_server();
  start_server();
  const auto second = claim("1h");
  ASSERT_EQ(second["events"].size(), 1U) << second;
  EXPECT_GT(std::stoll(second["fence"].get<std::string>()),
            std::stoll(first["fence"].get<std::string>()));
  EXPECT_EQ(settle(first), "stale");
  EXPECT_EQ(settle(second), "done");
}

TEST_P(OutboxHttpFault, AKilledClientLeavesItsEventsToOthers) {
  start_server();
  auto worker = start_worker();
  // The worker waits in a long poll; it is killed there.
  ASSERT_TRUE(eventually([&] { return has_waiting_poll(); }));
  worker.signal(SIGKILL);
  (void)worker.wait(60s);
  publish(json::array({{{"type", "t"}, {"key", "k"}}}));
  const auto claim =
      json::parse(post("/v1/outboxes/orders/claims", {{"lease", "1h"}, {"wait", "60s"}}).body);
  EXPECT_EQ(claim["events"].size(), 1U) << claim;
}

TEST_P(OutboxHttpFault, SigtermAnswersThePollsAndEndsTheServer) {
  start_server();
  std::thread poll([&] {
    http_client client("http://" + address_, {});
    client_request request{.method = "POST", .target = "/v1/outboxes/orders/claims"};
    request.fields.add("Content-Type", "application/json");
    request.body = R"({"wait":"60s"})";
    const auto response = client.send(request, std::chrono::steady_clock::now() + 60s);
    EXPECT_EQ(response.status, 200) << response.reason;
    EXPECT_NE(response.body.find("\"empty\""), std::string::npos) << response.body;
  });
  ASSERT_TRUE(eventually([&] { return has_waiting_poll(); }));
  server_->signal(SIGTERM);
  poll.join();
  const auto status = server_->wait(60s);
  ASSERT_TRUE(status);
  EXPECT_TRUE(status->success()) << status->describe() << log();
}

}  // namespace
